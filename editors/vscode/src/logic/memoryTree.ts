/** The Memory view as plain data: what goes with the symbol at the cursor, and what usually comes next. */

import * as l10n from "@vscode/l10n";
import type { Neighbor, NeighborsResult, NextResult, Range } from "./wire";

export type MemoryNode = SectionNode | PlaceNode | HintNode;
export interface SectionNode { kind: "section"; key: string; label: string; description: string; children: (PlaceNode | HintNode)[] }
export interface PlaceNode { kind: "place"; key: string; label: string; description: string; tooltip: string; isLearned: boolean; uri: string; range: Range }
export interface HintNode { kind: "hint"; key: string; label: string }

/** What is known about the place the cursor is in. */
export type Memory =
  | { kind: "nowhere" }
  | { kind: "stopped" }
  | { kind: "unsupported" }
  | { kind: "indexing" }
  | { kind: "known"; symbol: string; neighbors: NeighborsResult; next: NextResult | undefined };

export function memoryTree(memory: Memory): MemoryNode[] {
  switch (memory.kind) {
    case "nowhere":
      return [hint("nowhere", l10n.t("Put the cursor in a file of this workspace."))];
    case "stopped":
      return [hint("stopped", l10n.t("The nm-lsp server does not run."))];
    case "unsupported":
      return [hint("unsupported", l10n.t("This nm-lsp server does not learn yet. A newer one fills this view."))];
    case "indexing":
      return [hint("indexing", l10n.t("The workspace is still being indexed."))];
    case "known":
      return known(memory);
  }
}

/** What is asked about: the symbol around the cursor, else the file. */
export function symbolName(id: string): string {
  const [path, symbol] = id.split("::");
  return symbol ?? path.split("/").pop() ?? path;
}

function known(memory: Extract<Memory, { kind: "known" }>): MemoryNode[] {
  const name = symbolName(memory.symbol);
  const together = memory.neighbors.neighbors.map(neighborNode);
  const sections: MemoryNode[] = [
    {
      kind: "section",
      key: "together",
      label: l10n.t("Goes with {0}", name),
      description: together.length ? String(together.length) : "",
      children: together.length ? together : [hint("together.none", l10n.t("Nothing yet: learned as you work"))],
    },
  ];
  if (memory.next) {
    const steps = memory.next.steps.map(
      (step): PlaceNode => ({
        kind: "place",
        key: `next#${step.id}`,
        label: symbolName(step.id),
        description: l10n.t("{0}% · {1}", Math.round(step.share * 100), step.path),
        tooltip: l10n.t("{0} of 100 times, {1} came after {2}", Math.round(step.share * 100), step.id, name),
        isLearned: true,
        uri: step.uri,
        range: step.range,
      }),
    );
    sections.push({
      kind: "section",
      key: "next",
      label: l10n.t("Usually next"),
      description: steps.length ? String(steps.length) : "",
      children: steps.length ? steps : [hint("next.none", l10n.t("Nothing yet: learned as you work"))],
    });
  }
  return sections;
}

function neighborNode(neighbor: Neighbor): PlaceNode {
  const isLearned = neighbor.source !== "structural";
  const why = isLearned
    ? l10n.t("learned: {0}% strong, seen {1} times", Math.round(neighbor.weight * 100), neighbor.count)
    : l10n.t("from imports and calls");
  return {
    kind: "place",
    key: `together#${neighbor.id}`,
    label: symbolName(neighbor.id),
    description: `${isLearned ? `${Math.round(neighbor.weight * 100)}% · ` : ""}${neighbor.path}`,
    tooltip: `${neighbor.id}\n${why}${neighbor.lasting ? `, ${l10n.t("kept for good")}` : ""}`,
    isLearned,
    uri: neighbor.uri,
    range: neighbor.range,
  };
}

function hint(key: string, label: string): HintNode {
  return { kind: "hint", key, label };
}
