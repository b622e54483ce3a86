// Builds the server of this repository into `server/`, as the extension brings it along: `npm run wheel`. Needs a Python
// with pip, named by the variable PYTHON or found as `python3`.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const folder = fileURLToPath(new URL("../server", import.meta.url));
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
const python = process.env.PYTHON ?? (process.platform === "win32" ? "python" : "python3");
const { status, error } = spawnSync(python, ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, repository], { stdio: "inherit" });
if (error) {
  console.error(`${python}: ${error.message}`);
}
process.exitCode = status ?? 1;
