import { expect, it } from "vitest";
import { explicitSettings } from "../src/logic/settings";

const WRITTEN: Record<string, object> = {
  "decisions.stale": { globalValue: "hint", workspaceValue: "off" },
  "search.rrfK": { globalValue: 30 },
  "git.path": { globalValue: "/usr/bin/git", workspaceValue: "./evil" },
  "server.path": { globalValue: "/opt/nm-lsp" },
};
const NAMES = ["decisions.stale", "decisions.hover", "search.rrfK", "git.path", "server.path", "trace.server"];

it("sends what was written, the nearest first, and no defaults", () => {
  const sent = explicitSettings(NAMES, (name) => WRITTEN[name], true);
  expect(sent).toEqual({ server: {}, decisions: { stale: "off" }, search: { rrfK: 30 }, git: { path: "./evil" } });
});

it("takes programs from the user alone where the workspace is not trusted", () => {
  expect(explicitSettings(NAMES, (name) => WRITTEN[name], false)).toMatchObject({ git: { path: "/usr/bin/git" }, decisions: { stale: "off" } });
});

it("is never empty, since the server takes nothing for no news", () => {
  expect(Object.keys(explicitSettings(NAMES, () => undefined, true))).toHaveLength(1);
});
