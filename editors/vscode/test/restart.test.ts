import { expect, it } from "vitest";
import { RestartPolicy } from "../src/logic/restart";

it("retries a server that does not start once, and no more", () => {
  const policy = new RestartPolicy();
  expect(policy.ended(0)).toEqual({ kind: "again", delayMs: 1_000 });
  expect(policy.ended(2_000)).toEqual({ kind: "give-up" });
});

it("counts a server that answers and dies at once as one that does not start", () => {
  const policy = new RestartPolicy();
  policy.initialized(0);
  expect(policy.ended(100).kind).toBe("again");
  policy.initialized(2_000);
  expect(policy.ended(2_100).kind).toBe("give-up");
});

it("waits longer each time for a server that keeps dying, and then stops", () => {
  const policy = new RestartPolicy();
  const verdicts = [];
  for (let at = 0; at < 5; at += 1) {
    policy.initialized(at * 60_000);
    verdicts.push(policy.ended(at * 60_000 + 30_000));
  }
  const delays = verdicts.map((verdict) => (verdict.kind === "again" ? verdict.delayMs : "give-up"));
  expect(delays).toEqual([250, 1_000, 4_000, 15_000, "give-up"]);
});

it("forgets deaths of long ago", () => {
  const policy = new RestartPolicy();
  for (let at = 0; at < 20; at += 1) {
    policy.initialized(at * 3_600_000);
    expect(policy.ended(at * 3_600_000 + 3_000_000)).toEqual({ kind: "again", delayMs: 250 });
  }
});

it("starts afresh when a person asks", () => {
  const policy = new RestartPolicy();
  policy.ended(0);
  policy.ended(1);
  policy.reset();
  expect(policy.ended(2).kind).toBe("again");
});
