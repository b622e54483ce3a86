/** The folders of the window that lie on a disk the server can read. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { anchorPath } from "../logic/decisionTree";
import type { AnchorRow } from "../logic/wire";

export function diskFolders(): vscode.WorkspaceFolder[] {
  return (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === "file");
}

/** The folder that `uri`, else the active editor, lies in; the only one; else the one the user picks. Undefined where the
 * user leaves, and, after a message, where there is none. */
export async function chooseFolder(uri?: vscode.Uri): Promise<vscode.WorkspaceFolder | undefined> {
  const folders = diskFolders();
  if (folders.length === 0) {
    const isVirtual = vscode.workspace.workspaceFolders?.length;
    void vscode.window.showInformationMessage(
      isVirtual ? l10n.t("nm-lsp reads files on a disk, and no folder of this window lies on one that it can reach.") : l10n.t("Open a folder first: nm-lsp is a memory for the files in it."),
    );
    return undefined;
  }
  const near = uri ?? vscode.window.activeTextEditor?.document.uri;
  const owner = near?.scheme === "file" ? vscode.workspace.getWorkspaceFolder(near) : undefined;
  if (owner || folders.length === 1) {
    return owner ?? folders[0];
  }
  const items = folders.map((folder) => ({ label: folder.name, description: folder.uri.fsPath, folder }));
  const picked = await vscode.window.showQuickPick(items, { placeHolder: l10n.t("Which folder is meant?") });
  return picked?.folder;
}

export function folderOf(uri: string): vscode.WorkspaceFolder | undefined {
  return diskFolders().find((folder) => folder.uri.toString() === uri);
}

/** Untitled buffers, views of git and files of a virtual workspace are not. */
export function isOnDisk(uri: vscode.Uri): boolean {
  return uri.scheme === "file";
}

/** Where an anchor is now; undefined where it is gone. */
export function anchorUri(anchor: AnchorRow): vscode.Uri | undefined {
  const uri = vscode.Uri.parse(anchor.uri);
  const path = anchorPath(anchor, uri.path);
  return path === null ? undefined : uri.with({ path });
}
