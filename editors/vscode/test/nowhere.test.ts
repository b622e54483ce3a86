import { beforeEach, expect, it } from "vitest";
import { Acts } from "../src/ui/acts";
import { Asking } from "../src/ui/asking";
import { chooseFolder } from "../src/ui/folders";
import { fake, Uri } from "./fakeVscode";

// A server that must not be asked anything.
const nobody = new Proxy({}, { get: () => () => { throw new Error("the server was asked"); } }) as never;
const acts = new Acts(nobody, nobody, nobody);
const asking = new Asking(nobody, nobody, acts);
const virtual = { uri: Uri.parse("vscode-vfs://github/x"), name: "x", index: 0 };

beforeEach(() => fake.reset());

it.each([
  ["an untitled text", Uri.parse("untitled:Untitled-1")],
  ["a file on no disk", Uri.parse("vscode-vfs://github/x/a.py")],
  ["an old version of a file", Uri.parse("git:/w/a.py")],
  ["a file outside the workspace", Uri.file("/elsewhere/a.py")],
  ["nothing at all", undefined],
])("a decision cannot be recorded for %s, which is said once", async (_, uri) => {
  fake.folders = [{ uri: Uri.file("/w"), name: "w", index: 0 }];
  await acts.record(uri as never);
  expect(fake.shown).toEqual([expect.objectContaining({ level: "info", text: expect.stringMatching(/^Open a saved file of this workspace first/) })]);
});

it.each([
  ["no folder", [], /^Open a folder first/],
  ["a virtual workspace", [virtual], /reads files on a disk, and no folder of this window lies on one/],
])("questions in %s are answered by one message, before anything is asked", async (_, folders, words) => {
  fake.folders = folders;
  for (const ask of [() => asking.ask(), () => asking.search(), () => asking.copyContext()]) {
    fake.shown = [];
    await ask();
    expect(fake.shown).toEqual([expect.objectContaining({ level: "info", text: expect.stringMatching(words) })]);
  }
});

it("takes the folder on a disk where another is not", async () => {
  fake.folders = [virtual, { uri: Uri.file("/w"), name: "w", index: 1 }];
  expect(await chooseFolder()).toBe(fake.folders[1]);
  expect(fake.shown).toEqual([]);
});
