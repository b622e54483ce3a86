import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import type { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Server } from "../src/ui/server";
import { fake, Uri, workspace } from "./fakeVscode";

// A client that takes the server's first byte for the answer to `initialize`.
vi.mock("../src/clientFactory", () => ({
  createClient: (streams: { stdout: Readable }) => ({
    start: () =>
      new Promise<void>((resolve, reject) => {
        streams.stdout.once("data", () => resolve());
        streams.stdout.once("close", () => reject(new Error("closed")));
      }),
    stop: async () => undefined,
    sendRequest: () => new Promise(() => undefined),
    isRunning: () => false,
    onNotification: () => undefined,
    initializeResult: { serverInfo: { name: "nm-lsp", version: versionOfServer } },
  }),
}));
let versionOfServer = "0.1.0";

let folder: string;
let server: Server;
let now = 0;
let pauses: number[] = [];
let answerS = 30;

beforeEach(() => {
  fake.reset();
  versionOfServer = "0.1.0";
  [now, pauses, answerS] = [0, [], 30];
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "nm lsp größe "));
  fake.folders = [{ uri: Uri.file(folder), name: "w", index: 0 }];
  const context = { extensionPath: path.join(folder, "extension"), globalStorageUri: Uri.file(path.join(folder, "storage")), extension: { packageJSON: { contributes: { configuration: [] } } } };
  const later = (run: () => void, ms: number): NodeJS.Timeout => {
    pauses.push(ms);
    return setTimeout(run, 0);
  };
  server = new Server(context as never, async () => undefined, { later, now: () => now, get answerS() { return answerS; } });
});

afterEach(async () => {
  await server.stop();
  fs.rmSync(folder, { recursive: true });
});

/** A program that notes each start in `starts`. */
function program(name: string, script: string): string {
  const file = path.join(folder, name);
  fs.writeFileSync(file, `#!/bin/sh\necho x >>"${folder}/starts"\n${script}\n`, { mode: 0o755 });
  return file;
}

function nStarts(): number {
  return fs.existsSync(path.join(folder, "starts")) ? fs.readFileSync(path.join(folder, "starts"), "utf8").length / 2 : 0;
}

async function until(kind: string): Promise<void> {
  await vi.waitFor(() => expect(server.state.kind).toBe(kind), { timeout: 20_000, interval: 5 });
}

const GOOD = "echo ready; cat >/dev/null";

describe("a server that cannot run: one message, at most one retry", () => {
  it.each([
    ["exits 1 at once", "nm-lsp", 'echo "ImportError: no attrs" >&2; exit 1', 2, /ended right after its start \(exit code 1\)\. It said: “ImportError: no attrs”/],
    ["a Python without the package", "python3", 'case $1 in -c) echo 3.12;; *) echo "python3: No module named nm_lsp" >&2; exit 1;; esac', 3, /a Python without the package nm-lsp/],
    ["Python 3.6", "python3.6", 'case $1 in -c) echo 3.6;; *) echo "No module named nm_lsp" >&2; exit 1;; esac', 3, /is Python 3\.6, and the server needs Python 3\.11/],
    ["hangs", "nm-lsp", "exec sleep 60", 1, /did not answer within 0\.3 seconds/],
  ])("%s", async (_, name, script, nExpected, words) => {
    fake.settings.set("nmLsp.server.path", program(name, script));
    // Only the one that says nothing is not waited for.
    answerS = script.includes("sleep") ? 0.3 : 30;
    void server.restart();
    await until("failed");
    expect(fake.shown).toHaveLength(1);
    expect(fake.shown[0].level).toBe("error");
    expect(fake.shown[0].text).toMatch(words);
    expect(fake.shown[0].text).toContain("nmLsp.server.path");
    // The third start asks the interpreter for its version.
    expect(nStarts()).toBe(nExpected);
  });

  it("is not executable", async () => {
    const file = program("nm-lsp", GOOD);
    fs.chmodSync(file, 0o644);
    fake.settings.set("nmLsp.server.path", file);
    await server.restart();
    await until("failed");
    expect(fake.shown.map((message) => message.text)).toEqual([expect.stringMatching(/it is not executable/)]);
  });

  it("is named wrongly, and runs after the setting was corrected", async () => {
    fake.settings.set("nmLsp.server.path", path.join(folder, "gone"));
    await server.restart();
    expect(server.state.kind).toBe("failed");
    await expect(server.request("neuralmind/status", {})).rejects.toThrow(/there is no such file/);
    fake.settings.set("nmLsp.server.path", program("nm-lsp", GOOD));
    void server.restart();
    await until("running");
    expect(fake.shown).toHaveLength(1);
  });

  it("opens the setting from the message", async () => {
    fake.choose = "Open Setting";
    fake.settings.set("nmLsp.server.path", path.join(folder, "gone"));
    await server.restart();
    await vi.waitFor(() => expect(fake.executed).toContainEqual(["workbench.action.openSettings", "@id:nmLsp.server.path"]));
  });

  it("can be installed by the command that is copied, of the wheel that comes with the extension", async () => {
    const wheel = path.join(folder, "extension", "server", "nm_lsp-0.1.0-py3-none-any.whl");
    fs.mkdirSync(path.dirname(wheel), { recursive: true });
    fs.writeFileSync(wheel, "");
    vi.stubEnv("PATH", "/nowhere");
    vi.stubEnv("HOME", "/nowhere");
    fake.choose = "Copy Install Command";
    await server.restart();
    await vi.waitFor(() => expect(fake.copied).toEqual([`uv tool install "${wheel}"`]));
    vi.unstubAllEnvs();
    expect(fake.shown).toHaveLength(1);
  });

  it("is not taken from a workspace that is not trusted", async () => {
    workspace.isTrusted = false;
    const programs = path.join(folder, ".venv", "bin");
    fs.mkdirSync(programs, { recursive: true });
    program(path.join(".venv", "bin", "nm-lsp"), GOOD);
    vi.stubEnv("PATH", "/nowhere");
    vi.stubEnv("HOME", "/nowhere");
    await server.restart();
    vi.unstubAllEnvs();
    expect(server.state.kind).toBe("failed");
    expect(nStarts()).toBe(0);
    expect(fake.shown[0].buttons).toEqual(["Install Server…", "Open Setting", "Copy Install Command"]);
  });
});

describe("a server that ran", () => {
  it("is back at once after it was killed, and given up when it keeps dying", async () => {
    fake.settings.set("nmLsp.server.path", program("nm-lsp", "echo ready; while [ ! -e die ]; do sleep 0.01; done; rm die; kill -9 $$"));
    void server.restart();
    for (let death = 0; death < 5; death += 1) {
      await until("running");
      now += 60_000;
      fs.writeFileSync(path.join(folder, "storage", "die"), "");
      await vi.waitFor(() => expect(pauses.length + fake.shown.length).toBe(death + 1), { timeout: 20_000, interval: 5 });
    }
    expect(pauses).toEqual([250, 1_000, 4_000, 15_000]);
    expect(server.state.kind).toBe("failed");
    expect(fake.shown.map((message) => message.text)).toEqual([expect.stringMatching(/ended several times in a row \(signal SIGKILL\)/)]);
  });

  it("is spoken of once where it does not answer any more", async () => {
    fake.settings.set("nmLsp.server.path", program("nm-lsp", GOOD));
    void server.restart();
    await until("running");
    for (const name of ["status", "query"]) {
      void server.request(`neuralmind/${name}`, {});
    }
    await vi.waitFor(() => expect(pauses).toEqual([60_000, 60_000]));
    await vi.waitFor(() => expect(fake.shown).toHaveLength(1));
    expect(fake.shown[0]).toMatchObject({ level: "warning", buttons: ["Restart Server", "Show Output"], text: expect.stringMatching(/has not answered for 60 seconds/) });
    expect(server.state.kind).toBe("running");
  });

  it("is warned about once where it is older than this extension needs", async () => {
    versionOfServer = "0.0.9";
    fake.settings.set("nmLsp.server.path", program("nm-lsp", GOOD));
    void server.restart();
    await until("running");
    void server.restart();
    await until("running");
    expect(fake.shown).toEqual([expect.objectContaining({ level: "warning", text: expect.stringMatching(/has version 0\.0\.9/) })]);
  });

  it("is ended with its window", async () => {
    fake.settings.set("nmLsp.server.path", program("nm-lsp", `echo $$ >"${folder}/pid"; echo ready; exec sleep 60`));
    void server.restart();
    await until("running");
    const pid = Number(fs.readFileSync(path.join(folder, "pid"), "utf8"));
    await server.stop();
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow());
  }, 10_000);
});

it.each([
  ["no folder", [], "no-folder"],
  ["a virtual workspace alone", [{ uri: Uri.parse("vscode-vfs://github/x"), name: "x", index: 0 }], "virtual"],
])("starts nothing for %s and says nothing", async (_, folders, why) => {
  fake.folders = folders;
  await server.restart();
  expect(server.state).toEqual({ kind: "off", why });
  expect(fake.shown).toEqual([]);
});
