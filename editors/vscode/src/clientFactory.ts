/** The language client, in a bundle of its own that is read only when a server is started. */

import type { Readable, Writable } from "node:stream";
import * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  StreamMessageReader,
  StreamMessageWriter,
  type Middleware,
} from "vscode-languageclient/node";
import { COMMAND_PREFIX, SECTION } from "./logic/names";

export interface Streams { stdout: Readable; stdin: Writable }

export interface ClientHooks {
  output: vscode.LogOutputChannel;
  /** A command of the server that the editor was asked to run, without the prefix. `undefined`: let it run as it is. */
  runCommand(name: string, argument: Record<string, unknown>, run: (argument: Record<string, unknown>) => Promise<unknown>): Promise<unknown>;
  settings(scope: vscode.Uri | undefined): Record<string, unknown>;
  progress(token: string, value: { kind: string; percentage?: number; message?: string }): void;
}

export type Client = LanguageClient;

/** Writes what goes wrong to the output alone: `start` would also tell the user in its own words, whatever the options. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** Speaks to a process that runs already. Restarting is the caller's business, and so is every message about it. */
export function createClient(streams: Streams, hooks: ClientHooks): LanguageClient {
  const middleware: Middleware = {
    executeCommand: (command, args, next) => {
      const argument = (args[0] ?? {}) as Record<string, unknown>;
      const name = command.startsWith(`${COMMAND_PREFIX}.`) ? command.slice(COMMAND_PREFIX.length + 1) : command;
      return hooks.runCommand(name, argument, async (changed) => next(command, [changed]));
    },
    handleWorkDoneProgress: (token, params) => hooks.progress(String(token), params),
    workspace: {
      configuration: async (params, token, next) => {
        const answers = await next(params, token);
        return Array.isArray(answers)
          ? answers.map((answer, at) => {
              const item = params.items[at];
              return item.section === SECTION ? hooks.settings(item.scopeUri ? vscode.Uri.parse(item.scopeUri) : undefined) : answer;
            })
          : answers;
      },
    },
  };
  const options: LanguageClientOptions = {
    // Other schemes (untitled, git, output, notebook cells) are no files of a workspace.
    documentSelector: [{ scheme: "file" }],
    outputChannel: hooks.output,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: { commandPrefix: COMMAND_PREFIX, notifications: ["statusChanged"], prompts: true },
    initializationFailedHandler: () => false,
    markdown: { isTrusted: false, supportHtml: false },
    middleware,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => ({ action: CloseAction.DoNotRestart, handled: true, message: "The connection is closed." }),
    },
  };
  return new QuietClient(
    SECTION,
    "nm-lsp",
    async () => ({ reader: new StreamMessageReader(streams.stdout), writer: new StreamMessageWriter(streams.stdin) }),
    options,
  );
}
