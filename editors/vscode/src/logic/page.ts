/** Readable pages of plain Markdown with places to go to. Each link is a span of the text. */

import * as l10n from "@vscode/l10n";
import { anchorText, oneLine, stateWord, statusWord } from "./decisionTree";
import { symbolName } from "./memoryTree";
import type { AnchorRow, DecisionDetail, DecisionRow, ExplainResult, HistoryResult, Hit, Missing, QueryResult, Range } from "./wire";

export type Target = { kind: "place"; uri: string; range: Range } | { kind: "decision"; id: string };
export interface Link { line: number; start: number; end: number; target: Target }
export interface Page { text: string; links: Link[] }

/** Collects lines and the spans that lead somewhere. Columns count UTF-16 units, as the editor does. */
class Writer {
  private readonly lines: string[] = [];
  private readonly links: Link[] = [];

  line(...parts: (string | [string, Target])[]): void {
    let text = "";
    for (const part of parts) {
      if (typeof part === "string") {
        text += part;
      } else {
        this.links.push({ line: this.lines.length, start: text.length, end: text.length + part[0].length, target: part[1] });
        text += part[0];
      }
    }
    this.lines.push(text);
  }

  block(text: string, language: string): void {
    // The fence is longer than any in the text, so that nothing in it can close the block.
    const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((match) => match[0].length));
    const fence = "`".repeat(longest + 1);
    this.lines.push(`${fence}${language}`, ...text.replace(/\s+$/, "").split(/\r?\n/), fence);
  }

  prose(text: string): void {
    this.lines.push(...text.replace(/\s+$/, "").split(/\r?\n/));
  }

  page(): Page {
    return { text: `${this.lines.join("\n")}\n`, links: this.links };
  }
}

/** The answer to a question: places first, for people; the whole context at the end, as an agent gets it. */
export function answerPage(question: string, answer: QueryResult): Page {
  const writer = new Writer();
  writer.line(`# ${oneLine(question)}`);
  writer.line();
  for (const note of missingNotes(answer.partial)) {
    writer.line(`> ${note}`);
    writer.line();
  }
  if (answer.hits.length === 0) {
    writer.line(l10n.t("Nothing in this workspace matches. Try the words the code itself would use."));
    return writer.page();
  }
  const decisions = answer.decisions ?? [];
  if (decisions.length > 0) {
    writer.line(`## ${l10n.t("Decisions that govern these places")}`);
    writer.line();
    for (const row of decisions) {
      decisionLine(writer, row);
    }
    writer.line();
  }
  writer.line(`## ${l10n.t("Where to look")}`);
  for (const [at, hit] of answer.hits.entries()) {
    writer.line();
    writer.line(`${at + 1}. `, [placeText(hit), place(hit)], `  ${hit.kind} ${oneLine(hit.name)}`);
    writer.line();
    writer.block(hit.text || hit.signature, languageOf(hit.path));
  }
  writer.line();
  writer.line(`## ${l10n.t("The context an agent gets ({0} tokens)", answer.tokens)}`);
  writer.line();
  writer.prose(answer.text);
  return writer.page();
}

/** Why each hit of an answer is there. */
export function explainPage(result: ExplainResult): Page {
  const writer = new Writer();
  writer.line(`# ${l10n.t("Why these places: {0}", oneLine(result.query))}`);
  writer.line();
  for (const note of missingNotes(result.partial)) {
    writer.line(`> ${note}`);
    writer.line();
  }
  for (const [at, hit] of result.hits.entries()) {
    writer.line(`${at + 1}. `, [placeText(hit), place(hit)], `  ${oneLine(symbolName(hit.id))} · ${l10n.t("score {0}", hit.score.toFixed(2))}`);
    for (const reason of hit.reasons) {
      writer.line(`   - ${oneLine(reason, 400)}`);
    }
    writer.line();
  }
  writer.prose(result.text);
  return writer.page();
}

/** Everything about one decision. */
export function decisionPage(detail: DecisionDetail, placeOf: (anchor: AnchorRow) => string | undefined): Page {
  const row = detail;
  const writer = new Writer();
  writer.line(`# ${oneLine(row.title)}`);
  writer.line();
  writer.line(`${statusWord(row.status)} · ${row.id} · ${l10n.t("recorded {0} by {1}", day(row.recordedAt), oneLine(row.author ?? detail.recordedBy))}`);
  writer.line();
  if (row.statusReason) {
    writer.line(`> ${oneLine(row.statusReason, 1000)}`);
    writer.line();
  }
  if (detail.invalidatedReason && detail.invalidatedReason !== row.statusReason) {
    writer.line(`> ${l10n.t("Invalidated because: {0}", oneLine(detail.invalidatedReason, 1000))}`);
    writer.line();
  }
  writer.line(`## ${l10n.t("Why")}`);
  writer.line();
  writer.prose(detail.rationale || l10n.t("No reason was recorded."));
  section(writer, l10n.t("What was not chosen"), detail.alternatives);
  writer.line();
  writer.line(`## ${l10n.t("What it governs")}`);
  writer.line();
  for (const anchor of row.anchors) {
    const uri = placeOf(anchor);
    const state = anchor.state === "holds" ? "" : `  (${stateWord(anchor.state)})`;
    writer.line("- ", uri ? [anchorText(anchor), { kind: "place", uri, range: TOP }] : anchorText(anchor), state);
  }
  section(writer, l10n.t("Evidence"), detail.evidence);
  linked(writer, l10n.t("Depends on"), detail.dependsOn);
  linked(writer, l10n.t("Replaced by"), row.supersededBy ? [row.supersededBy] : []);
  writer.line();
  const times = detail.confirmations === 1 ? l10n.t("confirmed once") : l10n.t("confirmed {0} times", detail.confirmations);
  writer.line(`${times}, ${l10n.t("last on {0}", day(detail.confirmedAt))}`);
  return writer.page();
}

/** Who said what about a decision, oldest first. */
export function historyPage(history: HistoryResult): Page {
  const writer = new Writer();
  writer.line(`# ${l10n.t("History: {0}", oneLine(history.title))}`);
  writer.line();
  writer.line([history.id, { kind: "decision", id: history.id }]);
  writer.line();
  for (const row of history.rows) {
    writer.line(`## ${localTime(row.time)}  ${row.kind}`);
    writer.line();
    // The text names who and how; what it does not say follows.
    const more = [row.reason, row.commit?.slice(0, 8), row.branch].filter((part): part is string => !!part && !row.text.includes(part));
    writer.line([row.text, ...more].map((part) => oneLine(part, 2000)).filter((part) => part !== "").join(" · "));
    writer.line();
  }
  return writer.page();
}

/** All decisions that govern a file. */
export function governingPage(path: string, rows: readonly DecisionRow[]): Page {
  const writer = new Writer();
  writer.line(`# ${l10n.t("Decisions that govern {0}", path)}`);
  writer.line();
  for (const row of rows) {
    decisionLine(writer, row);
  }
  return writer.page();
}

/** What an answer had to do without, as sentences. */
export function missingNotes(partial: readonly Missing[]): string[] {
  const notes: Record<Missing, string> = {
    index: l10n.t("The index is still being built, so something may be missing. Ask again in a moment."),
    vectors: l10n.t("Search by meaning is still being prepared; this answer comes from words and from the code graph."),
    model: l10n.t("Search by meaning is off until its model is there (“nm-lsp: Install the Model for Search by Meaning”). This answer comes from words and from the code graph."),
  };
  return partial.map((missing) => notes[missing]).filter((note) => note !== undefined);
}

const TOP: Range = { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };

function decisionLine(writer: Writer, row: DecisionRow): void {
  const reason = row.statusReason ? `: ${oneLine(row.statusReason, 400)}` : "";
  writer.line("- ", [row.id, { kind: "decision", id: row.id }], ` ${oneLine(row.title)} (${statusWord(row.status)}${reason})`);
}

function section(writer: Writer, title: string, items: readonly string[]): void {
  if (items.length > 0) {
    writer.line();
    writer.line(`## ${title}`);
    writer.line();
    items.forEach((item) => writer.line(`- ${oneLine(item, 2000)}`));
  }
}

function linked(writer: Writer, title: string, ids: readonly string[]): void {
  if (ids.length > 0) {
    writer.line();
    writer.line(`## ${title}`);
    writer.line();
    ids.forEach((id) => writer.line("- ", [id, { kind: "decision", id }]));
  }
}

function placeText(hit: { path: string; range: Range }): string {
  return `${hit.path}:${hit.range.start.line + 1}`;
}

function place(hit: Pick<Hit, "uri" | "range">): Target {
  return { kind: "place", uri: hit.uri, range: hit.range };
}

function day(time: string): string {
  return localTime(time).slice(0, 10);
}

/** A time of the wire (UTC) as the reader's clock shows it. */
function localTime(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) {
    return time;
  }
  const two = (part: number): string => String(part).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

function languageOf(path: string): string {
  const names: Record<string, string> = {
    py: "python", js: "javascript", mjs: "javascript", jsx: "jsx", ts: "typescript", tsx: "tsx", java: "java", go: "go", rs: "rust",
    c: "c", h: "c", cc: "cpp", cpp: "cpp", hpp: "cpp", cs: "csharp", rb: "ruby", php: "php", sh: "bash", bash: "bash", md: "markdown",
    toml: "toml", yaml: "yaml", yml: "yaml", json: "json",
  };
  return names[path.split(".").pop() ?? ""] ?? "";
}
