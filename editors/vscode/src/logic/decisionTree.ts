/** The Decisions view as plain data: folders, groups by status, decisions, governed files. */

import * as l10n from "@vscode/l10n";
import type { AnchorRow, DecisionRow, Status } from "./wire";

/** `head` is the commit at which the rows were judged. */
export interface FolderDecisions { uri: string; name: string; rows: readonly DecisionRow[]; total: number; head: string | null }

export type Node = FolderNode | GroupNode | DecisionNode | AnchorNode | NoteNode;

export interface FolderNode { kind: "folder"; key: string; label: string; folder: string; children: Node[] }
export interface GroupNode { kind: "group"; key: string; folder: string; nLayout: number; status: Status; label: string; description: string; children: DecisionNode[] }
export interface DecisionNode { kind: "decision"; key: string; folder: string; head: string | null; row: DecisionRow; label: string; description: string; children: AnchorNode[] }
export interface AnchorNode { kind: "anchor"; key: string; folder: string; anchor: AnchorRow; label: string; description: string }
export interface NoteNode { kind: "note"; key: string; label: string }

const ORDER: readonly Status[] = ["stale", "unknown", "active", "invalidated"];

/** Several folders get a level of their own; one does not. An empty list means that nothing is recorded. */
export function decisionTree(folders: readonly FolderDecisions[], filter: string): Node[] {
  const shown = folders.map((folder) => ({ ...folder, rows: folder.rows.filter((row) => matches(row, filter)) }));
  if (shown.length === 1) {
    return branch(shown[0]);
  }
  return shown
    .filter((folder) => folder.rows.length > 0)
    .map((folder) => ({ kind: "folder", key: folder.uri, label: folder.name, folder: folder.uri, children: branch(folder) }));
}

/** Every word of the filter occurs in the title, the id, the author, a tag or a governed path. */
export function matches(row: DecisionRow, filter: string): boolean {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const text = [row.title, row.id, row.author ?? "", row.status, ...row.tags, ...row.anchors.map(anchorText)].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

export function statusWord(status: Status): string {
  const words: Record<Status, string> = { stale: l10n.t("Stale"), unknown: l10n.t("Unknown"), active: l10n.t("Active"), invalidated: l10n.t("Invalidated") };
  return words[status];
}

/** What a status means, for a person who meets it for the first time. */
export function statusMeaning(status: Status): string {
  const words: Record<Status, string> = {
    stale: l10n.t("A commit changed what these govern. Look at the change, then restore what still holds and invalidate what does not."),
    unknown: l10n.t("Git cannot answer, so nobody knows whether these hold."),
    active: l10n.t("These hold: what they govern is as it was when a person last confirmed them."),
    invalidated: l10n.t("Somebody said that these no longer hold. They are kept for their reasons."),
  };
  return words[status];
}

export function anchorText(anchor: AnchorRow): string {
  return anchor.movedTo ?? `${anchor.path ?? anchor.repoPath}${anchor.symbol ? `::${anchor.symbol}` : ""}`;
}

/** An anchor as `files` of a call names it: what lies outside the folder, or moved, from the repository's top. */
export function anchorName(anchor: AnchorRow): string {
  const symbol = anchor.symbol ? `::${anchor.symbol}` : "";
  if (anchor.movedTo !== null) {
    return `/${anchor.movedTo}`;
  }
  return anchor.path === null ? `/${anchor.repoPath}${symbol}` : `${anchor.path}${symbol}`;
}

/** What became of an anchor, in a word; "" where it is as it was. */
export function stateWord(state: AnchorRow["state"]): string {
  const words: Record<AnchorRow["state"], string> = { holds: "", moved: l10n.t("moved"), doubted: l10n.t("changed"), gone: l10n.t("removed"), unknown: l10n.t("unknown") };
  return words[state];
}

/** The path in `uri` of where an anchor is now; null where it is gone. A moved one lies below the same repository. */
export function anchorPath(anchor: AnchorRow, uriPath: string): string | null {
  if (anchor.state === "gone") {
    return null;
  }
  if (anchor.movedTo === null) {
    return uriPath;
  }
  return uriPath.endsWith(anchor.repoPath) ? uriPath.slice(0, uriPath.length - anchor.repoPath.length) + anchor.movedTo.split("::")[0] : null;
}

/** Context value of a row, from which the manifest picks the inline buttons. */
export function contextOf(row: DecisionRow): string {
  return row.status === "stale" && row.reason === "dependency" ? "decision.dependent" : `decision.${row.status}`;
}

function branch(folder: FolderDecisions): Node[] {
  const groups: Node[] = [];
  for (const status of ORDER) {
    const rows = folder.rows.filter((row) => row.status === status);
    if (rows.length > 0) {
      const children = rows.map((row) => decisionNode(folder, row));
      const nLayout = rows.filter((row) => row.status === "stale" && row.reason === "layout").length;
      groups.push({ kind: "group", key: `${folder.uri}#${status}`, folder: folder.uri, nLayout, status, label: statusWord(status), description: String(rows.length), children });
    }
  }
  if (folder.total > folder.rows.length && groups.length > 0 && folder.rows.length >= 1000) {
    groups.push({ kind: "note", key: `${folder.uri}#more`, label: l10n.t("The newest {0} of {1} are shown", folder.rows.length, folder.total) });
  }
  return groups;
}

function decisionNode({ uri: folder, head }: FolderDecisions, row: DecisionRow): DecisionNode {
  const children = row.anchors.map((anchor): AnchorNode => {
    const label = anchor.symbol ? `${anchor.symbol}` : (anchorText(anchor).split("/").filter(Boolean).pop() ?? anchor.repoPath);
    return { kind: "anchor", key: `${folder}#${row.id}#${anchorText(anchor)}`, folder, anchor, label, description: anchorDescription(anchor) };
  });
  return { kind: "decision", key: `${folder}#${row.id}`, folder, head, row, label: oneLine(row.title), description: decisionDescription(row), children };
}

function decisionDescription(row: DecisionRow): string {
  if (row.status === "active") {
    return row.anchors.length === 1 ? anchorText(row.anchors[0]) : l10n.t("{0} places", row.anchors.length);
  }
  const seen = row.acknowledged && row.status === "stale" ? l10n.t("seen") : "";
  return [row.reverted ? l10n.t("content is back") : oneLine(row.statusReason ?? ""), seen].filter((part) => part !== "").join(" · ");
}

function anchorDescription(anchor: AnchorRow): string {
  return [anchor.symbol ? (anchor.path ?? anchor.repoPath) : folderOf(anchorText(anchor)), stateWord(anchor.state)].filter((part) => part !== "").join(" · ");
}

function folderOf(path: string): string {
  const at = path.replace(/\/$/, "").lastIndexOf("/");
  return at < 0 ? "" : path.slice(0, at);
}

export function oneLine(text: string, limit = 200): string {
  // eslint-disable-next-line no-control-regex
  const flat = text.replace(/[\u0000-\u001f\u007f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g, " ").replace(/ {2,}/g, " ").trim();
  return flat.length > limit ? `${flat.slice(0, limit - 1)}…` : flat;
}
