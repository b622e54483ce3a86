import { expect, it } from "vitest";
import { installPlan, sourceOf, spelled } from "../src/logic/installing";

it.each([
  [{ uv: "/bin/uv", python: "/bin/python3" }, "uv"],
  [{ python: "/bin/python3", pipx: "/bin/pipx" }, "pip"],
  [{ pipx: "/bin/pipx" }, "pipx"],
])("uses what the machine has: %o", (tools, tool) => {
  const plan = installPlan("linux", "/store of mine", "nm-lsp", tools);
  expect(plan).toMatchObject({ tool, server: "/store of mine/server/bin/nm-lsp" });
  expect(plan?.steps.at(-1)?.args.at(-1)).toBe("nm-lsp");
});

it("has no plan without any of them", () => {
  expect(installPlan("linux", "/store", "nm-lsp", {})).toBeUndefined();
});

it("spells a step so that it can be pasted", () => {
  expect(spelled({ command: "/a b/python", args: ["-m", "pip", "install", "nm-lsp>=0.1"] })).toBe('"/a b/python" -m pip install "nm-lsp>=0.1"');
});

it.each([
  ["", "/ext/server.whl", { target: "/ext/server.whl", isOwn: true }],
  [" ~/wheels/nm_lsp.whl ", "/ext/server.whl", { target: "/home/ann/wheels/nm_lsp.whl", isOwn: false }],
  ["https://example.org/nm_lsp.whl", undefined, { target: "https://example.org/nm_lsp.whl", isOwn: false }],
  ["", undefined, undefined],
])("installs what the setting names, else its own: “%s”", (setting, own, expected) => {
  expect(sourceOf(setting, "/home/ann", own)).toEqual(expected);
});

it("installs anew what is there already, since that may be what is broken", () => {
  const args = (tools: object): string => installPlan("linux", "/store", "x.whl", tools)?.steps.flatMap((step) => step.args).join(" ") ?? "";
  expect(args({ uv: "/bin/uv" })).toContain("--reinstall");
  expect(args({ python: "/bin/python3" })).toContain("--force-reinstall");
});
