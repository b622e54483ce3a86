import { describe, expect, it } from "vitest";
import { anchorName, anchorPath, contextOf, decisionTree, matches, type Node, oneLine } from "../src/logic/decisionTree";
import { anchor, row } from "./shapes";

const STALE = row("nm-aaaaaaaa", { status: "stale", reason: "changed", statusReason: "commit 1234 changed src/pay.py" });
const ROWS = [row("nm-bbbbbbbb"), STALE, row("nm-cccccccc", { status: "invalidated", statusReason: "It was wrong" })];

function outline(nodes: readonly Node[], depth = 0): string[] {
  return nodes.flatMap((node) => [`${"  ".repeat(depth)}${node.label}`, ...("children" in node ? outline(node.children, depth + 1) : [])]);
}

describe("the Decisions view", () => {
  it("groups by status, what needs a person first, with the governed files below", () => {
    const tree = decisionTree([{ uri: "file:///w", name: "w", rows: ROWS, total: 3, head: null }], "");
    expect(outline(tree)).toEqual([
      "Stale", "  Title of nm-aaaaaaaa", "    pay.py",
      "Active", "  Title of nm-bbbbbbbb", "    pay.py",
      "Invalidated", "  Title of nm-cccccccc", "    pay.py",
    ]);
  });

  it("gives each of several folders a level, and leaves out those without any", () => {
    const folders = [
      { uri: "file:///a", name: "a", rows: [STALE], total: 1, head: null },
      { uri: "file:///b", name: "b", rows: [], total: 0, head: null },
      { uri: "file:///c", name: "c", rows: [row("nm-dddddddd")], total: 1, head: null },
    ];
    expect(decisionTree(folders, "").map((node) => node.label)).toEqual(["a", "c"]);
  });

  it("has a key of its own for every line, as the editor demands", () => {
    const keys: string[] = [];
    const collect = (nodes: readonly Node[]): void => nodes.forEach((node) => (keys.push(node.key), "children" in node && collect(node.children)));
    collect(decisionTree([{ uri: "file:///a", name: "a", rows: ROWS, total: 3, head: null }, { uri: "file:///b", name: "b", rows: ROWS, total: 3, head: null }], ""));
    expect(new Set(keys).size).toBe(keys.length);
  });

  it.each([
    ["", true], ["title AAAAAAAA", true], ["pay.py stale", true], ["ann", true], ["bob", false], ["pay.py nothing", false],
  ])("filters by words: “%s”", (filter, expected) => {
    expect(matches(STALE, filter)).toBe(expected);
  });

  it("offers restoring only where the server would take it", () => {
    expect(contextOf(STALE)).toBe("decision.stale");
    expect(contextOf({ ...STALE, reason: "dependency" })).toBe("decision.dependent");
  });
});

describe("where an anchor is now", () => {
  it.each([
    [anchor("a.py"), "/repo/a.py"],
    [anchor("a.py", { state: "gone" }), null],
    [anchor("a.py", { movedTo: "lib/b.py" }), "/repo/lib/b.py"],
    [anchor("a.py", { movedTo: "lib/b.py::pay", symbol: "pay" }), "/repo/lib/b.py"],
    [anchor("pkg/a.py", { path: "a.py", movedTo: "other/b.py" }), "/repo/other/b.py"],
  ])("%#", (given, expected) => {
    expect(anchorPath(given, `/repo/${given.repoPath}`)).toBe(expected);
  });
});

it("shows texts of the repository in one harmless line", () => {
  expect(oneLine("a\n\tb\u202e\u0000c")).toBe("a b c");
  expect(oneLine("x".repeat(300))).toHaveLength(200);
});

it("counts what one command can restore: stale for comments or layout alone", () => {
  const rows = [STALE, { ...STALE, id: "nm-eeeeeeee", reason: "layout" }];
  expect(decisionTree([{ uri: "file:///w", name: "w", rows, total: 2, head: null }], "")).toMatchObject([{ kind: "group", status: "stale", nLayout: 1 }]);
});

it.each([
  [anchor("a.py"), "a.py"],
  [anchor("a.py", { symbol: "A.pay" }), "a.py::A.pay"],
  [anchor("pkg/a.py", { path: "a.py", symbol: "pay", movedTo: "pkg/b.py::pay" }), "/pkg/b.py::pay"],
  [anchor("top.py", { path: null }), "/top.py"],
])("names an anchor as a call wants it: %#", (given, expected) => {
  expect(anchorName(given)).toBe(expected);
});
