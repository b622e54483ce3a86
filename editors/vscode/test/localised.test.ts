import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";

const root = path.join(__dirname, "..");

/** Every literal that follows `l10n.t(`; longer ones are written on the next line. */
function textsOf(folder: string): string[] {
  return fs.readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [...fs.readFileSync(path.join(folder, name), "utf8").matchAll(/l10n\.t\(\s*("(?:[^"\\]|\\.)*")/g)].map((match) => JSON.parse(match[1]) as string));
}

it("has every text in the bundle that translators start from (npm run texts)", () => {
  const bundle = JSON.parse(fs.readFileSync(path.join(root, "l10n", "bundle.l10n.json"), "utf8")) as Record<string, unknown>;
  expect(Object.keys(bundle).sort()).toEqual([...new Set(textsOf(path.join(root, "src")))].sort());
});

it("numbers the places of its texts without gaps", () => {
  for (const text of textsOf(path.join(root, "src"))) {
    const numbers = [...new Set([...text.matchAll(/\{(\d)\}/g)].map((match) => Number(match[1])))].sort();
    expect(numbers, text).toEqual(numbers.map((_, at) => at));
  }
});
