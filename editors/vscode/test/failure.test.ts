import { describe, expect, it } from "vitest";
import type { Launch } from "../src/logic/discovery";
import { type Cause, explain, installCommand, isOlder, lastWords, type Remedy, versionNumbers } from "../src/logic/failure";
import type { Source } from "../src/logic/installing";

const SERVER: Launch = { command: "/opt/nm lsp/nm-lsp", args: ["--stdio"], origin: "setting", isPython: false };
const PYTHON: Launch = { command: "/usr/bin/python3.6", args: ["-m", "nm_lsp", "--stdio"], origin: "setting", isPython: true };
const ENDED = { kind: "ended" as const, exitCode: 1, signal: null, errors: "" };

describe("what a person reads when the server does not run", () => {
  it.each<[string, Cause, RegExp]>([
    ["no server", { kind: "nothing-found" }, /did not find it in this workspace's \.venv, on PATH or in its own storage/],
    ["a wrong setting", { kind: "setting-wrong", path: "/gone" }, /names “\/gone”, but there is no such file/],
    ["no program", { kind: "cannot-run", launch: SERVER, code: "EACCES" }, /cannot be run \(it is not executable\)/],
    ["a missing interpreter", { kind: "cannot-run", launch: SERVER, code: "ENOENT" }, /the file, or the interpreter it names, is missing/],
    ["an old Python", { ...ENDED, launch: PYTHON, errors: "No module named nm_lsp", python: [3, 6] }, /is Python 3\.6, and the server needs Python 3\.11 or newer/],
    ["no package", { ...ENDED, launch: PYTHON, errors: "/usr/bin/python3: No module named nm_lsp\n", python: [3, 12] }, /a Python without the package nm-lsp/],
    ["an end at once", { ...ENDED, launch: SERVER, errors: "Traceback…\nImportError: libfoo.so\n" }, /ended right after its start \(exit code 1\)\. It said: “ImportError: libfoo\.so”\. Correct/],
    ["an end without a word", { ...ENDED, launch: SERVER }, /\(exit code 1\)\. Correct the setting/],
    ["silence", { kind: "silent", launch: SERVER, waitedS: 30 }, /did not answer within 30 seconds/],
    ["an old server", { kind: "old-server", launch: SERVER, version: "0.0.9" }, /has version 0\.0\.9; this extension needs 0\.1\.0 or newer/],
  ])("%s: names the cause and the setting", (_, cause, words) => {
    const { text, remedies } = explain(cause);
    expect(text).toMatch(words);
    expect(text).toContain("nmLsp.server.path");
    expect(remedies.length).toBeGreaterThan(0);
  });

  it("says how a server that keeps ending ended", () => {
    const { text, remedies } = explain({ kind: "keeps-ending", launch: SERVER, exitCode: null, signal: "SIGSEGV", errors: "" });
    expect(text).toMatch(/several times in a row \(signal SIGSEGV\), so it is not started again by itself\.$/);
    expect(remedies).toContain("restart");
  });

  it("gives a command that can be pasted", () => {
    expect(installCommand(undefined, "nm-lsp")).toBe('uv tool install "nm-lsp"');
    expect(installCommand(PYTHON, "nm-lsp")).toBe('"/usr/bin/python3.6" -m pip install "nm-lsp"');
  });
});

// What pip 26 and uv 0.9 print, shortened.
describe("what a person reads when the server could not be installed", () => {
  const OWN = { target: "/ext/server/nm_lsp-0.1.0-py3-none-any.whl", isOwn: true };
  const named = (target: string) => ({ target, isOwn: false });
  it.each<[string, Source, string, RegExp, Remedy]>([
    ["pip: unknown package", named("nm-lsp"), "ERROR: Could not find a version that satisfies the requirement nm-lsp (from versions: none)\nERROR: No matching distribution found for nm-lsp\n", /index does not know “nm-lsp”.*nmLsp\.server\.package, or clear it/, "package-setting"],
    ["uv: unknown package", named("Nm_Lsp[annoy]>=1"), "error: No solution found when resolving dependencies\n  cause: Because nm-lsp was not found in the package registry and you require nm-lsp, we can conclude …\n", /index does not know “Nm_Lsp\[annoy\]>=1”/, "package-setting"],
    ["pip: no file", named("/gone.whl"), "ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory: '/gone.whl'\n", /nothing to install at “\/gone\.whl”/, "package-setting"],
    ["pip: no folder", named("/gone"), "ERROR: Invalid requirement: '/gone'\nHint: It looks like a path. File '/gone' does not exist.\n", /nothing to install at “\/gone”/, "package-setting"],
    ["uv: no file", named("/gone.whl"), "error: Distribution not found at: file:///gone.whl\n", /nothing to install at “\/gone\.whl”/, "package-setting"],
    ["pip: no network", OWN, "WARNING: Retrying (…) after connection broken by 'NewConnectionError(…)'\nERROR: No matching distribution found for pygls\n", /index cannot be reached/, "install"],
    ["uv: no network", OWN, "error: Failed to fetch: https://…\n  cause: client error (Connect)\n  cause: dns error\n", /index cannot be reached/, "install"],
    ["a dependency without a wheel", OWN, "ERROR: No matching distribution found for onnxruntime>=1.20\n", /has no “onnxruntime>=1\.20” for this machine and this Python/, "output"],
    ["anything else", OWN, "ERROR: No space left on device\n", /It said: “ERROR: No space left on device”\. The command was: pip install x$/, "output"],
  ])("%s", (_, source, errors, words, remedy) => {
    const { text, remedies } = explain({ kind: "not-installed", source, errors, command: "pip install x" });
    expect(text).toMatch(words);
    expect(remedies[0]).toBe(remedy);
  });

  it("names both settings where this build brings no server along", () => {
    expect(explain({ kind: "no-source" }).text).toMatch(/nmLsp\.server\.package, or .* nmLsp\.server\.path/);
  });
});

it("keeps the last words short", () => {
  expect(lastWords("\n \n")).toBe("");
  expect(lastWords(`a\n${"x".repeat(500)}`).length).toBeLessThan(230);
});

it("compares versions by number", () => {
  expect(versionNumbers("0.10.2.dev1+g12")).toEqual([0, 10, 2]);
  expect(versionNumbers(undefined)).toBeUndefined();
  expect(isOlder([0, 10, 0], [0, 9, 0])).toBe(false);
  expect(isOlder([0, 0, 9], [0, 1, 0])).toBe(true);
  expect(isOlder([3, 11], [3, 11])).toBe(false);
});
