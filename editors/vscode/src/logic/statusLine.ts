/** What the status bar says, from what is known of the server and of each folder. */

import * as l10n from "@vscode/l10n";
import type { StatusResult } from "./wire";

export type ServerState =
  | { kind: "off"; why: "no-folder" | "virtual" }
  | { kind: "starting" }
  | { kind: "running" }
  | { kind: "waiting" }
  | { kind: "failed"; text: string };

export interface FolderView { name: string; status: StatusResult | undefined; nStale: number | undefined }

export interface Line { text: string; tooltip: string; level: "normal" | "warning" | "error" }

const NAME = "nm-lsp";

/** `percent` is what the server's own progress says of a build that is running. */
export function statusLine(server: ServerState, folders: readonly FolderView[], percent: number | undefined): Line {
  switch (server.kind) {
    case "off":
      return {
        text: `$(circle-slash) ${NAME}`,
        tooltip: server.why === "virtual" ? l10n.t("nm-lsp reads files on disk; this workspace has none it can reach.") : l10n.t("nm-lsp: open a folder to give it a memory."),
        level: "normal",
      };
    case "starting":
      return { text: `$(loading~spin) ${NAME}`, tooltip: l10n.t("nm-lsp: the server is starting."), level: "normal" };
    case "waiting":
      return { text: `$(loading~spin) ${NAME}`, tooltip: l10n.t("nm-lsp: the server ended and is being started again."), level: "normal" };
    case "failed":
      return { text: `$(error) ${NAME}`, tooltip: server.text, level: "error" };
    case "running":
      return running(folders, percent);
  }
}

function running(folders: readonly FolderView[], percent: number | undefined): Line {
  const nStale = folders.reduce((sum, folder) => sum + (folder.nStale ?? 0), 0);
  const tooltip = [...folders.map(folderText), l10n.t("Choose for more.")].join("\n");
  const building = folders.find((folder) => folder.status === undefined || !folder.status.ready);
  const stale = nStale ? ` $(warning) ${l10n.t("{0} stale", nStale)}` : "";
  if (building) {
    const shown = percent ?? percentOf(building.status);
    return { text: `$(sync~spin) ${NAME} ${shown === undefined ? l10n.t("indexing") : l10n.t("indexing {0}%", shown)}${stale}`, tooltip, level: "normal" };
  }
  if (percent !== undefined) {
    // Answers are complete in words already; only search by meaning, or a new index, is still being prepared.
    return { text: `$(sync~spin) ${NAME} ${percent}%${stale}`, tooltip, level: nStale ? "warning" : "normal" };
  }
  if (folders.length > 0 && folders.every((folder) => folder.status && isRefused(folder.status))) {
    return { text: `$(circle-slash) ${NAME} ${l10n.t("not indexed")}`, tooltip, level: "normal" };
  }
  const problem = folders.some((folder) => folder.status?.problems.length);
  const icon = problem ? "$(info)" : "$(check)";
  return { text: nStale ? `${icon} ${NAME}${stale}` : `${icon} ${NAME} ${l10n.t("ready")}`, tooltip, level: nStale ? "warning" : "normal" };
}

/** One folder in a line or two: how far it is and what is wrong. */
export function folderText(folder: FolderView): string {
  const { name, status, nStale } = folder;
  if (!status) {
    return l10n.t("{0}: being opened", name);
  }
  const parts = [isRefused(status) ? l10n.t("not indexed") : status.ready ? l10n.t("ready, {0} symbols in {1} files", status.symbols, status.files) : l10n.t("indexing ({0} of {1})", status.progress.done, status.progress.total)];
  if (status.ready && status.vectors.done < status.vectors.total) {
    parts.push(l10n.t("search by meaning {0}%", Math.floor((100 * status.vectors.done) / status.vectors.total)));
  }
  if (nStale) {
    parts.push(nStale === 1 ? l10n.t("1 stale decision") : l10n.t("{0} stale decisions", nStale));
  }
  const lines = [l10n.t("{0}: {1}", name, parts.join(" · "))];
  for (const problem of status.problems.slice(0, 3)) {
    lines.push(`  ${problem.message}${problem.hint ? ` ${problem.hint}` : ""}`);
  }
  return lines.join("\n");
}

function percentOf(status: StatusResult | undefined): number | undefined {
  if (!status || status.progress.total <= 0) {
    return undefined;
  }
  return Math.min(99, Math.floor((100 * status.progress.done) / status.progress.total));
}

/** A home folder, say: the server gives the reason as a problem. */
function isRefused(status: StatusResult): boolean {
  return status.problems.some((problem) => problem.code === "not-indexed");
}
