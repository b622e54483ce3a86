import type { AnchorRow, DecisionRow } from "../src/logic/wire";

export function anchor(path: string, more: Partial<AnchorRow> = {}): AnchorRow {
  return { kind: "file", repoPath: path, uri: `file:///repo/${path}`, path, symbol: null, state: "holds", movedTo: null, ...more };
}

export function row(id: string, more: Partial<DecisionRow> = {}): DecisionRow {
  return {
    id, revision: 1, title: `Title of ${id}`, status: "active", statusReason: null, reason: null, staleCommit: null, stalePath: null, reverted: false,
    acknowledged: false, anchors: [anchor("src/pay.py")], author: "Ann", tags: [], supersededBy: null, recordedAt: "2026-01-02T03:04:05Z", ...more,
  };
}
