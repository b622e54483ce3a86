import { expect, it } from "vitest";
import { memoryTree, type MemoryNode } from "../src/logic/memoryTree";

const RANGE = { start: { line: 0, character: 0 }, end: { line: 1, character: 0 } };

function outline(nodes: readonly MemoryNode[], depth = 0): string[] {
  return nodes.flatMap((node) => [
    `${"  ".repeat(depth)}${node.label}${"description" in node && node.description ? ` | ${node.description}` : ""}`,
    ...(node.kind === "section" ? outline(node.children, depth + 1) : []),
  ]);
}

it.each(["nowhere", "stopped", "unsupported", "indexing"] as const)("has a helpful line where it knows nothing: %s", (kind) => {
  expect(memoryTree({ kind })).toHaveLength(1);
});

it("shows what goes together and what comes next", () => {
  const neighbor = { uri: "file:///w/b.py", path: "b.py", range: RANGE, lasting: false, lastUsed: null };
  const tree = memoryTree({
    kind: "known",
    symbol: "a.py::pay",
    neighbors: { id: "a.py::pay", neighbors: [{ ...neighbor, id: "b.py::bill", weight: 0.62, source: "personal", count: 4 }, { ...neighbor, id: "b.py", weight: 0.5, source: "structural", count: 0 }] },
    next: { id: "a.py::pay", steps: [{ id: "t.py::test_pay", uri: "file:///w/t.py", path: "t.py", range: RANGE, share: 0.75, count: 3 }] },
  });
  expect(outline(tree)).toEqual(["Goes with pay | 2", "  bill | 62% · b.py", "  b.py | b.py", "Usually next | 1", "  test_pay | 75% · t.py"]);
});

it("says what will fill an empty section, and leaves out what the server cannot answer", () => {
  const empty = { kind: "known" as const, symbol: "a.py", neighbors: { id: "a.py", neighbors: [] }, next: undefined };
  expect(outline(memoryTree(empty))).toEqual(["Goes with a.py", "  Nothing yet: learned as you work"]);
});
