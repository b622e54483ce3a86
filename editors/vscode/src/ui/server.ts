/** One server process for the window: found, started, watched, started again, and explained when it cannot run. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs/promises";
import * as os from "node:os";
import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import type { Client, ClientHooks } from "../clientFactory";
import { findServer, type Launch, type Machine } from "../logic/discovery";
import { type Cause, type Explanation, explain, installCommand, isOlder, OLDEST_SERVER, type Remedy, type Version, versionNumbers } from "../logic/failure";
import { type Source, sourceOf } from "../logic/installing";
import { PACKAGE_SETTING, PATH_SETTING, SECTION } from "../logic/names";
import { RestartPolicy } from "../logic/restart";
import { explicitSettings } from "../logic/settings";
import type { ServerState } from "../logic/statusLine";
import { diskFolders } from "./folders";
import { install, ownWheel } from "./install";

/** How long the first answer may take. A cold start on a busy machine takes some seconds. */
const ANSWER_S = 30;
/** How long any later answer may take before a person is told. An index being built answers too. */
const LATE_S = 60;
const STOP_MS = 2_000;
const ERRORS_KEPT = 8_000;

export class Server implements vscode.Disposable {
  readonly output = vscode.window.createOutputChannel("nm-lsp", { log: true });
  private readonly stateEmitter = new vscode.EventEmitter<ServerState>();
  readonly onState = this.stateEmitter.event;
  private readonly changeEmitter = new vscode.EventEmitter<string>();
  /** A folder whose status changed, as the server spells its URI. */
  readonly onStatusChanged = this.changeEmitter.event;
  private readonly progressEmitter = new vscode.EventEmitter<number | undefined>();
  readonly onProgress = this.progressEmitter.event;

  private current: ServerState = { kind: "starting" };
  private readonly policy = new RestartPolicy();
  private client: Client | undefined;
  private child: ChildProcess | undefined;
  private launch: Launch | undefined;
  /** Every start and every stop is a new turn; what belongs to an older one is dropped. */
  private turn = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly percents = new Map<string, number | undefined>();
  private warnedOld = "";
  /** The turn in which a late answer was spoken of. */
  private toldLate = 0;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly runCommand: ClientHooks["runCommand"],
    private readonly clock: Clock = { answerS: ANSWER_S, later: setTimeout, now: () => performance.now() },
  ) {}

  get state(): ServerState {
    return this.current;
  }

  /** Starts anew, whatever went before; forgets earlier failures. */
  async restart(): Promise<void> {
    this.policy.reset();
    await this.stop();
    await this.begin();
  }

  async stop(): Promise<void> {
    this.turn += 1;
    clearTimeout(this.timer);
    const { client, child } = this;
    this.client = this.child = undefined;
    this.percents.clear();
    this.progressEmitter.fire(undefined);
    if (client?.isRunning()) {
      // A server that does not end in time is ended below.
      await client.stop(STOP_MS).catch((error: unknown) => this.output.debug(String(error)));
    }
    if (child && child.exitCode === null && child.signalCode === null) {
      await Promise.race([once(child, "exit"), new Promise((resolve) => setTimeout(resolve, client ? STOP_MS : 0))]);
      child.kill("SIGKILL");
    }
  }

  dispose(): void {
    void this.stop();
    this.stateEmitter.dispose();
    this.changeEmitter.dispose();
    this.progressEmitter.dispose();
    this.output.dispose();
  }

  /** Waits while the server starts. Rejects with a sentence for people where none runs. */
  async request<T>(method: string, params: object, token?: vscode.CancellationToken): Promise<T> {
    await this.whenSettled();
    const { client } = this;
    if (!client || this.current.kind !== "running") {
      throw new NotRunning(this.current.kind === "failed" ? this.current.text : l10n.t("nm-lsp has no folder on disk to work with. Open one first."));
    }
    return this.watched(token ? client.sendRequest<T>(method, params, token) : client.sendRequest<T>(method, params));
  }

  /** Tells, once for each start, of a server that hangs: to whoever waits it would look like one that is busy. */
  private async watched<T>(answer: Promise<T>): Promise<T> {
    const { turn, launch } = this;
    const late = this.clock.later(() => {
      if (turn === this.turn && turn !== this.toldLate && launch) {
        this.toldLate = turn;
        void this.tell(explain({ kind: "late", launch, waitedS: LATE_S }));
      }
    }, LATE_S * 1000);
    try {
      return await answer;
    } finally {
      clearTimeout(late);
    }
  }

  /** The file as the server will know it: a `file:` URI in the client's own spelling. */
  uriText(uri: vscode.Uri): string {
    return this.client ? this.client.code2ProtocolConverter.asUri(uri) : uri.toString();
  }

  /** The extension's own folder, in which programs are started. */
  get storage(): string {
    return this.context.globalStorageUri.fsPath;
  }

  get running(): Launch | undefined {
    return this.current.kind === "running" ? this.launch : undefined;
  }

  private async whenSettled(): Promise<void> {
    while (this.current.kind === "starting" || this.current.kind === "waiting") {
      await new Promise<void>((resolve) => {
        const listening = this.onState(() => {
          listening.dispose();
          resolve();
        });
      });
    }
  }

  private async begin(): Promise<void> {
    const turn = (this.turn += 1);
    const folders = diskFolders();
    if (folders.length === 0) {
      this.setState({ kind: "off", why: vscode.workspace.workspaceFolders?.length ? "virtual" : "no-folder" });
      return;
    }
    this.setState({ kind: "starting" });
    const found = await findServer(machine(), {
      setting: vscode.workspace.getConfiguration(SECTION).get("server.path", ""),
      folders: folders.map((folder) => folder.uri.fsPath),
      trusted: vscode.workspace.isTrusted,
      storage: this.context.globalStorageUri.fsPath,
    });
    if (turn !== this.turn) {
      return;
    }
    if (found.kind !== "found") {
      this.fail(found.kind === "nothing" ? { kind: "nothing-found" } : found);
      return;
    }
    this.launch = found.launch;
    await this.run(turn, found.launch);
  }

  private async run(turn: number, launch: Launch): Promise<void> {
    this.output.info(`${launch.command} ${launch.args.join(" ")}`);
    // Not the workspace: `python -m` takes modules from the folder it is started in.
    const cwd = this.storage;
    await fs.mkdir(cwd, { recursive: true });
    const child = spawn(launch.command, [...launch.args], { cwd, windowsHide: true, stdio: "pipe" });
    const gone = new Promise<Ending>((resolve) => {
      child.once("error", (error: NodeJS.ErrnoException) => resolve({ code: error.code ?? "UNKNOWN", exitCode: null, signal: null }));
      // "close" comes after the last of standard error, "exit" may come before it.
      child.once("close", (exitCode, signal) => resolve({ exitCode, signal }));
    });
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-ERRORS_KEPT);
      this.output.append(text);
    });
    // A server that is gone before it has read everything is reported by its end, not by the pipe.
    child.stdin.on("error", (error) => this.output.debug(String(error)));
    this.child = child;
    const factory = await import("../clientFactory");
    if (turn !== this.turn) {
      child.kill("SIGKILL");
      return;
    }
    const client = factory.createClient(child as ChildProcess & { stdout: NonNullable<ChildProcess["stdout"]>; stdin: NonNullable<ChildProcess["stdin"]> }, {
      output: this.output,
      runCommand: this.runCommand,
      settings: (scope) => this.settings(scope),
      progress: (token, value) => this.progress(token, value),
    });
    client.onNotification("neuralmind/statusChanged", (params: { folder: string }) => this.changeEmitter.fire(params.folder));
    const started = client.start().then(
      () => "started" as const,
      () => gone,
    );
    let waiting: NodeJS.Timeout | undefined;
    const late = new Promise<"late">((resolve) => {
      waiting = setTimeout(() => resolve("late"), this.clock.answerS * 1000);
    });
    const first = await Promise.race([started, gone, late]);
    clearTimeout(waiting);
    if (turn !== this.turn) {
      child.kill("SIGKILL");
      return;
    }
    if (first === "late") {
      child.kill("SIGKILL");
      this.fail({ kind: "silent", launch, waitedS: this.clock.answerS });
      return;
    }
    if (first === "started") {
      this.client = client;
      this.policy.initialized(this.clock.now());
      this.setState({ kind: "running" });
      this.checkVersion(launch, client.initializeResult?.serverInfo?.version);
    }
    const ending = await gone;
    if (turn === this.turn) {
      await this.ended(turn, launch, ending, errors, first === "started");
    }
  }

  private async ended(turn: number, launch: Launch, ending: Ending, errors: string, hadStarted: boolean): Promise<void> {
    this.client = this.child = undefined;
    this.percents.clear();
    this.progressEmitter.fire(undefined);
    this.output.warn(`The server ended: ${ending.code ?? ending.signal ?? ending.exitCode}`);
    if (ending.code) {
      this.fail({ kind: "cannot-run", launch, code: ending.code });
      return;
    }
    const verdict = this.policy.ended(this.clock.now());
    if (verdict.kind === "again") {
      this.setState({ kind: "waiting" });
      this.timer = this.clock.later(() => {
        this.run(turn, launch).catch((error: unknown) => this.fail({ kind: "cannot-run", launch, code: String(error) }));
      }, verdict.delayMs);
      return;
    }
    const { exitCode, signal } = ending;
    if (hadStarted) {
      this.fail({ kind: "keeps-ending", launch, exitCode, signal, errors });
      return;
    }
    const python = launch.isPython ? await pythonVersion(launch.command) : undefined;
    if (turn === this.turn) {
      this.fail({ kind: "ended", launch, exitCode, signal, errors, python });
    }
  }

  private checkVersion(launch: Launch, version: string | undefined): void {
    const numbers = versionNumbers(version);
    const key = `${launch.command} ${version}`;
    if (this.warnedOld !== key && (!numbers || isOlder(numbers, OLDEST_SERVER))) {
      this.warnedOld = key;
      void this.tell(explain({ kind: "old-server", launch, version: version ?? l10n.t("unknown") }));
    }
  }

  private settings(scope: vscode.Uri | undefined): Record<string, unknown> {
    const configuration = vscode.workspace.getConfiguration(SECTION, scope ?? null);
    return explicitSettings(this.settingNames(), (name) => configuration.inspect(name), vscode.workspace.isTrusted);
  }

  private settingNames(): string[] {
    const groups = this.context.extension.packageJSON.contributes.configuration as { properties: object }[];
    return groups.flatMap((group) => Object.keys(group.properties)).map((name) => name.slice(SECTION.length + 1));
  }

  private progress(token: string, value: { kind: string; percentage?: number }): void {
    if (value.kind === "end") {
      this.percents.delete(token);
    } else {
      this.percents.set(token, value.percentage ?? this.percents.get(token));
    }
    const known = [...this.percents.values()].filter((percent) => percent !== undefined);
    this.progressEmitter.fire(known.length ? Math.min(...known) : undefined);
  }

  /** Opens a page that takes note of the state only where it becomes so, not where it is so already. */
  async announceTo(open: () => Thenable<unknown>): Promise<void> {
    await vscode.commands.executeCommand("setContext", "nmLsp.state", undefined);
    await open();
    await vscode.commands.executeCommand("setContext", "nmLsp.state", this.current.kind);
  }

  private setState(state: ServerState): void {
    this.current = state;
    void vscode.commands.executeCommand("setContext", "nmLsp.state", state.kind);
    this.stateEmitter.fire(state);
  }

  private fail(cause: Cause): void {
    const explanation = explain(cause);
    this.output.error(explanation.text);
    this.setState({ kind: "failed", text: explanation.text });
    void this.tell(explanation);
  }

  private async tell(explanation: Explanation): Promise<void> {
    const labels: Record<Remedy, string> = {
      install: l10n.t("Install Server…"),
      setting: l10n.t("Open Setting"),
      "package-setting": l10n.t("Open Setting"),
      restart: l10n.t("Restart Server"),
      output: l10n.t("Show Output"),
      "copy-command": l10n.t("Copy Install Command"),
    };
    const { remedies } = explanation;
    const show = explanation.severity === "error" ? vscode.window.showErrorMessage : vscode.window.showWarningMessage;
    const chosen = await show(explanation.text, ...remedies.map((remedy) => labels[remedy]));
    const remedy = remedies.find((one) => labels[one] === chosen);
    if (remedy) {
      await this.remedy(remedy);
    }
  }

  private async remedy(remedy: Remedy): Promise<void> {
    switch (remedy) {
      case "install":
        await this.install();
        break;
      case "setting":
        await vscode.commands.executeCommand("workbench.action.openSettings", `@id:${PATH_SETTING}`);
        break;
      case "restart":
        await this.restart();
        break;
      case "output":
        this.output.show();
        break;
      case "package-setting":
        await vscode.commands.executeCommand("workbench.action.openSettings", `@id:${PACKAGE_SETTING}`);
        break;
      case "copy-command": {
        const source = await this.source();
        if (source) {
          await vscode.env.clipboard.writeText(installCommand(this.launch, source.target));
        } else {
          void this.tell(explain({ kind: "no-source" }));
        }
        break;
      }
    }
  }

  /** Asks first; then installs into the extension's own storage and starts what was installed. */
  async install(): Promise<void> {
    const outcome = await install(machine(), this.storage, await this.source(), this.output);
    if (outcome === "installed") {
      await this.restart();
    } else if (outcome !== "left") {
      const explanation = explain(outcome);
      this.output.error(explanation.text);
      void this.tell(explanation);
    }
  }

  private async source(): Promise<Source | undefined> {
    return sourceOf(vscode.workspace.getConfiguration().get<string>(PACKAGE_SETTING, ""), os.homedir(), await ownWheel(this.context.extensionPath));
  }
}

/** Time, so that tests need not wait for it. */
export interface Clock { answerS: number; later(run: () => void, ms: number): NodeJS.Timeout; now(): number }

/** No server runs; the message says why in words. */
export class NotRunning extends Error {}

interface Ending { code?: string; exitCode: number | null; signal: string | null }

export function machine(): Machine {
  return {
    platform: process.platform,
    searchPath: process.env.PATH,
    home: os.homedir(),
    isFile: async (path) => {
      try {
        return (await fs.stat(path)).isFile();
      } catch {
        return false;
      }
    },
  };
}

export async function pythonVersion(command: string): Promise<Version | undefined> {
  return new Promise((resolve) => {
    execFile(command, ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], { timeout: 10_000, windowsHide: true }, (error, stdout) => {
      const numbers = error ? undefined : versionNumbers(stdout);
      resolve(numbers ? [numbers[0], numbers[1]] : undefined);
    });
  });
}
