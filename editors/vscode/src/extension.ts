/** Wires the parts together. Activation only registers; the server is found and started afterwards. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import type { AnchorNode, DecisionNode, GroupNode, Node } from "./logic/decisionTree";
import { PATH_SETTING } from "./logic/names";
import type { Target } from "./logic/page";
import type { Acknowledged, Range } from "./logic/wire";
import { Acts } from "./ui/acts";
import { Api } from "./ui/api";
import { Asking, openPlace } from "./ui/asking";
import type { Chosen } from "./ui/choices";
import { DecisionsView } from "./ui/decisionsView";
import { anchorUri, chooseFolder, diskFolders } from "./ui/folders";
import { installHooks, installModel } from "./ui/hooks";
import { MemoryView } from "./ui/memoryView";
import { Pages } from "./ui/pages";
import { router } from "./ui/routing";
import { Server } from "./ui/server";
import { StatusBar } from "./ui/statusBar";

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const began = performance.now();
  if (vscode.l10n.bundle) {
    l10n.config({ contents: vscode.l10n.bundle });
  }
  const pages = new Pages();
  let acts: Acts;
  let api: Api;
  const server = (running = new Server(context, router(() => acts, () => api)));
  api = new Api(server);
  acts = new Acts(server, api, pages);
  const asking = new Asking(api, pages, acts);
  const decisions = new DecisionsView(server, api, acts);
  const memory = new MemoryView(server, api, acts);
  const bar = new StatusBar(server, api, decisions);
  context.subscriptions.push(pages, server, decisions, memory, bar);
  const add = (name: string, run: (...args: never[]) => unknown): void => {
    context.subscriptions.push(vscode.commands.registerCommand(`nmLsp.${name}`, run));
  };

  add("ask", (question?: string) => asking.ask(question));
  add("search", () => asking.search());
  add("explain", () => asking.explain());
  add("copyContext", () => asking.copyContext());
  add("record", (target?: vscode.Uri | Node) => acts.record(target instanceof vscode.Uri ? target : undefined));
  add("diff", (node?: DecisionNode) => acts.diff(chosenOf(node)));
  add("restore", (node?: DecisionNode) => acts.restore(chosenOf(node)));
  add("invalidate", (node?: DecisionNode) => acts.invalidate(chosenOf(node)));
  add("restoreLayout", (node?: GroupNode) => acts.restoreLayout(node?.folder));
  add("reinstate", (node?: DecisionNode) => acts.reinstate(chosenOf(node)));
  add("supersede", (node?: DecisionNode) => acts.supersede(chosenOf(node)));
  add("amend", (node?: DecisionNode) => acts.amend(chosenOf(node)));
  add("history", (node?: DecisionNode) => acts.history(chosenOf(node)));
  add("showDecision", (node?: DecisionNode) => acts.show(chosenOf(node)));
  add("showStale", () => acts.showStale());
  add("filterDecisions", () => decisions.setFilter());
  add("clearFilter", () => decisions.applyFilter(""));
  add("refreshDecisions", () => scan(api, decisions));
  add("open", (target: Target) => openTarget(target, acts));
  add("openAnchor", (node: AnchorNode) => openAnchor(node));
  add("rebuildIndex", () => told(api, "index.rebuild"));
  add("cancelIndex", () => told(api, "index.cancel"));
  add("restartServer", () => server.restart());
  add("installServer", () => server.install());
  add("installHooks", () => installHooks(server));
  add("installModel", () => installModel(server));
  add("showOutput", () => server.output.show());
  add("menu", () => bar.menu());
  add("openSettings", () => vscode.commands.executeCommand("workbench.action.openSettings", `@ext:${context.extension.id}`));
  add("openServerSetting", () => vscode.commands.executeCommand("workbench.action.openSettings", `@id:${PATH_SETTING}`));
  const walkthrough = `${context.extension.id}#nmLsp.start`;
  add("openWalkthrough", () => server.announceTo(() => vscode.commands.executeCommand("workbench.action.openWalkthrough", walkthrough, false)));

  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(PATH_SETTING)) {
        void server.restart();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void (server.state.kind === "running" || server.restart())),
    vscode.workspace.onDidChangeWorkspaceFolders(() => {
      // The client itself tells a running server about folders.
      if (server.state.kind === "off" || diskFolders().length === 0) {
        void server.restart();
      }
    }),
  );
  // After activation has been reported: nobody waits for the server.
  setImmediate(() => void server.restart());
  server.output.info(`Activated in ${(performance.now() - began).toFixed(1)} ms`);
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}

function chosenOf(node: DecisionNode | Chosen | undefined): Chosen | undefined {
  if (!node) {
    return undefined;
  }
  return "row" in node && node.row ? { id: node.row.id, folder: node.folder, row: node.row, head: (node as DecisionNode).head } : (node as Chosen);
}

async function openTarget(target: Target, acts: Acts): Promise<void> {
  if (target.kind === "place") {
    await openPlace(target);
  } else {
    const folder = await chooseFolder();
    if (folder) {
      await acts.show({ id: target.id, folder: folder.uri.toString() });
    }
  }
}

async function openAnchor(node: AnchorNode): Promise<void> {
  const uri = anchorUri(node.anchor);
  if (!uri) {
    return;
  }
  if (node.anchor.kind === "glob") {
    await vscode.commands.executeCommand("workbench.action.quickOpen", node.anchor.repoPath.split(/[*?[{]/)[0]);
    return;
  }
  const isFolder = await vscode.workspace.fs.stat(uri).then((stat) => (stat.type & vscode.FileType.Directory) !== 0, () => false);
  if (isFolder) {
    await vscode.commands.executeCommand("revealInExplorer", uri);
    return;
  }
  const symbol = node.anchor.symbol;
  const range = symbol ? await symbolRange(uri, symbol) : undefined;
  await openPlace({ uri: uri.toString(), range: range ?? { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } } });
}

/** From whatever extension knows the symbols of the file; the file's first line where none does. */
async function symbolRange(uri: vscode.Uri, qualifiedName: string): Promise<Range | undefined> {
  const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>("vscode.executeDocumentSymbolProvider", uri);
  let level = symbols ?? [];
  let found: vscode.DocumentSymbol | undefined;
  for (const part of qualifiedName.replace(/#\d+$/, "").split(".")) {
    found = level.find((symbol) => symbol.name === part);
    level = found?.children ?? [];
  }
  if (found?.selectionRange) {
    return found.selectionRange;
  }
  const name = qualifiedName.replace(/#\d+$/, "").split(".").pop() ?? "";
  const document = await vscode.workspace.openTextDocument(uri);
  const at = new RegExp(`\\b(?:def|class|function|func|fn|struct|interface|type|trait|enum|const|let|var)\\s+${name.replace(/[^\w$]/g, "\\$&")}\\b`).exec(document.getText());
  return at ? new vscode.Range(document.positionAt(at.index), document.positionAt(at.index)) : undefined;
}

async function told(api: Api, name: string): Promise<void> {
  const folder = await chooseFolder();
  const result = folder && (await api.attempt(() => api.call<Acknowledged>(name, {}, folder)));
  if (result) {
    vscode.window.setStatusBarMessage(`$(info) ${result.message}`, 5_000);
  }
}

async function scan(api: Api, decisions: DecisionsView): Promise<void> {
  await api.attempt(() => Promise.all(diskFolders().map((folder) => api.call("decisions.scan", {}, folder))));
  decisions.refreshSoon();
}
