// Drives VS Code in headless Chromium: node vscode.mjs URL WORKSPACE SHOTS. Fails with the first thing that is not as a
// user should see it. `vscode.sh` sets everything up.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [url, workspace, shots] = process.argv.slice(2);
const began = Date.now();
const since = (start) => `${((Date.now() - start) / 1000).toFixed(1)} s`;
const say = (text) => console.log(`${since(began).padStart(7)}  ${text}`);
const git = (...args) => execFileSync("git", args, { cwd: workspace, stdio: "pipe" }).toString();
const check = (value, text) => {
  if (!value) throw new Error(`not so: ${text}`);
  say(`ok: ${text}`);
};

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
let page;
// A page of its own each time: the editor keeps what it knows of a window in the browser.
async function start(query) {
  page = await browser.newPage({ viewport: { width: 1180, height: 720 } });
  page.setDefaultTimeout(30_000);
  await page.goto(`${url}/?${query}`);
  await page.waitForSelector(".monaco-workbench", { timeout: 90_000 });
}
// The server's own messages would cover what is looked at; each is read when it comes.
const toasts = async () => (await page.locator(".notification-toast").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());
const dismiss = async () => {
  await command("Notifications: Clear All Notifications");
};
async function command(title) {
  await page.keyboard.press("F1");
  const input = page.locator(".quick-input-widget input").first();
  await input.waitFor();
  await input.fill(`>${title}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().waitFor();
  await page.keyboard.press("Enter");
}
async function answer(text) {
  const input = page.locator(".quick-input-widget input").first();
  await input.waitFor();
  await input.fill(text);
  await page.keyboard.press("Enter");
  await page.waitForTimeout(300);
}
async function open(name) {
  await page.keyboard.press("F1");
  const input = page.locator(".quick-input-widget input").first();
  await input.waitFor();
  // Without the ">" the box searches files.
  await input.fill(name);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().waitFor();
  await page.keyboard.press("Enter");
  await page.waitForSelector(`.tab.active:has-text("${name}")`);
}
async function shoot(name) {
  // Boxes fade in.
  await page.waitForTimeout(400);
  await page.screenshot({ path: `${shots}/${name}.png` });
}
// The server of this run alone: its environment names the folder of the run.
function serverPid() {
  const mine = `XDG_CACHE_HOME=${process.env.XDG_CACHE_HOME}`;
  const found = readdirSync("/proc").filter((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return /^\d+$/.test(pid) && words.includes("--stdio") && words.some((part) => part.includes("nm-lsp")) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(mine);
    } catch {
      return false; // ended meanwhile, or another user's
    }
  });
  check(found.length === 1, `one server runs (${found.join(", ")})`);
  return Number(found[0]);
}
const word = (text) => page.locator(".editor-instance .view-line span span", { hasText: text }).first();
const bar = (text) => page.locator(`.statusbar-item:has-text("${text}")`).first();
let nCommits = 0;
async function commitChange(message) {
  nCommits += 1;
  writeFileSync(`${workspace}/billing/money.py`, readFileSync(`${workspace}/billing/money.py`, "utf8").replace(/return round\(.*\)/, `return round(amount * 100${" + 0".repeat(nCommits)})`));
  git("commit", "-q", "-am", message);
}

try {
  await start(`folder=${encodeURIComponent(workspace)}`);
  say("the workbench is there");
  const opened = Date.now();
  await bar("nm-lsp ready").waitFor({ timeout: 120_000 });
  say(`ready in the status bar ${since(opened)} after the workbench`);
  await open("money.py");
  await page.locator(".codelens-decoration", { hasText: "1 decision" }).first().waitFor();
  check(true, "a code lens counts the decision");

  // A commit in a shell.
  const committed = Date.now();
  await commitChange("billing: round differently");
  await page.waitForSelector(".editor-instance .squiggly-warning", { timeout: 20_000 });
  say(`the squiggle is there ${since(committed)} after the commit`);
  await bar("1 stale").waitFor();
  await command("Problems: Focus on Problems View");
  const problem = page.locator(".markers-panel .monaco-list-row", { hasText: "Amounts are whole cents" });
  await problem.waitFor();
  say(`the Problems panel says: ${(await problem.first().innerText()).replace(/\s+/g, " ")}`);
  await word("round_amount").hover();
  await page.locator(".monaco-hover:not(.hidden) .hover-contents", { hasText: "STALE" }).first().waitFor();
  await shoot("stale");
  say(`the hover says: ${(await page.locator(".monaco-hover:not(.hidden) .hover-contents").allInnerTexts()).join(" / ").replace(/\s+/g, " ").slice(0, 300)}`);
  await page.keyboard.press("Escape");

  // The light bulb.
  await word("round_amount").click();
  await page.keyboard.press("Control+.");
  await page.locator(".action-widget .monaco-list-row", { hasText: "Restore (it still holds)" }).waitFor();
  await shoot("light-bulb");
  say(`the light bulb offers: ${(await page.locator(".action-widget .monaco-list-row").allInnerTexts()).map((text) => text.trim()).filter(Boolean).join(" | ")}`);
  const restored = Date.now();
  await page.locator(".action-widget .monaco-list-row", { hasText: "Restore (it still holds)" }).click();
  await page.waitForSelector(".editor-instance .squiggly-warning", { state: "detached", timeout: 10_000 });
  say(`the squiggle is gone ${since(restored)} after the restore`);
  await bar("nm-lsp ready").waitFor();
  check((await page.locator(".markers-panel .monaco-list-row", { hasText: "Amounts" }).count()) === 0, "the Problems panel is clear");
  await command("View: Toggle Panel Visibility");

  // A decision for the symbol at the cursor.
  await word("format_amount").click();
  await command("nm-lsp: Record a Decision");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "format_amount" }).waitFor();
  await shoot("record-where");
  await page.keyboard.press("Enter");
  await answer("Amounts are shown with the currency after the number");
  await answer("The printed forms of our largest customer need it.");
  await answer("the sign before the number");

  await page.locator(".notification-toast", { hasText: "Recorded" }).waitFor();
  say(`recorded: ${(await toasts()).join(" | ")}`);
  await dismiss();

  // A question.
  await command("nm-lsp: Ask the Memory");
  await answer("how are amounts of money rounded?");
  await page.locator(".tab.active", { hasText: "how are amounts" }).waitFor();
  await page.locator(".editor-instance .view-line", { hasText: "Where to look" }).waitFor();
  await page.waitForTimeout(1_500);
  await shoot("answer");
  const answered = (await page.locator(".editor-instance .view-line").allInnerTexts()).join("\n").replaceAll("\u00a0", " ");
  check(answered.includes("billing/money.py"), "the answer names the place");
  await page.locator(".codelens-decoration a", { hasText: "Open" }).first().click();
  await page.locator(".tab.active", { hasText: ".py" }).waitFor();
  check(true, "a place of the answer opens with one click");

  // Search.
  await command("nm-lsp: Search the Memory");
  await page.locator(".quick-input-widget input").first().fill("cost of sending");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "shipping_cost" }).waitFor();
  await shoot("search");
  await page.keyboard.press("Enter");
  await page.locator(".tab.active", { hasText: "parcel.py" }).waitFor();
  check(true, "search opens what it found");

  // Explanations and histories.
  await command("nm-lsp: Explain the Last Answer");
  await page.locator(".editor-instance .view-line", { hasText: "Why these places" }).waitFor();
  await shoot("explanation");
  await command("nm-lsp: Show the History of a Decision");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Amounts are whole cents" }).click();
  await page.locator(".editor-instance .view-line", { hasText: "restored" }).first().waitFor();
  await shoot("history");
  check(true, "the history tells of the restore");

  // The views, with one decision stale again.
  await open("money.py");
  await commitChange("billing: round once more");
  await page.waitForSelector(".editor-instance .squiggly-warning", { timeout: 20_000 });
  // The badge lies over the icon.
  await page.locator('.activitybar .action-label[aria-label^="Memory"]').first().click({ force: true });
  let view = page.locator(".sidebar");
  await view.locator(".monaco-list-row", { hasText: "Amounts are whole cents" }).waitFor();
  await word("round_amount").click();
  await view.locator(".monaco-list-row", { hasText: "Amounts are whole cents" }).hover();
  await page.waitForTimeout(1_500);
  await shoot("views");
  say(`the sidebar: ${(await page.locator(".sidebar .monaco-list-row").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim()).join(" | ")}`);

  // A server that is killed is back with the same marks, once.
  const killed = Date.now();
  process.kill(serverPid(), "SIGKILL");
  await page.waitForSelector(".editor-instance .squiggly-warning", { state: "detached", timeout: 10_000 });
  await page.waitForSelector(".editor-instance .squiggly-warning", { timeout: 30_000 });
  say(`the mark is back ${since(killed)} after the server was killed`);
  await bar("1 stale").waitFor();
  check((await page.locator(".editor-instance .squiggly-warning").count()) === 1, "the mark is there once");
  check((await toasts()).length === 0, "nobody was bothered with it");

  await command("nm-lsp: Show Stale Decisions");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Amounts are whole cents" }).waitFor();
  await shoot("stale-list");
  await page.keyboard.press("Escape");
  await view.locator(".monaco-list-row", { hasText: "Amounts are whole cents" }).hover();
  await view.locator(".monaco-list-row", { hasText: "Amounts are whole cents" }).locator('.action-label[aria-label*="What Changed Since"]').click();
  await page.waitForSelector(".monaco-diff-editor");
  await page.locator(".tab.active", { hasText: "↔ now" }).waitFor();
  await page.waitForTimeout(1_000);
  await shoot("diff");
  check(true, "what changed since opens a diff");
  await view.locator(".monaco-list-row", { hasText: "Amounts are whole cents" }).hover();
  await view.locator(".monaco-list-row", { hasText: "Amounts are whole cents" }).locator('.action-label[aria-label*="Invalidate"]').click();
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "replaced on purpose" }).waitFor();
  await shoot("reason");
  await page.keyboard.press("Enter");
  await view.locator(".monaco-list-row", { hasText: "Invalidated" }).waitFor();
  await bar("nm-lsp ready").waitFor();
  check(true, "invalidating with a reason moves it to its group");

  // The other extension's commands are still its own.
  await command("Other: Query");
  await page.locator(".notification-toast", { hasText: "the other extension" }).waitFor();
  check(true, "another extension keeps the names of the server's own commands");
  await dismiss();
  await bar("nm-lsp").click();
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Restart the Server" }).waitFor();
  await shoot("menu");
  await page.keyboard.press("Escape");

  await command("nm-lsp: Get Started");
  await page.locator(".gettingStartedContainer", { hasText: "Record a decision" }).waitFor();
  await shoot("walkthrough");
  // The page takes the focus when it is complete, which would close a box.
  await command("View: Close Editor");
  await open("money.py");
  await command("nm-lsp: Amend a Decision");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Amounts are shown" }).click();
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Title" }).click();
  await answer("Amounts are shown with the currency behind");
  await view.locator(".monaco-list-row", { hasText: "currency behind" }).waitFor();
  check(true, "an amended title shows in the view");
  await command("nm-lsp: Copy Context for an Agent");
  await answer("round an amount");
  await page.locator(".notification-toast", { hasText: "tokens of context" }).waitFor();
  say(`copied: ${(await toasts()).join(" | ")}`);
  await dismiss();

  await command("Developer: Show Running Extensions");
  await page.waitForSelector(".runtime-extensions-editor .extension");
  await page.waitForTimeout(1_000);
  const ours = page.locator(".runtime-extensions-editor .extension", { hasText: "nm-lsp" }).first();
  await page.locator(".runtime-extensions-editor .extension").first().hover();
  for (let turn = 0; turn < 40 && !(await ours.isVisible()); turn += 1) {
    await page.mouse.wheel(0, 150);
    await page.waitForTimeout(150);
  }
  const times = (await ours.innerText()).replace(/\s+/g, " ");
  say(`running extensions: ${times}`);
  const activation = Number(/Activation: (\d+)ms/.exec(times)?.[1]);
  check(activation <= 100, `activation takes at most 100 ms (${activation} ms)`);
  check(!(await toasts()).some((text) => /error|fail|traceback/i.test(text)), "nobody complains");

  // A wrong setting: one message that names it; right again: ready, without anything else to do.
  const machine = process.env.MACHINE_SETTINGS;
  const right = readFileSync(machine, "utf8");
  writeFileSync(machine, JSON.stringify({ "nmLsp.server.path": "/nowhere/nm-lsp" }));
  await page.locator(".notification-toast", { hasText: "nmLsp.server.path" }).waitFor();
  await shoot("wrong-setting");
  say(`a wrong setting: ${(await toasts()).join(" | ")}`);
  check((await toasts()).length === 1, "it is said once");
  writeFileSync(machine, right);
  await bar("nm-lsp ready").waitFor();
  check(true, "the corrected setting is enough");

  // Two folders in one window, one of them without git.
  const notes = () => page.locator(".explorer-folders-view .monaco-list-row", { hasText: "notes" }).first().waitFor({ timeout: 10_000 });
  for (let turn = 1; ; turn += 1) {
    await page.close();
    await start(`workspace=${encodeURIComponent(process.env.TWO_FOLDERS)}`);
    // code-server sometimes opens a workspace file without its folders; that is not what is looked at here.
    const error = await notes().then(() => undefined, (reason) => reason);
    if (!error) break;
    if (turn === 5) throw error;
    say("the editor opened no folder; once more");
  }
  await bar("nm-lsp ready").waitFor({ timeout: 60_000 });
  await page.locator('.activitybar .action-label[aria-label^="Memory"]').first().click({ force: true });
  view = page.locator(".sidebar");
  await view.locator(".monaco-list-row", { hasText: "currency behind" }).waitFor();
  await command("nm-lsp: Ask the Memory");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "notes" }).click();
  await answer("when is the shop open?");
  await page.locator(".editor-instance .view-line", { hasText: "opening.md" }).first().waitFor();
  await shoot("two-folders");
  say(`two folders: ${(await page.locator(".sidebar .monaco-list-row").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim()).join(" | ")}`);
  await command("nm-lsp: Record a Decision");
  await page.locator(".notification-toast", { hasText: "Open a saved file" }).waitFor();
  check(true, "a page of an answer is no place for a decision, and a message says so");
  say("done");
} catch (error) {
  await shoot("failed");
  console.error(`${since(began)}  ${error.message}\n${(await toasts()).join("\n")}`);
  process.exitCode = 1;
}
await browser.close();
