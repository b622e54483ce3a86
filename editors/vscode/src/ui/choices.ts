/** What a person is asked before an act on decisions: which one, for what, why, and what shall change. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { anchorName, anchorText, oneLine, statusWord } from "../logic/decisionTree";
import { alternativesOf, spokenAnchor } from "../logic/texts";
import type { DecisionDetail, DecisionRow } from "../logic/wire";
import { anchorUri } from "./folders";
import { ask } from "./guided";

/** One decision in one folder. `head` and `revision` are what the person saw, so that an act on something newer is refused. */
export interface Chosen { id: string; folder: string; row?: DecisionRow; revision?: number; head?: string | null }

export interface Offer { anchor: string; title: string; rationale: string }
export type Located = DecisionRow & { folder: string; head: string | null };
export type ChosenItem = vscode.QuickPickItem & { chosen: Chosen };

export function item(row: Located): ChosenItem {
  return {
    label: oneLine(row.title, 120),
    description: `${statusWord(row.status).toLowerCase()} · ${row.anchors.map(anchorText).join(", ").slice(0, 120)}`,
    detail: row.statusReason ? oneLine(row.statusReason) : undefined,
    chosen: { id: row.id, folder: row.folder, row, head: row.head },
  };
}

export function governs(row: Located, uri: vscode.Uri): boolean {
  return row.anchors.some((anchor) => anchorUri(anchor)?.toString() === uri.toString());
}

export function offerOf(argument: unknown): Offer | undefined {
  const fields = argument as { files?: string[]; title?: unknown; rationale?: unknown } | undefined;
  const anchor = fields?.files?.[0];
  return anchor ? { anchor, title: promptValue(fields?.title), rationale: promptValue(fields?.rationale) } : undefined;
}

/** The server puts a placeholder where a person is to be asked; its `value` is what it suggests. */
export function promptValue(value: unknown): string {
  if (typeof value === "string") {
    return value;
  }
  const prompt = (value as { prompt?: { value?: unknown } } | undefined)?.prompt;
  return typeof prompt?.value === "string" ? prompt.value : "";
}

export async function pickOffer(offers: Offer[]): Promise<Offer | undefined> {
  const items = offers.map((offer) => ({
    label: `$(${offer.anchor.includes("::") ? "symbol-method" : "file"}) ${spokenAnchor(offer.anchor)}`,
    description: offer.anchor.includes("::") ? l10n.t("this symbol, wherever it moves") : l10n.t("the whole file"),
    offer,
  }));
  return (await vscode.window.showQuickPick(items, { placeHolder: l10n.t("What does the decision govern?") }))?.offer;
}

export async function pickReason(question: string): Promise<string | undefined> {
  const own = l10n.t("Another reason…");
  const picked = await vscode.window.showQuickPick([...REASONS(), own], { placeHolder: question, ignoreFocusOut: true });
  if (picked !== own) {
    return picked;
  }
  return (await ask([{ title: question, prompt: l10n.t("The reason, in a sentence. It is kept with the decision.") }]))?.[0];
}

export async function amendments(detail: DecisionDetail): Promise<Record<string, unknown> | undefined> {
  const row = detail;
  const heading = l10n.t("Amend “{0}”", oneLine(row.title, 60));
  const file = vscode.window.activeTextEditor?.document.uri;
  const here = file?.scheme === "file" ? vscode.workspace.asRelativePath(file, false) : undefined;
  const choices = [
    { label: l10n.t("Why"), detail: oneLine(detail.rationale, 120), field: "rationale", value: detail.rationale },
    { label: l10n.t("Title"), detail: oneLine(row.title, 120), field: "title", value: row.title },
    { label: l10n.t("What was not chosen"), detail: oneLine(detail.alternatives.join("; "), 120), field: "alternatives", value: detail.alternatives.join("; ") },
    { label: l10n.t("What it governs"), detail: row.anchors.map(anchorText).join("; "), field: "files", value: row.anchors.filter((anchor) => anchor.state !== "gone").map(anchorName).join("; ") || (here ?? "") },
  ];
  const choice = await vscode.window.showQuickPick(choices, { placeHolder: l10n.t("What shall change?"), ignoreFocusOut: true });
  if (!choice) {
    return undefined;
  }
  const isList = choice.field === "alternatives" || choice.field === "files";
  const prompt = choice.field === "files" ? l10n.t("Paths or path::symbol, separated with semicolons. This confirms the decision anew for them.") : isList ? l10n.t("Separate with semicolons.") : l10n.t("The new text. What it said before is kept in its history.");
  const answers = await ask([{ title: heading, prompt, value: choice.value, optional: choice.field === "alternatives" }]);
  if (!answers) {
    return undefined;
  }
  return { [choice.field]: isList ? alternativesOf(answers[0]) : answers[0] };
}

const REASONS = (): string[] => [l10n.t("The code was replaced on purpose"), l10n.t("The reason no longer applies"), l10n.t("It was wrong from the start")];
