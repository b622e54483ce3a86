/** Calls of the server in the words of `editors/PROTOCOL.md`, and what went wrong in words of people. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { METHOD_NOT_FOUND } from "../logic/wire";
import { NotRunning, type Server } from "./server";

export class Api {
  constructor(private readonly server: Server) {}

  call<T>(name: string, params: object, folder: vscode.WorkspaceFolder | string | undefined, token?: vscode.CancellationToken): Promise<T> {
    const uri = typeof folder === "string" ? folder : folder ? this.server.uriText(folder.uri) : undefined;
    return this.server.request<T>(`neuralmind/${name}`, uri ? { ...params, folder: uri } : params, token);
  }

  /** Runs something a person asked for; what fails is shown once and ends in undefined. */
  async attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      await this.report(error);
      return undefined;
    }
  }

  private async report(error: unknown): Promise<void> {
    if (error instanceof vscode.CancellationError || codeOf(error) === -32800) {
      return;
    }
    if (error instanceof NotRunning && this.server.state.kind === "off") {
      void vscode.window.showInformationMessage(error.message);
      return;
    }
    if (error instanceof NotRunning) {
      const restart = l10n.t("Restart Server");
      if ((await vscode.window.showErrorMessage(error.message, restart)) === restart) {
        await this.server.restart();
      }
      return;
    }
    if (isUnknownMethod(error)) {
      void vscode.window.showWarningMessage(l10n.t("The running nm-lsp server does not know this yet. Install a newer one (“nm-lsp: Install Server”)."));
      return;
    }
    const code = codeOf(error);
    const text = error instanceof Error ? error.message : String(error);
    void (code === -32803 || code === -32602 ? vscode.window.showWarningMessage(text) : vscode.window.showErrorMessage(text));
  }
}

export function isUnknownMethod(error: unknown): boolean {
  return codeOf(error) === METHOD_NOT_FOUND;
}

function codeOf(error: unknown): number | undefined {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === "number" ? code : undefined;
}
