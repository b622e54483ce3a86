import { describe, expect, it } from "vitest";
import { answerPage, decisionPage, explainPage, historyPage, type Page } from "../src/logic/page";
import type { Hit, QueryResult } from "../src/logic/wire";
import { row } from "./shapes";

const HIT: Hit = {
  id: "src/pay.py::pay", uri: "file:///w/src/pay.py", path: "src/pay.py", range: { start: { line: 9, character: 4 }, end: { line: 20, character: 0 } },
  kind: "function", name: "pay", signature: "def pay(amount)", score: 0.9, text: "def pay(amount):\n    ```\n    pass\n",
};
const ANSWER: QueryResult = { text: "# context", tokens: 640, layers: [], hits: [HIT], decisions: [row("nm-aaaaaaaa", { status: "stale", statusReason: "changed by 12" })], partial: [] };

function linked(page: Page): string[] {
  const lines = page.text.split("\n");
  return page.links.map((link) => lines[link.line].slice(link.start, link.end));
}

describe("an answer", () => {
  it("links each place and each decision where its text stands", () => {
    expect(linked(answerPage("how is it paid?", ANSWER))).toEqual(["nm-aaaaaaaa", "src/pay.py:10"]);
  });

  it("cannot be broken out of by code that holds a fence", () => {
    const { text } = answerPage("q", ANSWER);
    expect(text).toContain("````python\ndef pay(amount):\n    ```\n    pass\n````");
  });

  it("says what it had to do without", () => {
    expect(answerPage("q", { ...ANSWER, partial: ["index", "model"] }).text).toMatch(/still being built[^]*Install the Model/);
  });

  it("says so where nothing matches", () => {
    expect(answerPage("q", { ...ANSWER, hits: [], decisions: [] }).text).toContain("Nothing in this workspace matches.");
  });

  it("works with a server that names no decisions", () => {
    expect(linked(answerPage("q", { ...ANSWER, decisions: undefined }))).toEqual(["src/pay.py:10"]);
  });
});

it("explains hits with their reasons", () => {
  const page = explainPage({ query: "q", text: "", partial: [], hits: [{ id: "x", uri: HIT.uri, path: HIT.path, range: HIT.range, score: 0.5, reasons: ["first in words"] }] });
  expect(linked(page)).toEqual(["src/pay.py:10"]);
  expect(page.text).toContain("score 0.50");
  expect(page.text).toContain("- first in words");
});

it("shows a decision with its reason, and links what is there", () => {
  const detail = {
    ...row("nm-aaaaaaaa", { status: "invalidated", supersededBy: "nm-bbbbbbbb" }), rationale: "Cents are lost.", alternatives: ["float"], dependsOn: [], evidence: [],
    recordedBy: "Ann <a@b>", confirmedAt: "2026-02-03T00:00:00Z", confirmations: 2, invalidatedReason: "It was wrong", liveEnd: null, problems: [],
  };
  const page = decisionPage(detail, (anchor) => anchor.uri);
  expect(linked(page)).toEqual(["src/pay.py", "nm-bbbbbbbb"]);
  expect(page.text).toMatch(/Invalidated because: It was wrong[^]*Cents are lost\.[^]*- float[^]*confirmed 2 times, last on 2026-02-03/);
});

it("tells a history with who and where", () => {
  const page = historyPage({
    id: "nm-aaaaaaaa", title: "T",
    rows: [{ time: "2026-02-03T04:05:06Z", kind: "restored", actor: "Ann", face: "lsp", client: "Visual Studio Code", commit: "0123456789", branch: "main", reason: "fine", text: "restored by Ann" }],
  });
  expect(page.text).toMatch(/## 2026-02-0\d \d\d:\d5 {2}restored\n\nrestored by Ann · fine · 01234567 · main\n/);
});
