import { expect, it } from "vitest";
import { installPlan, spelled } from "../src/logic/installing";

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
