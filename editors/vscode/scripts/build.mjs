// Two bundles: what activation needs, and the language client, which is read when a server is started.
import { build } from "esbuild";

await build({
  entryPoints: ["src/extension.ts", "src/clientFactory.ts"],
  outdir: "dist",
  bundle: true,
  platform: "node",
  target: "node18",
  format: "cjs",
  // The second bundle stays a file of its own; as `require`, since the editor loads extensions as CommonJS.
  supported: { "dynamic-import": false },
  plugins: [
    {
      name: "client-apart",
      setup(build) {
        build.onResolve({ filter: /^\.\.\/clientFactory$/ }, () => ({ path: "./clientFactory.js", external: true }));
      },
    },
  ],
  external: ["vscode"],
  minify: !process.argv.includes("--debug"),
  sourcemap: process.argv.includes("--debug"),
  legalComments: "none",
});
