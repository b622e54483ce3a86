/** The optional git hooks, installed by the server's own command after asking. Only in trusted workspaces. */

import { execFile } from "node:child_process";
import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { lastWords } from "../logic/failure";
import { chooseFolder } from "./folders";
import type { Server } from "./server";

export async function installHooks(server: Server): Promise<void> {
  const launch = server.running;
  const folder = await chooseFolder();
  if (!launch || !folder) {
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
