/** Installing the server into the extension's own storage, after asking. */

import { spawn } from "node:child_process";
import * as fs from "node:fs/promises";
import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { type Machine, onPath } from "../logic/discovery";
import { isOlder, lastWords, OLDEST_PYTHON } from "../logic/failure";
import { installPlan, type Plan, spelled, type Step, type Tools } from "../logic/installing";
import { PATH_SETTING } from "../logic/names";
import { pythonVersion } from "./server";

const PYTHONS = ["python3.14", "python3.13", "python3.12", "python3.11", "python3", "python"];

/** True once the server is there. Says by itself why not. */
export async function install(machine: Machine, storage: string, packageName: string, output: vscode.LogOutputChannel): Promise<boolean> {
  const tools = await findTools(machine);
  const plan = installPlan(machine.platform, storage, packageName, tools);
  if (!plan) {
    void vscode.window.showErrorMessage(
      l10n.t("nm-lsp needs Python {0} or newer, or uv, to install its server, and found neither on PATH. Install one of them and choose “Install Server” again, or name a server in the setting {1}.", OLDEST_PYTHON.join("."), PATH_SETTING),
    );
    return false;
  }
  const yes = l10n.t("Install");
  const question = l10n.t("Install the nm-lsp server?");
  const detail = l10n.t(
    "It downloads the package {0} with {1} from your package index into the extension's own folder, {2}. Nothing else on this machine is changed. Your code never leaves it.",
    packageName,
    plan.tool,
    storage,
  );
  if ((await vscode.window.showInformationMessage(question, { modal: true, detail }, yes)) !== yes) {
    return false;
  }
  const failed = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Notification, title: l10n.t("Installing the nm-lsp server"), cancellable: true },
    (progress, token) => perform(plan, storage, output, progress, token),
  );
  if (failed === undefined) {
    return true;
  }
  if (failed !== "cancelled") {
    const show = l10n.t("Show Output");
    const text = l10n.t("The server could not be installed. {0} The command was: {1}", lastWords(failed.errors), spelled(failed.step));
    void vscode.window.showErrorMessage(text, show).then((chosen) => chosen && output.show());
  }
  return false;
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
