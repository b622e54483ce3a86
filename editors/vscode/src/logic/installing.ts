/** How the server gets into the extension's own storage: the steps, by what the machine has. */

import * as nodePath from "node:path";
import { ownEnvironment, programsOf } from "./discovery";

/** `isOwn`: the wheel that comes with the extension, so that its server fits it. */
export interface Source { target: string; isOwn: boolean }

/** What is installed: what the setting names, else what comes with the extension; undefined where there is neither. */
export function sourceOf(setting: string, home: string, own: string | undefined): Source | undefined {
  const target = setting.trim().replace(/^~(?=$|[\\/])/, home);
  return target ? { target, isOwn: false } : own ? { target: own, isOwn: true } : undefined;
}

export interface Tools { uv?: string; python?: string; pipx?: string }
export interface Step { command: string; args: string[]; env?: Record<string, string> }
export interface Plan { tool: "uv" | "pip" | "pipx"; steps: Step[]; server: string }

/** uv first, since it brings a Python of its own where the machine has none; undefined where nothing can install. What is
 * there is installed anew: it may be what is broken. */
export function installPlan(platform: NodeJS.Platform, storage: string, target: string, tools: Tools): Plan | undefined {
  const environment = ownEnvironment(storage);
  const programs = programsOf(platform, environment);
  const ending = platform === "win32" ? ".exe" : "";
  const python = nodePath.join(programs, `python${ending}`);
  const server = nodePath.join(programs, `nm-lsp${ending}`);
  if (tools.uv) {
    const steps = [
      { command: tools.uv, args: ["venv", "--allow-existing", "--python", ">=3.11", environment] },
      { command: tools.uv, args: ["pip", "install", "--upgrade", "--reinstall", "--python", python, target] },
    ];
    return { tool: "uv", steps, server };
  }
  if (tools.python) {
    const steps = [
      { command: tools.python, args: ["-m", "venv", environment] },
      { command: python, args: ["-m", "pip", "install", "--upgrade", "--force-reinstall", "--disable-pip-version-check", "--no-input", target] },
    ];
    return { tool: "pip", steps, server };
  }
  if (tools.pipx) {
    const env = { PIPX_HOME: nodePath.join(storage, "pipx"), PIPX_BIN_DIR: programs };
    return { tool: "pipx", steps: [{ command: tools.pipx, args: ["install", "--force", target], env }], server };
  }
  return undefined;
}

/** The command line of a step as a person would type it. */
export function spelled(step: Step): string {
  return [step.command, ...step.args].map((word) => (/[\s"'<>|&;]/.test(word) ? `"${word}"` : word)).join(" ");
}
