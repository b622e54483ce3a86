/** Installing the server into the extension's own storage, after asking. */

import { spawn } from "node:child_process";
import * as fs from "node:fs/promises";
import * as path from "node:path";
import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { type Machine, onPath } from "../logic/discovery";
import { type Cause, isOlder, OLDEST_PYTHON } from "../logic/failure";
import { installPlan, type Plan, type Source, spelled, type Step, type Tools } from "../logic/installing";
import { PACKAGE_SETTING } from "../logic/names";
import { pythonVersion } from "./server";

const PYTHONS = ["python3.14", "python3.13", "python3.12", "python3.11", "python3", "python"];

/** "left" where the user chose not to. */
export type Outcome = "installed" | "left" | Cause;

/** The server in the extension's own folder; undefined where this build has none. */
export async function ownWheel(extension: string): Promise<string | undefined> {
  const folder = path.join(extension, "server");
  const names = await fs.readdir(folder).catch(() => []);
  const name = names.find((one) => one.endsWith(".whl"));
  return name && path.join(folder, name);
}

/** Asks before anything is done. */
export async function install(machine: Machine, storage: string, source: Source | undefined, output: vscode.LogOutputChannel): Promise<Outcome> {
  if (!source) {
    return { kind: "no-source" };
  }
  const plan = installPlan(machine.platform, storage, source.target, await findTools(machine));
  if (!plan) {
    return { kind: "no-installer" };
  }
  const yes = l10n.t("Install");
  const question = l10n.t("Install the nm-lsp server?");
  const what = source.isOwn ? l10n.t("the server that comes with the extension") : l10n.t("“{0}”, which the setting {1} names,", source.target, PACKAGE_SETTING);
  const detail = l10n.t(
    "This puts {0} into the extension's own folder, {1}, with {2}. The packages it needs (about 300 MB) come from your package index. Nothing else on this machine is changed, and your code never leaves it.",
    what,
    storage,
    plan.tool,
  );
  if ((await vscode.window.showInformationMessage(question, { modal: true, detail }, yes)) !== yes) {
    return "left";
  }
  const failed = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: l10n.t("Installing the nm-lsp server"), cancellable: true },
    (progress, token) => perform(plan, storage, output, progress, token),
  );
  if (failed === undefined) {
    return "installed";
  }
  return failed === "cancelled" ? "left" : { kind: "not-installed", source, command: spelled(failed.step), errors: failed.errors };
}

async function findTools(machine: Machine): Promise<Tools> {
  const uv = await onPath(machine, "uv");
  const pipx = await onPath(machine, "pipx");
  for (const name of uv ? [] : PYTHONS) {
    const command = await onPath(machine, name);
    const version = command ? await pythonVersion(command) : undefined;
    if (command && version && !isOlder(version, OLDEST_PYTHON)) {
      return { uv, pipx, python: command };
    }
  }
  return { uv, pipx };
}

async function perform(
  plan: Plan,
  storage: string,
  output: vscode.LogOutputChannel,
  progress: vscode.Progress<{ message?: string }>,
  token: vscode.CancellationToken,
): Promise<undefined | "cancelled" | { step: Step; errors: string }> {
  await fs.mkdir(storage, { recursive: true });
  for (const step of plan.steps) {
    output.info(spelled(step));
    const { code, errors } = await runStep(step, storage, output, progress, token);
    if (token.isCancellationRequested) {
      return "cancelled";
    }
    if (code !== 0) {
      return { step, errors };
    }
  }
  return undefined;
}

/** Runs a program with its words in the output and its last line in the progress; `code` is null where it could not start. */
export function runStep(step: Step, cwd: string, output: vscode.LogOutputChannel, progress: vscode.Progress<{ message?: string }>, token: vscode.CancellationToken) {
  return new Promise<{ code: number | null; errors: string }>((resolve) => {
    const child = spawn(step.command, step.args, { cwd, env: { ...process.env, ...step.env }, windowsHide: true, stdio: ["ignore", "pipe", "pipe"] });
    const cancelling = token.onCancellationRequested(() => child.kill());
    let errors = "";
    const take = (text: string): void => {
      output.append(text);
      const line = text.trim().split(/\r?\n/).pop();
      if (line) {
        progress.report({ message: line.slice(0, 80) });
      }
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-8_000);
      take(text);
    });
    const finish = (code: number | null, more = ""): void => {
      cancelling.dispose();
      resolve({ code, errors: errors + more });
    };
    child.once("error", (error) => finish(null, `\n${error.message}`));
    child.once("close", (code) => finish(code));
  });
}
