/** Virtual documents: answers, decisions, histories, and the texts a decision was confirmed with. */

import * as vscode from "vscode";
import { SCHEME } from "../logic/names";
import type { Link, Page } from "../logic/page";
import * as l10n from "@vscode/l10n";

export class Pages implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.CodeLensProvider, vscode.Disposable {
  private readonly pages = new Map<string, Page>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];

  constructor() {
    const selector = { scheme: SCHEME };
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.languages.registerDocumentLinkProvider(selector, this),
      vscode.languages.registerCodeLensProvider({ ...selector, language: "markdown" }, this),
      vscode.workspace.onDidCloseTextDocument((document) => {
        this.pages.delete(document.uri.toString());
      }),
      this.changed,
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** A read-only document; `name` is what its tab shows, `key` tells two of one name apart. */
  uri(name: string, key: string, page: Page): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${tabName(name)}`, query: key });
    this.pages.set(uri.toString(), page);
    this.changed.fire(uri);
    return uri;
  }

  async show(name: string, key: string, page: Page): Promise<void> {
    const document = await vscode.workspace.openTextDocument(this.uri(name, key, page));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.pages.get(uri.toString())?.text ?? l10n.t("This page is no longer kept. Ask again to see it.");
  }

  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    return this.linksOf(document).map((link) => {
      const found = new vscode.DocumentLink(rangeOf(link), commandUri(link));
      found.tooltip = link.target.kind === "place" ? l10n.t("Open this place") : l10n.t("Show this decision");
      return found;
    });
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    return this.linksOf(document)
      .filter((link) => link.target.kind === "place" && link.target.range.end.line > 0)
      .map((link) => new vscode.CodeLens(rangeOf(link), { title: l10n.t("Open"), command: "nmLsp.open", arguments: [link.target] }));
  }

  private linksOf(document: vscode.TextDocument): Link[] {
    return this.pages.get(document.uri.toString())?.links ?? [];
  }
}

function rangeOf(link: Link): vscode.Range {
  return new vscode.Range(link.line, link.start, link.line, link.end);
}

function commandUri(link: Link): vscode.Uri {
  return vscode.Uri.parse(`command:nmLsp.open?${encodeURIComponent(JSON.stringify([link.target]))}`);
}

/** What a path may hold, with the ending kept, since it names the language. */
function tabName(name: string): string {
  const [, stem, ending] = /^(.*?)(\.\w+)?$/s.exec(name) ?? ["", name, ""];
  return stem.replace(/[\\/:*?"<>|\n\r\t#%]+/g, " ").trim().slice(0, 80) + (ending ?? "");
}
