import { expect, it } from "vitest";
import { alternativesOf, asConfirmed, fromBox, spokenAnchor, toBox } from "../src/logic/texts";

it("carries line breaks through a box of one line", () => {
  expect(fromBox(toBox("one\n\ntwo\r\nthree"))).toBe("one\n\ntwo\nthree");
});

it("splits alternatives", () => {
  expect(alternativesOf(" decimal; float ;; ")).toEqual(["decimal", "float"]);
});

it("says anchors as people do", () => {
  expect([spokenAnchor("src/a.py"), spokenAnchor("src/a.py::A.pay"), spokenAnchor("src/auth/")]).toEqual(["a.py", "A.pay", "auth"]);
});

it.each([
  ["the whole file", "def a(): 2\n", "def a(): 1\n", "def a(): 2\n", "def a(): 1\n"],
  ["a symbol in its file", "x\ndef a(): 2\ny\n", "def a(): 1", "def a(): 2", "x\ndef a(): 1\ny\n"],
  ["edits since the commit", "def a(): 3\n", "def a(): 1", "def a(): 2", undefined],
  ["the same text twice", "f()\nf()\n", "g()", "f()", undefined],
  ["an empty file", "", "a", "", undefined],
])("puts back what was confirmed: %s", (_, file, seen, now, expected) => {
  expect(asConfirmed(file, seen, now)).toBe(expected);
});
