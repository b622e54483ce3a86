/** The shapes of `editors/PROTOCOL.md` that the extension reads. Lists are only as wide as what is used here. */

export interface Position { line: number; character: number }
export interface Range { start: Position; end: Position }

export interface Progress { done: number; total: number }
export interface Problem { code: string; message: string; hint?: string | null }

export interface StatusResult {
  folder: string;
  ready: boolean;
  phase: "scanning" | "keyword" | "vectors" | "idle";
  progress: Progress;
  vectors: Progress;
  files: number;
  symbols: number;
  nSkipped: number;
  head: string | null;
  branch: string | null;
  problems: Problem[];
}

export interface Hit {
  id: string;
  uri: string;
  path: string;
  range: Range;
  kind: string;
  name: string;
  signature: string;
  score: number;
  text: string;
}

export type Missing = "index" | "vectors" | "model";

export interface SearchResult { hits: Hit[]; partial: Missing[] }

export interface Layer { name: string; title: string; text: string; tokens: number; budget: number }

export interface QueryResult {
  text: string;
  tokens: number;
  layers: Layer[];
  hits: Hit[];
  decisions?: DecisionRow[];
  partial: Missing[];
}

export interface WakeupResult { text: string; tokens: number }

export interface ExplainResult {
  query: string;
  text: string;
  hits: { id: string; uri: string; path: string; range: Range; score: number; reasons: string[] }[];
  partial: Missing[];
}

export interface AnchorRow {
  kind: string;
  repoPath: string;
  /** Where it was recorded. */
  uri: string;
  path: string | null;
  symbol: string | null;
  state: "holds" | "moved" | "doubted" | "gone" | "unknown";
  movedTo: string | null;
}

export type Status = "active" | "stale" | "invalidated" | "unknown";

export interface DecisionRow {
  id: string;
  revision: number;
  title: string;
  status: Status;
  statusReason: string | null;
  reason: string | null;
  staleCommit: string | null;
  stalePath: string | null;
  reverted: boolean;
  acknowledged: boolean;
  anchors: AnchorRow[];
  author: string | null;
  tags: string[];
  supersededBy: string | null;
  recordedAt: string;
}

/** The whole record: the fields of the row and these beside them. */
export interface DecisionDetail extends DecisionRow {
  rationale: string;
  alternatives: string[];
  dependsOn: string[];
  evidence: string[];
  recordedBy: string;
  confirmedAt: string;
  confirmations: number;
  invalidatedReason: string | null;
  liveEnd: string | null;
  problems: string[];
}

export interface ListResult { decisions: DecisionRow[]; total: number; cursor: string | null }
export interface Similar { decision: DecisionRow; why: string }
export interface RecordResult { decision: DecisionDetail; similar: Similar[] }
export interface DecisionResult { decision: DecisionDetail }
export interface DecisionsResult { decisions: DecisionRow[] }

export interface HistoryRow {
  time: string;
  kind: string;
  actor: string | null;
  face: string | null;
  client: string | null;
  commit: string | null;
  branch: string | null;
  reason: string | null;
  text: string;
}

export interface HistoryResult { id: string; title: string; rows: HistoryRow[] }

export interface DiffResult {
  id: string;
  repoPath: string;
  uri: string;
  path: string | null;
  commit: string | null;
  seenCommit: string | null;
  seen: string | null;
  now: string | null;
  text: string;
}

export interface Acknowledged { done: boolean; message: string }

export const METHOD_NOT_FOUND = -32601;

export interface Neighbor {
  id: string;
  uri: string;
  path: string;
  range: Range;
  weight: number;
  source: string;
  count: number;
  lasting: boolean;
  lastUsed: string | null;
}

export interface NeighborsResult { id: string; neighbors: Neighbor[] }

export interface NextStep { id: string; uri: string; path: string; range: Range; share: number; count: number }

export interface NextResult { id: string | null; steps: NextStep[] }
