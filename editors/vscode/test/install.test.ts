import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Machine } from "../src/logic/discovery";
import { type Cause, explain } from "../src/logic/failure";
import { type Source, sourceOf } from "../src/logic/installing";
import { install, type Outcome, ownWheel } from "../src/ui/install";
import { fake, window } from "./fakeVscode";

let folder: string;
let storage: string;

beforeEach(() => {
  fake.reset();
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "nm lsp größe "));
  storage = path.join(folder, "storage of mine");
});

afterEach(() => fs.rmSync(folder, { recursive: true }));

/** A Python that makes environments and installs by copying itself. */
function python(name: string, version: string, pip = 'd=$(dirname "$0"); cp "$0" "$d/nm-lsp"; echo "Installed $7"'): void {
  const script = `#!/bin/sh\ncase "$1 $2" in\n"-c "*) echo ${version};;\n"-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;\n"-m pip") ${pip};;\nesac\n`;
  fs.writeFileSync(path.join(folder, name), script, { mode: 0o755 });
}

const OWN: Source = { target: "/ext of mine/server/nm_lsp-0.1.0-py3-none-any.whl", isOwn: true };

function run(source: Source | undefined = OWN): Promise<Outcome> {
  const isFile = async (file: string): Promise<boolean> => fs.existsSync(file);
  const machine: Machine = { platform: "linux", searchPath: folder, home: "/nowhere", isFile };
  return install(machine, storage, source, window.createOutputChannel() as never);
}

it("installs what comes with the extension into its own storage once the user says so", async () => {
  python("python3", "3.12");
  fake.choose = "Install";
  expect(await run()).toBe("installed");
  expect(fs.existsSync(path.join(storage, "server", "bin", "nm-lsp"))).toBe(true);
  expect(fake.shown).toHaveLength(1);
});

it("does nothing without consent", async () => {
  python("python3", "3.12");
  expect(await run()).toBe("left");
  expect(fs.existsSync(storage)).toBe(false);
});

it.each([["no Python", undefined], ["a Python that is too old", "3.6"]])("does not ask where there is %s: it says what is needed", async (_, version) => {
  if (version) {
    python("python3", version);
  }
  fake.choose = "Install";
  const outcome = await run();
  expect(outcome).toEqual({ kind: "no-installer" });
  expect(fake.shown).toEqual([]);
  expect(explain(outcome as Cause).text).toMatch(/needs Python 3\.11 or newer, or uv/);
});

it("takes a newer Python beside an old one", async () => {
  python("python3", "3.6");
  python("python3.12", "3.12");
  fake.choose = "Install";
  expect(await run()).toBe("installed");
});

it("hands on what the installer said, and the command", async () => {
  python("python3", "3.12", 'echo "ERROR: disk full" >&2; exit 1');
  fake.choose = "Install";
  const outcome = await run();
  expect(outcome).toMatchObject({ kind: "not-installed", errors: "ERROR: disk full\n" });
  expect(explain(outcome as Cause).text).toMatch(
    /could not be installed\. It said: “ERROR: disk full”\. The command was: ".*storage of mine\/server\/bin\/python" -m pip install .* "\/ext of mine\/server\/nm_lsp-0\.1\.0-py3-none-any\.whl"$/,
  );
});

it("says so where this build brings no server along", async () => {
  expect(await ownWheel(folder)).toBeUndefined();
  expect(await install({} as never, storage, sourceOf("", "/home/ann", undefined), {} as never)).toEqual({ kind: "no-source" });
  fs.mkdirSync(path.join(folder, "server"));
  fs.writeFileSync(path.join(folder, "server", "nm_lsp-0.1.0-py3-none-any.whl"), "");
  expect(await ownWheel(folder)).toBe(path.join(folder, "server", "nm_lsp-0.1.0-py3-none-any.whl"));
});
