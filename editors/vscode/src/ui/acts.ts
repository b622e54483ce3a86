/** What a person does to decisions: record, restore, invalidate, amend, look at. Each asks for what it needs. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { oneLine, statusWord } from "../logic/decisionTree";
import { COMMAND_PREFIX } from "../logic/names";
import { decisionPage, governingPage, historyPage } from "../logic/page";
import { alternativesOf, asConfirmed, spokenAnchor } from "../logic/texts";
import type { DecisionDetail, DecisionResult, DecisionRow, DecisionsResult, DiffResult, HistoryResult, ListResult, RecordResult, Status, StatusResult } from "../logic/wire";
import type { Api } from "./api";
import { amendments, type Chosen, type ChosenItem, governs, item, type Located, type Offer, offerOf, pickOffer, pickReason } from "./choices";
import { anchorUri, diskFolders } from "./folders";
import { ask } from "./guided";
import type { Pages } from "./pages";
import type { Server } from "./server";

export class Acts {
  private readonly didActEmitter = new vscode.EventEmitter<void>();
  readonly onDidAct = this.didActEmitter.event;

  constructor(
    private readonly server: Server,
    private readonly api: Api,
    private readonly pages: Pages,
  ) {}

  // -- recording ------------------------------------------------------------------------------------------------------

  /** For the symbol around the cursor or the file, as the server sees it. */
  async record(uri?: vscode.Uri): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const target = uri ?? editor?.document.uri;
    const folder = target?.scheme === "file" ? vscode.workspace.getWorkspaceFolder(target) : undefined;
    if (!target || !folder) {
      void vscode.window.showInformationMessage(l10n.t("Open a saved file of this workspace first: a decision is recorded for a file or for a symbol in it."));
      return;
    }
    await this.api.attempt(async () => {
      const selection = editor && editor.document.uri.toString() === target.toString() ? editor.selection : undefined;
      const offers = selection ? await this.offers(target, selection) : [];
      const file = vscode.workspace.asRelativePath(target, false);
      const choices = offers.length ? offers : [{ anchor: file, title: "", rationale: "" }];
      const offer = choices.length === 1 ? choices[0] : await pickOffer(choices);
      if (offer) {
        await this.recordFor([offer.anchor], folder.uri.toString(), offer.title, offer.rationale);
      }
    });
  }

  async recordFor(files: string[], folder: string, title: string, rationale: string): Promise<void> {
    const heading = l10n.t("Record a decision for {0}", files.map(spokenAnchor).join(", "));
    const answers = await ask([
      { title: heading, prompt: l10n.t("What was decided? One sentence."), placeholder: l10n.t("Amounts are whole cents"), value: title },
      { title: heading, prompt: l10n.t("Why? This is what the next reader needs."), placeholder: l10n.t("Floating point lost a cent in 2023"), value: rationale },
      { title: heading, prompt: l10n.t("What was not chosen? Separate with semicolons; leave empty if nothing."), placeholder: l10n.t("decimal; float with rounding"), optional: true },
    ]);
    if (!answers) {
      return;
    }
    await this.api.attempt(async () => {
      const [titled, why, others] = answers;
      const params = { title: titled, rationale: why, files, alternatives: alternativesOf(others) };
      const result = await this.api.call<RecordResult>("decisions.record", params, folder);
      this.didActEmitter.fire();
      await this.told(result, folder);
    });
  }

  private async told(result: RecordResult, folder: string): Promise<void> {
    const row = result.decision;
    const show = l10n.t("Show");
    const near = result.similar[0];
    const text = near
      ? l10n.t("Recorded “{0}”. There is a similar one, “{1}” ({2}): {3}", oneLine(row.title, 80), oneLine(near.decision.title, 80), statusWord(near.decision.status).toLowerCase(), near.why)
      : l10n.t("Recorded “{0}”. You will be told when a commit changes what it governs.", oneLine(row.title, 80));
    const told = near ? vscode.window.showWarningMessage(text, show) : vscode.window.showInformationMessage(text, show);
    void told.then((chosen) => (chosen ? this.show({ id: near ? near.decision.id : row.id, folder }) : undefined));
  }

  /** What the server offers to record at a place: the symbol first, then the file. */
  async offers(uri: vscode.Uri, range: vscode.Range): Promise<Offer[]> {
    const params = {
      textDocument: { uri: this.server.uriText(uri) },
      range: { start: plain(range.start), end: plain(range.end) },
      context: { diagnostics: [], only: ["refactor"], triggerKind: 1 },
    };
    const actions = await this.server.request<{ command?: { command: string; arguments?: unknown[] } }[] | null>("textDocument/codeAction", params);
    return (actions ?? [])
      .filter((action) => action.command?.command === `${COMMAND_PREFIX}.decisions.record`)
      .map((action) => offerOf(action.command?.arguments?.[0]))
      .filter((offer) => offer !== undefined);
  }

  // -- judging --------------------------------------------------------------------------------------------------------

  async restore(given?: Chosen): Promise<void> {
    const chosen = given ?? (await this.choose(["stale"], l10n.t("Which decision still holds?")));
    if (!chosen) {
      return;
    }
    await this.api.attempt(async () => {
      const expect = this.expectation(chosen);
      const seen = { ...(expect === undefined ? {} : { expect: { [chosen.id]: expect } }), ...(chosen.head ? { head: chosen.head } : {}) };
      const result = await this.api.call<DecisionsResult>("decisions.restore", { ids: [chosen.id], ...seen }, chosen.folder);
      this.didActEmitter.fire();
      brief(l10n.t("Restored “{0}”: it holds as of this commit.", oneLine(result.decisions[0]?.title ?? chosen.id, 80)));
    });
  }

  /** All at once where a formatter's commit changed nothing but comments and layout. */
  async restoreLayout(folder?: string): Promise<void> {
    await this.api.attempt(async () => {
      const rows = (await this.rows(["stale"])).filter((row) => row.reason === "layout" && (!folder || row.folder === folder));
      const [first] = rows;
      if (!first) {
        void vscode.window.showInformationMessage(l10n.t("No decision is stale because of comments or layout alone."));
        return;
      }
      const same = rows.filter((row) => row.folder === first.folder);
      const yes = l10n.t("Restore");
      const question = same.length === 1 ? l10n.t("Restore the decision where only comments or layout changed?") : l10n.t("Restore all {0} decisions where only comments or layout changed?", same.length);
      const detail = same.slice(0, 20).map((row) => oneLine(row.title, 80)).join("\n");
      if ((await vscode.window.showInformationMessage(question, { modal: true, detail }, yes)) === yes) {
        const head = first.head ? { head: first.head } : {};
        const { decisions } = await this.api.call<DecisionsResult>("decisions.restore", { all: "layout", confirm: same.length, ...head }, first.folder);
        this.didActEmitter.fire();
        brief(l10n.t("Restored {0} decisions.", decisions.length));
      }
    });
  }

  async invalidate(given?: Chosen): Promise<void> {
    const chosen = given ?? (await this.choose(["stale", "active", "unknown"], l10n.t("Which decision no longer holds?")));
    if (!chosen) {
      return;
    }
    const row = chosen.row ?? (await this.rowOf(chosen));
    const reason = row && (await pickReason(l10n.t("Why does “{0}” no longer hold?", oneLine(row.title, 60))));
    if (!row || !reason) {
      return;
    }
    await this.api.attempt(async () => {
      await this.api.call<DecisionResult>("decisions.invalidate", { id: chosen.id, reason, expect: this.expectation({ ...chosen, row }) }, chosen.folder);
      this.didActEmitter.fire();
      brief(l10n.t("Invalidated “{0}”. It is kept, with your reason.", oneLine(row.title, 80)));
    });
  }

  async reinstate(given?: Chosen): Promise<void> {
    const chosen = given ?? (await this.choose(["invalidated"], l10n.t("Which decision holds again?")));
    const answers = chosen && (await ask([{ title: l10n.t("Reinstate a decision"), prompt: l10n.t("Why does it hold again?") }]));
    if (!chosen || !answers) {
      return;
    }
    await this.api.attempt(async () => {
      const result = await this.api.call<DecisionResult>("decisions.reinstate", { id: chosen.id, reason: answers[0], expect: this.expectation(chosen) }, chosen.folder);
      this.didActEmitter.fire();
      brief(l10n.t("“{0}” holds again.", oneLine(result.decision.title, 80)));
    });
  }

  async supersede(given?: Chosen): Promise<void> {
    const chosen = given ?? (await this.choose(["stale", "active"], l10n.t("Which decision is replaced?")));
    const by = chosen && (await this.choose(["active"], l10n.t("Which decision replaces it?"), chosen));
    const reason = by && (await pickReason(l10n.t("Why was it replaced?")));
    if (!chosen || !by || !reason) {
      return;
    }
    await this.api.attempt(async () => {
      await this.api.call<DecisionResult>("decisions.supersede", { id: chosen.id, by: by.id, reason, expect: this.expectation(chosen) }, chosen.folder);
      this.didActEmitter.fire();
      brief(l10n.t("Replaced. The old decision is kept and names the new one."));
    });
  }

  /** Hides the mark of what was seen, until the next change. */
  async acknowledge(chosen: Chosen): Promise<void> {
    await this.api.attempt(async () => {
      const expect = this.expectation(chosen);
      await this.api.call("decisions.acknowledge", { ids: [chosen.id], ...(expect === undefined ? {} : { expect: { [chosen.id]: expect } }) }, chosen.folder);
      this.didActEmitter.fire();
    });
  }

  async amend(given?: Chosen): Promise<void> {
    const chosen = given ?? (await this.choose(["stale", "active", "unknown"], l10n.t("Which decision is to be amended?")));
    const detail = chosen && (await this.api.attempt(() => this.detail(chosen)));
    if (!chosen || !detail) {
      return;
    }
    const set = await amendments(detail);
    if (!set) {
      return;
    }
    await this.api.attempt(async () => {
      const result = await this.api.call<DecisionResult>("decisions.amend", { id: chosen.id, set, expect: chosen.revision ?? detail.revision }, chosen.folder);
      this.didActEmitter.fire();
      brief(l10n.t("Amended “{0}”. What it said before is in its history.", oneLine(result.decision.title, 80)));
    });
  }

  // -- looking --------------------------------------------------------------------------------------------------------

  async show(given?: Chosen): Promise<void> {
    const chosen = given ?? (await this.choose(ALL, l10n.t("Which decision?")));
    if (chosen) {
      await this.api.attempt(async () => {
        const detail = await this.detail(chosen);
        const page = decisionPage(detail, (anchor) => anchorUri(anchor)?.toString());
        await this.pages.show(`${oneLine(detail.title, 60)}.md`, `${detail.id} ${chosen.folder}`, page);
      });
    }
  }

  async showGoverning(path: string, folder: string): Promise<void> {
    await this.api.attempt(async () => {
      const { decisions } = await this.api.call<ListResult>("decisions.list", { path }, folder);
      if (decisions.length === 1) {
        await this.show({ id: decisions[0].id, folder });
      } else {
        await this.pages.show(l10n.t("Decisions that govern {0}", path.split("/").pop() ?? path) + ".md", `${path} ${folder}`, governingPage(path, decisions));
      }
    });
  }

  async history(given?: Chosen): Promise<void> {
    const chosen = given ?? (await this.choose(ALL, l10n.t("Whose history?")));
    if (chosen) {
      await this.api.attempt(async () => {
        const history = await this.api.call<HistoryResult>("decisions.history", { id: chosen.id }, chosen.folder);
        await this.pages.show(l10n.t("History of {0}", oneLine(history.title, 60)) + ".md", `${history.id} ${chosen.folder}`, historyPage(history));
      });
    }
  }

  /** The confirmed text beside the file as it is, in the editor's own diff. */
  async diff(given?: Chosen): Promise<void> {
    const chosen = given ?? (await this.choose(["stale", "active", "unknown"], l10n.t("What changed since which decision?")));
    if (!chosen) {
      return;
    }
    await this.api.attempt(async () => {
      const diff = await this.api.call<DiffResult>("decisions.diff", { id: chosen.id }, chosen.folder);
      const name = diff.repoPath.split("/").pop() ?? diff.repoPath;
      if (diff.seen === null && diff.now === null) {
        const text = diff.text || l10n.t("There is nothing to compare: the texts are not in this clone.");
        await this.pages.show(`${name}.diff`, `${chosen.id} ${chosen.folder}`, { text, links: [] });
        return;
      }
      const file = vscode.Uri.parse(diff.uri);
      const whole = diff.now === null ? undefined : await textOf(file);
      const before = whole === undefined ? undefined : asConfirmed(whole, diff.seen ?? "", diff.now ?? "");
      const seen = this.pages.uri(name, `${chosen.id} seen`, { text: before ?? diff.seen ?? "", links: [] });
      // The file itself where it can be, so that it can be edited in the diff.
      const now = before === undefined ? this.pages.uri(name, `${chosen.id} now`, { text: diff.now ?? "", links: [] }) : file;
      const at = diff.seenCommit ? l10n.t("confirmed at {0}", diff.seenCommit.slice(0, 8)) : l10n.t("as confirmed");
      await vscode.commands.executeCommand("vscode.diff", seen, now, l10n.t("{0}: {1} ↔ now", name, at), { preview: true });
    });
  }

  /** A list of what is stale, with the buttons that settle it. */
  async showStale(): Promise<void> {
    await this.api.attempt(async () => {
      const rows = await this.rows(["stale"]);
      if (rows.length === 0) {
        void vscode.window.showInformationMessage(l10n.t("No decision is stale: everything recorded still holds as far as commits tell."));
        return;
      }
      const buttons: [vscode.QuickInputButton, (chosen: Chosen) => Promise<void>][] = [
        [{ iconPath: new vscode.ThemeIcon("diff"), tooltip: l10n.t("What Changed Since") }, (chosen) => this.diff(chosen)],
        [{ iconPath: new vscode.ThemeIcon("check"), tooltip: l10n.t("Restore: It Still Holds") }, (chosen) => this.restore(chosen)],
        [{ iconPath: new vscode.ThemeIcon("circle-slash"), tooltip: l10n.t("Invalidate…") }, (chosen) => this.invalidate(chosen)],
      ];
      const picker = vscode.window.createQuickPick<ChosenItem>();
      picker.title = l10n.t("Stale decisions");
      picker.placeholder = l10n.t("Choose one to see what changed");
      picker.matchOnDescription = picker.matchOnDetail = true;
      picker.items = rows.map((row) => ({ ...item(row), buttons: buttons.map(([button]) => button) }));
      picker.onDidTriggerItemButton((event) => {
        picker.hide();
        void buttons.find(([button]) => button === event.button)?.[1](event.item.chosen);
      });
      picker.onDidAccept(() => {
        const [selected] = picker.selectedItems;
        picker.hide();
        if (selected) {
          void this.diff(selected.chosen);
        }
      });
      picker.onDidHide(() => picker.dispose());
      picker.show();
    });
  }

  // -- inside -----------------------------------------------------------------------------------------------------------

  async detail(chosen: Chosen): Promise<DecisionDetail> {
    const { decisions } = await this.api.call<{ decisions: DecisionDetail[] }>("decisions.get", { ids: [chosen.id] }, chosen.folder);
    return decisions[0];
  }

  private async rowOf(chosen: Chosen): Promise<DecisionRow | undefined> {
    return this.api.attempt(() => this.detail(chosen));
  }

  private expectation(chosen: Chosen): number | undefined {
    return chosen.revision ?? chosen.row?.revision;
  }

  /** Those that govern the file in front first, then all others. */
  private async choose(statuses: readonly Status[], placeHolder: string, except?: Chosen): Promise<Chosen | undefined> {
    return this.api.attempt(async () => {
      const rows = (await this.rows(statuses)).filter((row) => row.id !== except?.id && (!except || row.folder === except.folder));
      if (rows.length === 0) {
        void vscode.window.showInformationMessage(l10n.t("There is no such decision in this workspace. “Record a Decision” makes one."));
        return undefined;
      }
      const active = vscode.window.activeTextEditor?.document.uri;
      const here = rows.filter((row) => active && governs(row, active));
      const rest = rows.filter((row) => !here.includes(row));
      const separator = (label: string): ChosenItem => ({ label, kind: vscode.QuickPickItemKind.Separator, chosen: { id: "", folder: "" } });
      const items = [...(here.length ? [separator(l10n.t("this file")), ...here.map(item), separator(l10n.t("other files"))] : []), ...rest.map(item)];
      const picked = await vscode.window.showQuickPick(items, { placeHolder, matchOnDescription: true, matchOnDetail: true });
      return picked?.chosen;
    });
  }

  private async rows(statuses: readonly Status[]): Promise<Located[]> {
    const found = await Promise.all(
      diskFolders().map(async (folder) => {
        const uri = folder.uri.toString();
        const params = statuses.length === 1 ? { status: statuses[0], limit: 1000 } : { limit: 1000 };
        const { head } = await this.api.call<StatusResult>("status", {}, folder);
        const { decisions } = await this.api.call<ListResult>("decisions.list", params, folder);
        return decisions.filter((row) => statuses.includes(row.status)).map((row) => ({ ...row, folder: uri, head }));
      }),
    );
    // Folders of one repository share their decisions.
    const seen = new Set<string>();
    return found.flat().filter((row) => !seen.has(row.id) && seen.add(row.id));
  }
}

const ALL: readonly Status[] = ["stale", "unknown", "active", "invalidated"];

async function textOf(uri: vscode.Uri): Promise<string | undefined> {
  const bytes = await vscode.workspace.fs.readFile(uri).then((read) => read, () => undefined);
  return bytes && new TextDecoder().decode(bytes);
}

/** Said in the status bar for a moment: what was asked for was done. */
function brief(text: string): void {
  vscode.window.setStatusBarMessage(`$(check) ${text}`, 5_000);
}

function plain(position: vscode.Position): { line: number; character: number } {
  return { line: position.line, character: position.character };
}
