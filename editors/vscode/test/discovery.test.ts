import { describe, expect, it } from "vitest";
import { findServer, type Machine, type Wishes } from "../src/logic/discovery";

const WISHES: Wishes = { setting: "", folders: ["/work/shop"], trusted: true, storage: "/store" };

function machine(files: string[], more: Partial<Machine> = {}): Machine {
  return { platform: "linux", searchPath: "/usr/bin:/bin", home: "/home/ann", isFile: async (path) => files.includes(path), ...more };
}

const ALL = ["/work/shop/.venv/bin/nm-lsp", "/usr/bin/nm-lsp", "/home/ann/.local/bin/nm-lsp", "/store/server/bin/nm-lsp"];

describe("finding the server", () => {
  it.each([
    ["the workspace's environment first", ALL, ALL[0], "workspace"],
    ["then PATH", ALL.slice(1), ALL[1], "path"],
    ["then where uv and pipx put programs", ALL.slice(2), ALL[2], "path"],
    ["then the extension's own copy", ALL.slice(3), ALL[3], "installed"],
  ])("takes %s", async (_, files, command, origin) => {
    expect(await findServer(machine(files), WISHES)).toEqual({ kind: "found", launch: { command, args: ["--stdio"], origin, isPython: false } });
  });

  it("takes nothing from a workspace that is not trusted", async () => {
    expect(await findServer(machine(ALL.slice(0, 1)), { ...WISHES, trusted: false })).toEqual({ kind: "nothing" });
  });

  it("takes nothing from a relative entry of PATH, which would be the workspace", async () => {
    expect(await findServer(machine(["nm-lsp", "./nm-lsp", "bin/nm-lsp"], { searchPath: ".:bin:" }), WISHES)).toEqual({ kind: "nothing" });
  });

  it.each([
    ["/opt/Größe mit Raum/bin/nm-lsp", "/opt/Größe mit Raum/bin/nm-lsp", false],
    ['"/opt/a b/nm-lsp"', "/opt/a b/nm-lsp", false],
    ["~/tools/nm-lsp", "/home/ann/tools/nm-lsp", false],
    ["${workspaceFolder}/tools/nm-lsp", "/work/shop/tools/nm-lsp", false],
    ["tools/nm-lsp", "/work/shop/tools/nm-lsp", false],
    ["nm-lsp", "/usr/bin/nm-lsp", false],
    ["/usr/bin/python3.12", "/usr/bin/python3.12", true],
    ["python3", "/bin/python3", true],
  ])("understands the setting %s", async (setting, command, isPython) => {
    const found = await findServer(machine([command]), { ...WISHES, setting });
    expect(found).toEqual({ kind: "found", launch: { command, args: isPython ? ["-m", "nm_lsp", "--stdio"] : ["--stdio"], origin: "setting", isPython } });
  });

  it("does not look elsewhere where the setting names what is not there", async () => {
    expect(await findServer(machine(ALL), { ...WISHES, setting: "/gone/nm-lsp" })).toEqual({ kind: "setting-wrong", path: "/gone/nm-lsp" });
  });

  it("knows the endings and folders of Windows", async () => {
    const path = "C:\\shop\\.venv\\Scripts\\nm-lsp.exe";
    const found = await findServer(machine([path], { platform: "win32", searchPath: "C:\\bin;D:\\tools" }), { ...WISHES, folders: ["C:\\shop"] });
    expect(found).toMatchObject({ kind: "found", launch: { command: path } });
    const given = await findServer(machine(["D:\\x\\nm-lsp.exe"], { platform: "win32" }), { ...WISHES, setting: "D:\\x\\nm-lsp" });
    expect(given).toMatchObject({ kind: "found", launch: { command: "D:\\x\\nm-lsp.exe" } });
  });
});
