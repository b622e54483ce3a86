import { expect, it } from "vitest";
import { folderText, statusLine } from "../src/logic/statusLine";
import type { StatusResult } from "../src/logic/wire";

const READY: StatusResult = {
  folder: "file:///w", ready: true, phase: "idle", progress: { done: 10, total: 10 }, vectors: { done: 10, total: 10 }, files: 3, symbols: 10, nSkipped: 0, head: null, branch: null, problems: [],
};
const BUILDING: StatusResult = { ...READY, ready: false, phase: "keyword", progress: { done: 3, total: 10 } };
const RUNNING = { kind: "running" } as const;

it.each([
  [[{ name: "w", status: READY, nStale: 0 }], undefined, "$(check) nm-lsp ready", "normal"],
  [[{ name: "w", status: READY, nStale: 2 }], undefined, "$(check) nm-lsp $(warning) 2 stale", "warning"],
  [[{ name: "w", status: BUILDING, nStale: 0 }], undefined, "$(sync~spin) nm-lsp indexing 30%", "normal"],
  [[{ name: "w", status: BUILDING, nStale: 0 }], 55, "$(sync~spin) nm-lsp indexing 55%", "normal"],
  [[{ name: "w", status: READY, nStale: 1 }], 80, "$(sync~spin) nm-lsp 80% $(warning) 1 stale", "warning"],
  [[{ name: "w", status: undefined, nStale: undefined }], undefined, "$(sync~spin) nm-lsp indexing", "normal"],
  [[{ name: "a", status: READY, nStale: 1 }, { name: "b", status: READY, nStale: 2 }], undefined, "$(check) nm-lsp $(warning) 3 stale", "warning"],
  [[{ name: "w", status: { ...READY, problems: [{ code: "model", message: "No weights." }] }, nStale: 0 }], undefined, "$(info) nm-lsp ready", "normal"],
  // A home folder is refused by the server, which says why.
  [[{ name: "w", status: { ...READY, problems: [{ code: "not-indexed", message: "This is the home folder." }] }, nStale: 0 }], undefined, "$(circle-slash) nm-lsp not indexed", "normal"],
])("while the server runs: %#", (folders, percent, text, level) => {
  expect(statusLine(RUNNING, folders, percent)).toMatchObject({ text, level });
});

it("says why nothing runs", () => {
  expect(statusLine({ kind: "failed", text: "No Python." }, [], undefined)).toMatchObject({ text: "$(error) nm-lsp", tooltip: "No Python.", level: "error" });
  expect(statusLine({ kind: "off", why: "no-folder" }, [], undefined).tooltip).toContain("open a folder");
  expect(statusLine({ kind: "off", why: "virtual" }, [], undefined).tooltip).toContain("files on disk");
});

it("tells of a folder how far it is, and its problems with what repairs them", () => {
  const status = { ...READY, vectors: { done: 1, total: 4 }, problems: [{ code: "x", message: "Git is missing.", hint: "Install git." }] };
  expect(folderText({ name: "w", status, nStale: 1 })).toBe("w: ready, 10 symbols in 3 files · search by meaning 25% · 1 stale decision\n  Git is missing. Install git.");
});

it("does not call a folder ready that was refused", () => {
  const status = { ...READY, files: 0, symbols: 0, problems: [{ code: "not-indexed", message: "/home/ann is your home folder.", hint: "Open a project." }] };
  expect(folderText({ name: "ann", status, nStale: 0 })).toBe("ann: not indexed\n  /home/ann is your home folder. Open a project.");
});
