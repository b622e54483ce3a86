/** The Decisions view: what `decisionTree` says, drawn by the editor. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { anchorText, contextOf, decisionTree, type DecisionNode, type FolderDecisions, type GroupNode, type Node, oneLine, statusMeaning, statusWord } from "../logic/decisionTree";
import type { DecisionDetail, ListResult, Status, StatusResult } from "../logic/wire";
import type { Acts } from "./acts";
import type { Api } from "./api";
import { anchorUri, diskFolders } from "./folders";
import type { Server } from "./server";

const QUIET_MS = 150;
const AT_MOST = 1000;

const ICONS: Record<Status, vscode.ThemeIcon> = {
  stale: new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground")),
  unknown: new vscode.ThemeIcon("question"),
  active: new vscode.ThemeIcon("law"),
  invalidated: new vscode.ThemeIcon("circle-slash", new vscode.ThemeColor("disabledForeground")),
};

export class DecisionsView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly countsEmitter = new vscode.EventEmitter<void>();
  /** New numbers of stale decisions. */
  readonly onCounts = this.countsEmitter.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly subscriptions: vscode.Disposable[];
  private folders: FolderDecisions[] = [];
  private filter = "";
  private timer: NodeJS.Timeout | undefined;
  private reading = 0;

  constructor(
    private readonly server: Server,
    private readonly api: Api,
    private readonly acts: Acts,
  ) {
    this.view = vscode.window.createTreeView("nmLsp.decisions", { treeDataProvider: this, showCollapseAll: true });
    this.subscriptions = [
      this.view,
      this.changed,
      this.countsEmitter,
      server.onStatusChanged(() => this.refreshSoon()),
      server.onState((state) => (state.kind === "running" ? this.refreshSoon() : this.clear())),
      acts.onDidAct(() => this.refreshSoon()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.refreshSoon()),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** Per folder, by URI. */
  get staleCounts(): Map<string, number> {
    return new Map(this.folders.map((folder) => [folder.uri, folder.rows.filter((row) => row.status === "stale").length]));
  }

  async setFilter(): Promise<void> {
    const filter = await vscode.window.showInputBox({
      title: l10n.t("Filter decisions"),
      prompt: l10n.t("Words of the title, a path, an author, a tag or a status. Leave empty to see all."),
      value: this.filter,
    });
    if (filter !== undefined) {
      this.applyFilter(filter.trim());
    }
  }

  applyFilter(filter: string): void {
    this.filter = filter;
    void vscode.commands.executeCommand("setContext", "nmLsp.filtered", filter !== "");
    this.draw();
  }

  /** Asks the server in a moment, once for all that happens until then. */
  refreshSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.refresh();
    }, QUIET_MS);
  }

  private async refresh(): Promise<void> {
    if (this.server.state.kind !== "running") {
      return;
    }
    const reading = (this.reading += 1);
    const found = await Promise.all(diskFolders().map((folder) => this.read(folder)));
    if (reading === this.reading) {
      this.folders = found;
      this.draw();
    }
  }

  private async read(folder: vscode.WorkspaceFolder): Promise<FolderDecisions> {
    const uri = folder.uri.toString();
    try {
      // HEAD first: what is restored later was seen at this commit or at a newer one, never at an older one.
      const { head } = await this.api.call<StatusResult>("status", {}, folder);
      const { decisions, total } = await this.api.call<ListResult>("decisions.list", { limit: AT_MOST }, folder);
      return { uri, name: folder.name, rows: decisions, total, head };
    } catch (error) {
      // A folder that cannot answer shows what it showed before; the status bar says what is wrong.
      this.server.output.warn(String(error));
      return this.folders.find((known) => known.uri === uri) ?? { uri, name: folder.name, rows: [], total: 0, head: null };
    }
  }

  private clear(): void {
    this.reading += 1;
    this.folders = [];
    this.draw();
  }

  private draw(): void {
    const nStale = [...this.staleCounts.values()].reduce((sum, n) => sum + n, 0);
    const nAll = this.folders.reduce((sum, folder) => sum + folder.rows.length, 0);
    this.view.badge = nStale ? { value: nStale, tooltip: nStale === 1 ? l10n.t("1 stale decision") : l10n.t("{0} stale decisions", nStale) } : undefined;
    this.view.description = this.filter ? l10n.t("filter: {0}", this.filter) : undefined;
    const nShown = this.filter ? decisionTree(this.folders, this.filter).length : 1;
    this.view.message = nAll && !nShown ? l10n.t("No decision matches the filter.") : undefined;
    // Before the first answer nothing is known, and nothing is said.
    void vscode.commands.executeCommand("setContext", "nmLsp.decisions", nAll > 0 ? "some" : this.folders.length > 0 ? "none" : "unknown");
    this.changed.fire();
    this.countsEmitter.fire();
  }

  // -- the tree ---------------------------------------------------------------------------------------------------------

  getChildren(node?: Node): Node[] {
    if (!node) {
      return decisionTree(this.folders, this.filter);
    }
    return "children" in node ? node.children : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    const item = new vscode.TreeItem(node.label);
    item.id = node.key;
    switch (node.kind) {
      case "folder":
        item.iconPath = new vscode.ThemeIcon("folder");
        item.collapsibleState = vscode.TreeItemCollapsibleState.Expanded;
        break;
      case "group":
        this.drawGroup(item, node);
        break;
      case "decision":
        this.drawDecision(item, node);
        break;
      case "anchor": {
        const uri = anchorUri(node.anchor);
        item.description = node.description;
        item.tooltip = anchorText(node.anchor);
        item.iconPath = node.anchor.symbol ? new vscode.ThemeIcon("symbol-method") : vscode.ThemeIcon.File;
        if (uri) {
          item.resourceUri = node.anchor.symbol ? undefined : uri;
          item.command = { title: l10n.t("Open"), command: "nmLsp.openAnchor", arguments: [node] };
        }
        break;
      }
      case "note":
        item.iconPath = new vscode.ThemeIcon("info");
        break;
    }
    return item;
  }

  private drawGroup(item: vscode.TreeItem, node: GroupNode): void {
    item.description = node.description;
    item.tooltip = statusMeaning(node.status);
    item.contextValue = node.nLayout > 0 ? "group.layout" : `group.${node.status}`;
    item.collapsibleState = node.status === "invalidated" ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.Expanded;
  }

  private drawDecision(item: vscode.TreeItem, node: DecisionNode): void {
    item.description = node.description;
    item.iconPath = ICONS[node.row.status];
    item.contextValue = contextOf(node.row);
    item.collapsibleState = vscode.TreeItemCollapsibleState.Collapsed;
    item.accessibilityInformation = { label: `${node.label}, ${statusWord(node.row.status)}, ${node.description}` };
    item.command = { title: l10n.t("Show"), command: "nmLsp.showDecision", arguments: [node] };
  }

  /** The reason on hover; the whole text is fetched when somebody looks. */
  async resolveTreeItem(item: vscode.TreeItem, node: Node, token: vscode.CancellationToken): Promise<vscode.TreeItem> {
    if (node.kind !== "decision") {
      return item;
    }
    let detail: DecisionDetail | undefined;
    try {
      detail = await this.acts.detail({ id: node.row.id, folder: node.folder });
    } catch (error) {
      this.server.output.debug(String(error));
    }
    if (!token.isCancellationRequested) {
      item.tooltip = tooltip(node, detail);
    }
    return item;
  }
}

/** Texts of the repository are appended as text: nothing in them becomes a link or a command. */
function tooltip(node: DecisionNode, detail: DecisionDetail | undefined): vscode.MarkdownString {
  const text = new vscode.MarkdownString();
  text.appendMarkdown("**").appendText(oneLine(node.row.title, 300)).appendMarkdown("**\n\n");
  text.appendText(`${statusWord(node.row.status)} · ${node.row.id}`);
  if (node.row.statusReason) {
    text.appendMarkdown("\n\n").appendText(oneLine(node.row.statusReason, 1000));
  }
  if (detail?.rationale) {
    text.appendMarkdown("\n\n---\n\n").appendText(detail.rationale.slice(0, 2000));
  }
  return text;
}
