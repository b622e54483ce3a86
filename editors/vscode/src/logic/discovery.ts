/** Where the server may be, best first. Knows nothing of the editor; the machine is an argument. */

import * as nodePath from "node:path";

/** What is asked of the machine. */
export interface Machine {
  platform: NodeJS.Platform;
  /** The search path of the environment. */
  searchPath: string | undefined;
  home: string;
  isFile(path: string): Promise<boolean>;
}

/** What the user and the workspace say. Folders are absolute paths. */
export interface Wishes {
  setting: string;
  folders: readonly string[];
  trusted: boolean;
  storage: string;
}

export type Origin = "setting" | "workspace" | "path" | "installed";

/** A command line that starts the server. */
export interface Launch {
  command: string;
  args: readonly string[];
  origin: Origin;
  isPython: boolean;
}

export type Found =
  | { kind: "found"; launch: Launch }
  | { kind: "setting-wrong"; path: string }
  | { kind: "nothing" };

const NAME = "nm-lsp";

/** The setting, else a virtual environment of a trusted workspace, else PATH, else the extension's own copy. */
export async function findServer(machine: Machine, wishes: Wishes): Promise<Found> {
  const setting = wishes.setting.trim();
  if (setting) {
    const command = await resolveSetting(machine, wishes, setting);
    return command ? { kind: "found", launch: launchOf(command, "setting") } : { kind: "setting-wrong", path: setting };
  }
  for (const [path, origin] of candidates(machine, wishes)) {
    if (await machine.isFile(path)) {
      return { kind: "found", launch: launchOf(path, origin) };
    }
  }
  return { kind: "nothing" };
}

/** The extension's own environment inside its storage folder. */
export function ownEnvironment(storage: string): string {
  return nodePath.join(storage, "server");
}

/** The programs of a virtual environment. */
export function programsOf(platform: NodeJS.Platform, environment: string): string {
  return pathOf(platform).join(environment, platform === "win32" ? "Scripts" : "bin");
}

/** `name` on the search path, with the endings of the platform; undefined where it is not there. */
export async function onPath(machine: Machine, name: string): Promise<string | undefined> {
  for (const path of pathCandidates(machine, name)) {
    if (await machine.isFile(path)) {
      return path;
    }
  }
  return undefined;
}

function candidates(machine: Machine, wishes: Wishes): [string, Origin][] {
  const join = pathOf(machine.platform).join;
  const file = executable(machine.platform, NAME);
  const found: [string, Origin][] = [];
  // A workspace that is not trusted must not bring the program that reads it.
  for (const folder of wishes.trusted ? wishes.folders : []) {
    for (const environment of [".venv", "venv"]) {
      found.push([join(programsOf(machine.platform, join(folder, environment)), file), "workspace"]);
    }
  }
  for (const path of pathCandidates(machine, NAME)) {
    found.push([path, "path"]);
  }
  // `uv tool` and `pipx` put their programs here, and an editor started from a dock does not have it on its PATH.
  found.push([join(machine.home, ".local", "bin", file), "path"]);
  found.push([join(programsOf(machine.platform, ownEnvironment(wishes.storage)), file), "installed"]);
  return found;
}

function pathCandidates(machine: Machine, name: string): string[] {
  const path = pathOf(machine.platform);
  const folders = (machine.searchPath ?? "").split(path.delimiter);
  // A relative entry means the workspace, which is not a place to take programs from.
  return folders.filter((folder) => path.isAbsolute(folder)).map((folder) => path.join(folder, executable(machine.platform, name)));
}

async function resolveSetting(machine: Machine, wishes: Wishes, setting: string): Promise<string | undefined> {
  const path = pathOf(machine.platform);
  const unquoted = setting.replace(/^"(.*)"$/, "$1");
  const home = unquoted.replace(/^~(?=$|[\\/])/, machine.home);
  const options: string[] = [];
  if (home.includes("${workspaceFolder}")) {
    options.push(...wishes.folders.map((folder) => home.replaceAll("${workspaceFolder}", folder)));
  } else if (path.isAbsolute(home)) {
    options.push(home);
  } else if (/[\\/]/.test(home)) {
    options.push(...wishes.folders.map((folder) => path.join(folder, home)));
  } else {
    return onPath(machine, home);
  }
  for (const option of options) {
    for (const spelled of machine.platform === "win32" && !/\.exe$/i.test(option) ? [option, `${option}.exe`] : [option]) {
      if (await machine.isFile(spelled)) {
        return spelled;
      }
    }
  }
  return undefined;
}

function launchOf(command: string, origin: Origin): Launch {
  const isPython = /^(python|pypy)[\d.]*(\.exe)?$/i.test(command.split(/[\\/]/).pop() ?? "");
  return { command, args: isPython ? ["-m", "nm_lsp", "--stdio"] : ["--stdio"], origin, isPython };
}

function executable(platform: NodeJS.Platform, name: string): string {
  return platform === "win32" && !/\.exe$/i.test(name) ? `${name}.exe` : name;
}

function pathOf(platform: NodeJS.Platform): nodePath.PlatformPath {
  return platform === "win32" ? nodePath.win32 : nodePath.posix;
}
