/** One item in the status bar and the menu behind it. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { type FolderView, folderText, statusLine } from "../logic/statusLine";
import type { StatusResult } from "../logic/wire";
import type { Api } from "./api";
import type { DecisionsView } from "./decisionsView";
import { diskFolders } from "./folders";
import type { Server } from "./server";

const POLL_MS = 1_000;
const QUIET_MS = 100;

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("nmLsp.status", vscode.StatusBarAlignment.Left, 10);
  private readonly subscriptions: vscode.Disposable[];
  private readonly statuses = new Map<string, StatusResult>();
  private percent: number | undefined;
  private timer: NodeJS.Timeout | undefined;
  private due = 0;

  constructor(
    private readonly server: Server,
    private readonly api: Api,
    private readonly decisions: DecisionsView,
  ) {
    this.item.name = "nm-lsp";
    this.item.command = "nmLsp.menu";
    this.subscriptions = [
      this.item,
      server.onState((state) => {
        if (state.kind !== "running") {
          this.statuses.clear();
        }
        this.draw();
        this.lookIn(0);
      }),
      server.onProgress((percent) => {
        this.percent = percent;
        this.draw();
        if (percent === undefined) {
          this.lookIn(0);
        }
      }),
      server.onStatusChanged(() => this.lookIn(QUIET_MS)),
      decisions.onCounts(() => this.draw()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.lookIn(QUIET_MS)),
    ];
    this.draw();
    this.item.show();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** The earliest wish counts: a server that has news all the time does not put the look off for ever. */
  private lookIn(ms: number): void {
    const due = performance.now() + ms;
    if (this.timer !== undefined && this.due <= due) {
      return;
    }
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      void this.look();
    }, ms);
  }

  /** Asks every folder; again in a second while one of them is being built, and then only when told. */
  private async look(): Promise<void> {
    if (this.server.state.kind !== "running") {
      return;
    }
    const folders = diskFolders();
    await Promise.all(
      folders.map(async (folder) => {
        try {
          const uri = folder.uri.toString();
          const status = await this.api.call<StatusResult>("status", {}, folder);
          if (status.ready && !this.statuses.get(uri)?.ready) {
            this.server.output.info(`${folder.name}: ready`);
          }
          this.statuses.set(uri, status);
        } catch (error) {
          this.server.output.debug(String(error));
        }
      }),
    );
    this.draw();
    if (folders.some((folder) => !this.statuses.get(folder.uri.toString())?.ready)) {
      this.lookIn(POLL_MS);
    }
  }

  private views(): FolderView[] {
    const counts = this.decisions.staleCounts;
    return diskFolders().map((folder) => {
      const uri = folder.uri.toString();
      return { name: folder.name, status: this.statuses.get(uri), nStale: counts.get(uri) };
    });
  }

  private draw(): void {
    const line = statusLine(this.server.state, this.views(), this.percent);
    this.item.text = line.text;
    this.item.tooltip = line.tooltip;
    const colors = { normal: undefined, warning: "statusBarItem.warningBackground", error: "statusBarItem.errorBackground" };
    const color = colors[line.level];
    this.item.backgroundColor = color ? new vscode.ThemeColor(color) : undefined;
  }

  async menu(): Promise<void> {
    await this.look();
    const { state } = this.server;
    const entries: (vscode.QuickPickItem & { command?: string })[] = [];
    const separator = (label: string) => entries.push({ label, kind: vscode.QuickPickItemKind.Separator });
    const entry = (icon: string, label: string, command: string, detail?: string) => entries.push({ label: `$(${icon}) ${label}`, command, detail });
    if (state.kind === "running") {
      const views = this.views();
      const nStale = views.reduce((sum, view) => sum + (view.nStale ?? 0), 0);
      entry("comment-discussion", l10n.t("Ask the Memory…"), "nmLsp.ask");
      entry("search", l10n.t("Search…"), "nmLsp.search");
      entry("law", l10n.t("Record a Decision…"), "nmLsp.record");
      if (nStale) {
        entry("warning", nStale === 1 ? l10n.t("Show the Stale Decision") : l10n.t("Show {0} Stale Decisions", nStale), "nmLsp.showStale");
      }
      for (const view of views) {
        separator(view.name);
        const [first, ...problems] = folderText(view).split("\n");
        entries.push({ label: `$(info) ${first}` });
        problems.forEach((problem) => entries.push({ label: `$(alert) ${problem.trim()}` }));
      }
      if (views.some((view) => view.status?.problems.some((problem) => problem.code === "model"))) {
        entry("cloud-download", l10n.t("Install the Model for Search by Meaning…"), "nmLsp.installModel");
      }
      separator(l10n.t("index"));
      if (this.percent === undefined) {
        entry("refresh", l10n.t("Rebuild the Index"), "nmLsp.rebuildIndex");
      } else {
        entry("debug-stop", l10n.t("Stop Building the Index"), "nmLsp.cancelIndex");
      }
    } else if (state.kind === "failed") {
      entries.push({ label: `$(error) ${l10n.t("The server does not run")}`, detail: state.text });
      entry("cloud-download", l10n.t("Install the Server…"), "nmLsp.installServer");
      entry("gear", l10n.t("Name the Server in the Settings"), "nmLsp.openServerSetting");
    }
    separator(l10n.t("server"));
    entry("debug-restart", l10n.t("Restart the Server"), "nmLsp.restartServer");
    entry("output", l10n.t("Show the Output"), "nmLsp.showOutput");
    entry("gear", l10n.t("Settings"), "nmLsp.openSettings");
    entry("book", l10n.t("Get Started"), "nmLsp.openWalkthrough");
    const picked = await vscode.window.showQuickPick(entries, { title: "nm-lsp", placeHolder: l10n.t("What do you want to do?") });
    if (picked?.command) {
      await vscode.commands.executeCommand(picked.command);
    }
  }
}
