import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/**/*.test.ts"], testTimeout: 30_000, pool: "threads", poolOptions: { threads: { singleThread: true } } },
  resolve: { alias: { vscode: fileURLToPath(new URL("./test/fakeVscode.ts", import.meta.url)) } },
});
