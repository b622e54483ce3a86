/** The Memory view: follows the cursor while it can be seen, and asks nothing while it cannot. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { type Memory, type MemoryNode, memoryTree, symbolName } from "../logic/memoryTree";
import type { NeighborsResult, NextResult, StatusResult } from "../logic/wire";
import type { Acts } from "./acts";
import { type Api, isUnknownMethod } from "./api";
import { isOnDisk } from "./folders";
import type { Server } from "./server";

const QUIET_MS = 300;
const LIMIT = 12;

export class MemoryView implements vscode.TreeDataProvider<MemoryNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<MemoryNode>;
  private readonly subscriptions: vscode.Disposable[];
  private memory: Memory = { kind: "nowhere" };
  private timer: NodeJS.Timeout | undefined;
  private running: vscode.CancellationTokenSource | undefined;

  constructor(
    private readonly server: Server,
    private readonly api: Api,
    private readonly acts: Acts,
  ) {
    this.view = vscode.window.createTreeView("nmLsp.memory", { treeDataProvider: this });
    this.subscriptions = [
      this.view,
      this.changed,
      this.view.onDidChangeVisibility(() => this.lookSoon()),
      vscode.window.onDidChangeTextEditorSelection((event) => event.textEditor === vscode.window.activeTextEditor && this.lookSoon()),
      vscode.window.onDidChangeActiveTextEditor((editor) => editor && this.lookSoon()),
      server.onState(() => this.lookSoon()),
      server.onStatusChanged(() => this.lookSoon()),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.running?.cancel();
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  lookSoon(): void {
    clearTimeout(this.timer);
    if (this.view.visible) {
      this.timer = setTimeout(() => void this.look(), QUIET_MS);
    }
  }

  private async look(): Promise<void> {
    this.running?.cancel();
    const source = (this.running = new vscode.CancellationTokenSource());
    const memory = await this.known(source.token).catch((error: unknown): Memory | undefined => {
      // A place that cannot be asked about keeps what is shown: the next move of the cursor asks again.
      this.server.output.debug(String(error));
      return isUnknownMethod(error) ? { kind: "unsupported" } : undefined;
    });
    if (memory && !source.token.isCancellationRequested && JSON.stringify(memory) !== JSON.stringify(this.memory)) {
      this.memory = memory;
      this.view.description = memory.kind === "known" ? symbolName(memory.symbol) : undefined;
      this.changed.fire();
    }
  }

  private async known(token: vscode.CancellationToken): Promise<Memory> {
    if (this.server.state.kind === "failed") {
      return { kind: "stopped" };
    }
    const editor = vscode.window.activeTextEditor;
    const folder = editor && isOnDisk(editor.document.uri) ? vscode.workspace.getWorkspaceFolder(editor.document.uri) : undefined;
    if (!editor || !folder || this.server.state.kind !== "running") {
      return this.memory.kind === "known" && !editor ? this.memory : { kind: "nowhere" };
    }
    const status = await this.api.call<StatusResult>("status", {}, folder, token);
    if (!status.ready) {
      return { kind: "indexing" };
    }
    const offers = await this.acts.offers(editor.document.uri, editor.selection);
    const symbol = offers[0]?.anchor ?? vscode.workspace.asRelativePath(editor.document.uri, false);
    const neighbors = await this.api.call<NeighborsResult>("neighbors", { symbol, limit: LIMIT }, folder, token);
    const next = await this.api.call<NextResult>("next", { symbol, limit: LIMIT }, folder, token).catch((error: unknown) => {
      if (isUnknownMethod(error)) {
        return undefined;
      }
      throw error;
    });
    return { kind: "known", symbol, neighbors, next };
  }

  getChildren(node?: MemoryNode): MemoryNode[] {
    if (!node) {
      return memoryTree(this.memory);
    }
    return node.kind === "section" ? node.children : [];
  }

  getTreeItem(node: MemoryNode): vscode.TreeItem {
    const item = new vscode.TreeItem(node.label);
    item.id = node.key;
    switch (node.kind) {
      case "section":
        item.description = node.description;
        item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
        break;
      case "place":
        item.description = node.description;
        item.tooltip = node.tooltip;
        item.iconPath = new vscode.ThemeIcon(node.isLearned ? "sparkle" : "references");
        item.command = { title: l10n.t("Open"), command: "nmLsp.open", arguments: [{ kind: "place", uri: node.uri, range: node.range }] };
        break;
      case "hint":
        item.tooltip = node.label;
        item.iconPath = new vscode.ThemeIcon("info");
        break;
    }
    return item;
  }
}
