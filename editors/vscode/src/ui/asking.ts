/** Questions to the memory: answers, live search, explanations and context for agents. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { oneLine, statusWord } from "../logic/decisionTree";
import { answerPage, explainPage, missingNotes } from "../logic/page";
import type { DecisionRow, ExplainResult, Hit, Missing, QueryResult, Range, SearchResult, WakeupResult } from "../logic/wire";
import type { Acts } from "./acts";
import type { Api } from "./api";
import { chooseFolder } from "./folders";
import { ask } from "./guided";
import type { Pages } from "./pages";

const TYPING_MS = 150;
const N_FOUND = 20;
const N_DECISIONS = 5;

const ICONS: Record<string, string> = {
  module: "file-code", class: "symbol-class", function: "symbol-function", method: "symbol-method", constant: "symbol-constant", section: "symbol-string", file: "file",
};

export class Asking {
  private lastQuestion: { query: string; folder: vscode.WorkspaceFolder } | undefined;

  constructor(
    private readonly api: Api,
    private readonly pages: Pages,
    private readonly acts: Acts,
  ) {}

  async ask(given?: string): Promise<void> {
    const folder = await chooseFolder();
    const query = folder && (given ?? (await this.question(l10n.t("Ask the memory"), selectedText())));
    if (!query) {
      return;
    }
    const answer = await this.query(query, folder, l10n.t("Looking for the answer"));
    if (answer) {
      await this.pages.show(`${oneLine(query, 60)}.md`, folder.name, answerPage(query, answer));
    }
  }

  /** The whole context of a question, or an introduction to the workspace where nothing is asked. */
  async copyContext(): Promise<void> {
    const folder = await chooseFolder();
    if (!folder) {
      return;
    }
    const answers = await ask([
      {
        title: l10n.t("Copy context for an agent"),
        prompt: l10n.t("What is the agent going to work on? Leave empty for an introduction to this workspace."),
        value: this.lastQuestion?.query ?? "",
        optional: true,
      },
    ]);
    if (!answers) {
      return;
    }
    const text = answers[0]
      ? await this.query(answers[0], folder, l10n.t("Collecting the context"))
      : await this.api.attempt(() => this.api.call<WakeupResult>("wakeup", {}, folder));
    if (text) {
      await vscode.env.clipboard.writeText(text.text);
      void vscode.window.showInformationMessage(l10n.t("Copied {0} tokens of context. Paste them into the agent's prompt.", text.tokens));
    }
  }

  async explain(): Promise<void> {
    const last = this.lastQuestion;
    if (!last) {
      void vscode.window.showInformationMessage(l10n.t("Nothing has been asked in this window yet. “Ask the Memory…” comes first."));
      return;
    }
    await this.api.attempt(async () => {
      const result = await this.api.call<ExplainResult>("explain", { query: last.query }, last.folder);
      await this.pages.show(l10n.t("Explanation - {0}", oneLine(last.query, 60)) + ".md", last.folder.name, explainPage(result));
    });
  }

  /** Results while one types; going through them shows nothing yet, choosing one opens it. */
  async search(): Promise<void> {
    const folder = await chooseFolder();
    if (!folder) {
      return;
    }
    const picker = vscode.window.createQuickPick<FoundItem>();
    picker.title = l10n.t("Search the memory");
    picker.placeholder = l10n.t("A name, or a few words about what the code does");
    const aside: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("split-horizontal"), tooltip: l10n.t("Open to the Side") };
    let timer: NodeJS.Timeout | undefined;
    let running: vscode.CancellationTokenSource | undefined;
    const stop = (): void => {
      clearTimeout(timer);
      running?.cancel();
    };
    picker.onDidChangeValue((value) => {
      stop();
      if (value.trim() === "") {
        picker.items = [];
        picker.busy = false;
        return;
      }
      picker.busy = true;
      timer = setTimeout(() => {
        const source = (running = new vscode.CancellationTokenSource());
        void this.found(value, folder, source.token, aside).then((items) => {
          if (!source.token.isCancellationRequested) {
            picker.items = items;
            picker.busy = false;
          }
        });
      }, TYPING_MS);
    });
    picker.onDidAccept(() => {
      const [selected] = picker.selectedItems;
      if (selected?.open) {
        picker.hide();
        void selected.open(false);
      }
    });
    picker.onDidTriggerItemButton((event) => void event.item.open?.(true));
    picker.onDidHide(() => {
      stop();
      picker.dispose();
    });
    picker.show();
  }

  private async found(query: string, folder: vscode.WorkspaceFolder, token: vscode.CancellationToken, aside: vscode.QuickInputButton): Promise<FoundItem[]> {
    try {
      const [code, decisions] = await Promise.all([
        this.api.call<SearchResult>("search", { query, limit: N_FOUND }, folder, token),
        this.api.call<{ hits: { decision: DecisionRow }[] }>("decisions.search", { query, status: "all", limit: N_DECISIONS }, folder, token),
      ]);
      return this.items(code, decisions.hits.map((hit) => hit.decision), folder, aside);
    } catch (error) {
      return token.isCancellationRequested ? [] : [note(error instanceof Error ? error.message : String(error))];
    }
  }

  private items(code: SearchResult, decisions: DecisionRow[], folder: vscode.WorkspaceFolder, aside: vscode.QuickInputButton): FoundItem[] {
    const items: FoundItem[] = code.hits.map((hit) => ({
      label: `$(${ICONS[hit.kind] ?? "symbol-misc"}) ${oneLine(hit.name)}`,
      description: `${hit.path}:${hit.range.start.line + 1}`,
      detail: hit.signature === hit.name ? undefined : oneLine(hit.signature, 140),
      alwaysShow: true,
      buttons: [aside],
      open: (beside) => openPlace(hit, beside),
    }));
    if (decisions.length > 0) {
      items.push({ label: l10n.t("decisions"), kind: vscode.QuickPickItemKind.Separator });
      items.push(
        ...decisions.map((row): FoundItem => ({
          label: `$(law) ${oneLine(row.title, 120)}`,
          description: statusWord(row.status).toLowerCase(),
          alwaysShow: true,
          open: () => this.acts.show({ id: row.id, folder: folder.uri.toString(), row }),
        })),
      );
    }
    if (items.length === 0) {
      items.push(note(l10n.t("Nothing matches. Try the words the code itself would use.")));
    }
    return [...items, ...missing(code.partial).map(note)];
  }

  private question(title: string, value: string): Promise<string | undefined> {
    return ask([{ title, prompt: l10n.t("How does something work, where is it, why is it so?"), placeholder: l10n.t("How are payments rounded?"), value }]).then((answers) => answers?.[0]);
  }

  private async query(query: string, folder: vscode.WorkspaceFolder, title: string): Promise<QueryResult | undefined> {
    return this.api.attempt(async () => {
      const answer = await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title, cancellable: true }, (_, token) =>
        this.api.call<QueryResult>("query", { query }, folder, token),
      );
      this.lastQuestion = { query, folder };
      return answer;
    });
  }
}

type FoundItem = vscode.QuickPickItem & { open?: (beside: boolean) => Promise<void> };

function note(text: string): FoundItem {
  return { label: `$(info) ${text}`, alwaysShow: true };
}

function missing(partial: readonly Missing[]): string[] {
  return missingNotes(partial).slice(0, 1);
}

function selectedText(): string {
  const editor = vscode.window.activeTextEditor;
  const text = editor && !editor.selection.isEmpty ? editor.document.getText(editor.selection) : "";
  return text.includes("\n") || text.length > 200 ? "" : text;
}

export async function openPlace(place: Pick<Hit, "uri"> & { range: Range }, beside = false): Promise<void> {
  const { start } = place.range;
  const position = new vscode.Position(start.line, start.character);
  const options: vscode.TextDocumentShowOptions = { selection: new vscode.Range(position, position), viewColumn: beside ? vscode.ViewColumn.Beside : undefined, preserveFocus: beside };
  await vscode.commands.executeCommand("vscode.open", vscode.Uri.parse(place.uri), options);
}
