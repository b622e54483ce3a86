import { expect, it } from "vitest";
import { alternativesOf, fromBox, spokenAnchor, toBox } from "../src/logic/texts";

it("carries line breaks through a box of one line", () => {
  expect(fromBox(toBox("one\n\ntwo\r\nthree"))).toBe("one\n\ntwo\nthree");
});

it("splits alternatives", () => {
  expect(alternativesOf(" decimal; float ;; ")).toEqual(["decimal", "float"]);
});

it("says anchors as people do", () => {
  expect([spokenAnchor("src/a.py"), spokenAnchor("src/a.py::A.pay"), spokenAnchor("src/auth/")]).toEqual(["a.py", "A.pay", "auth"]);
});
