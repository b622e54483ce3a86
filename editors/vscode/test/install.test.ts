import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Machine } from "../src/logic/discovery";
import { install } from "../src/ui/install";
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
function python(name: string, version: string, pip = 'd=$(dirname "$0"); cp "$0" "$d/nm-lsp"; echo "Installed $6"'): void {
  const script = `#!/bin/sh\ncase "$1 $2" in\n"-c "*) echo ${version};;\n"-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;\n"-m pip") ${pip};;\nesac\n`;
  fs.writeFileSync(path.join(folder, name), script, { mode: 0o755 });
}

function run(): Promise<boolean> {
  const isFile = async (file: string): Promise<boolean> => fs.existsSync(file);
  const machine: Machine = { platform: "linux", searchPath: folder, home: "/nowhere", isFile };
  return install(machine, storage, "nm-lsp", window.createOutputChannel() as never);
}

it("installs into the extension's own storage once the user says so", async () => {
  python("python3", "3.12");
  fake.choose = "Install";
  expect(await run()).toBe(true);
  expect(fs.existsSync(path.join(storage, "server", "bin", "nm-lsp"))).toBe(true);
  expect(fake.shown).toHaveLength(1);
});

it("does nothing without consent", async () => {
  python("python3", "3.12");
  expect(await run()).toBe(false);
  expect(fs.existsSync(storage)).toBe(false);
});

it("passes over a Python that is too old", async () => {
  python("python3", "3.6");
  fake.choose = "Install";
  expect(await run()).toBe(false);
  expect(fake.shown).toEqual([expect.objectContaining({ level: "error", text: expect.stringMatching(/needs Python 3\.11 or newer, or uv/) })]);
});

it("takes a newer one beside it", async () => {
  python("python3", "3.6");
  python("python3.12", "3.12");
  fake.choose = "Install";
  expect(await run()).toBe(true);
});

it("says what went wrong, with the command", async () => {
  python("python3", "3.12", 'echo "ERROR: No matching distribution found for nm-lsp" >&2; exit 1');
  fake.choose = "Install";
  expect(await run()).toBe(false);
  const [, failure] = fake.shown;
  expect(failure.text).toMatch(/could not be installed\. It said: “ERROR: No matching distribution found for nm-lsp”\. The command was: ".*storage of mine\/server\/bin\/python" -m pip install/);
});
