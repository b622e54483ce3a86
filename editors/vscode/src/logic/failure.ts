/** Why the server does not run or could not be installed, in words, with what to do about it. */

import * as l10n from "@vscode/l10n";
import type { Launch } from "./discovery";
import type { Source } from "./installing";
import { PACKAGE_SETTING, PATH_SETTING } from "./names";

export const OLDEST_PYTHON: readonly [number, number] = [3, 11];
export const OLDEST_SERVER: readonly [number, number, number] = [0, 1, 0];

export type Cause =
  | { kind: "nothing-found" }
  | { kind: "setting-wrong"; path: string }
  | { kind: "cannot-run"; launch: Launch; code: string }
  | { kind: "ended"; launch: Launch; exitCode: number | null; signal: string | null; errors: string; python?: Version }
  | { kind: "silent"; launch: Launch; waitedS: number }
  | { kind: "late"; launch: Launch; waitedS: number }
  | { kind: "keeps-ending"; launch: Launch; exitCode: number | null; signal: string | null; errors: string }
  | { kind: "old-server"; launch: Launch; version: string }
  | { kind: "no-installer" }
  | { kind: "no-source" }
  | { kind: "not-installed"; source: Source; command: string; errors: string };

export type Version = readonly [number, number];

/** What the buttons of a message do. */
export type Remedy = "install" | "setting" | "package-setting" | "restart" | "output" | "copy-command";

export interface Explanation { text: string; remedies: Remedy[]; severity: "error" | "warning" }

/** One message: the cause first, then the setting or the command that repairs it. */
export function explain(cause: Cause): Explanation {
  switch (cause.kind) {
    case "nothing-found":
      return error(
        l10n.t(
          "nm-lsp needs its server, a Python program, and did not find it in this workspace's .venv, on PATH or in its own storage. Install it, or name it in the setting {0}.",
          PATH_SETTING,
        ),
        ["install", "setting", "copy-command"],
      );
    case "setting-wrong":
      return error(l10n.t("The setting {0} names “{1}”, but there is no such file. Correct it, or clear it to search for the server.", PATH_SETTING, cause.path), ["setting"]);
    case "cannot-run":
      return error(l10n.t("The server {0} cannot be run ({1}). Correct the setting {2}, or install the server again.", quoted(cause.launch), systemWords(cause.code), PATH_SETTING), [
        "setting",
        "install",
      ]);
    case "ended":
      return ended(cause);
    case "silent":
      return error(
        l10n.t("The server {0} was started but did not answer within {1} seconds. See the output for what it says, or name another one in the setting {2}.", quoted(cause.launch), cause.waitedS, PATH_SETTING),
        ["restart", "output", "setting"],
      );
    case "late":
      return {
        severity: "warning",
        text: l10n.t("The server {0} has not answered for {1} seconds. Restart it if that goes on; the output shows what it says.", quoted(cause.launch), cause.waitedS),
        remedies: ["restart", "output"],
      };
    case "keeps-ending":
      return error(
        l10n.t("The server ended several times in a row ({0}), so it is not started again by itself. {1}", ending(cause.exitCode, cause.signal), lastWords(cause.errors)).trim(),
        ["restart", "output", "setting"],
      );
    case "old-server":
      return {
        severity: "warning",
        text: l10n.t(
          "The server {0} has version {1}; this extension needs {2} or newer, so some things will not work. Install a newer one, or name it in the setting {3}.",
          quoted(cause.launch),
          cause.version,
          OLDEST_SERVER.join("."),
          PATH_SETTING,
        ),
        remedies: ["install", "setting"],
      };
    case "no-installer":
      return error(
        l10n.t("nm-lsp needs Python {0} or newer, or uv, to install its server, and found neither on PATH. Install one of them and choose “Install Server” again, or name a server in the setting {1}.", OLDEST_PYTHON.join("."), PATH_SETTING),
        ["setting"],
      );
    case "no-source":
      return error(l10n.t("This build of the extension brings no server along. Name one to install in the setting {0}, or one that is installed in {1}.", PACKAGE_SETTING, PATH_SETTING), [
        "package-setting",
      ]);
    case "not-installed":
      return notInstalled(cause);
  }
}

/** Installers say many lines; the first of these that they say is the cause. The network comes first, since pip goes on
 * to say that the package does not exist. */
const UNREACHABLE = /NewConnectionError|ConnectTimeout|NameResolutionError|ProxyError|SSLError|dns error|error sending request|Network is unreachable|client error \(Connect\)/i;
const UNKNOWN_PACKAGE = [/No matching distribution found for ([^\s;]+)/, /Because ([^\s]+) was not found in the (?:package registry|provided package locations)/, /there are no versions of ([^\s]+)/];
const NO_SUCH_FILE = /Distribution not found at|No such file or directory|[Ff]ile \S.* does not exist/;

function notInstalled({ source, command, errors }: Extract<Cause, { kind: "not-installed" }>): Explanation {
  const unknown = UNKNOWN_PACKAGE.map((pattern) => pattern.exec(errors)?.[1]).find((name) => name !== undefined);
  if (UNREACHABLE.test(errors)) {
    return error(l10n.t("The server could not be installed: the package index cannot be reached. Look at the network or the proxy, then choose “Install Server” again."), ["install", "output"]);
  }
  if (unknown && !source.isOwn && sameName(unknown, source.target)) {
    return error(
      l10n.t("The server could not be installed: the package index does not know “{0}”. Name a wheel, a folder or another package in the setting {1}, or clear it to install the server that comes with the extension.", source.target, PACKAGE_SETTING),
      ["package-setting", "output"],
    );
  }
  if (unknown) {
    return error(l10n.t("The server could not be installed: the package index has no “{0}” for this machine and this Python. Another Python on PATH, or uv, may help.", unknown), ["output", "setting"]);
  }
  if (!source.isOwn && NO_SUCH_FILE.test(errors)) {
    return error(l10n.t("The server could not be installed: there is nothing to install at “{0}”. Correct the setting {1}, or clear it to install the server that comes with the extension.", source.target, PACKAGE_SETTING), [
      "package-setting",
      "output",
    ]);
  }
  return error(l10n.t("The server could not be installed. {0} The command was: {1}", lastWords(errors), command).replace(/ {2,}/g, " "), ["output", "install"]);
}

function sameName(one: string, other: string): boolean {
  const plain = (text: string): string => (/^[\w.-]+/.exec(text)?.[0] ?? "").toLowerCase().replace(/[-_.]+/g, "-");
  return plain(one) === plain(other);
}

function ended(cause: Extract<Cause, { kind: "ended" }>): Explanation {
  const { launch, errors, python } = cause;
  if (python && isOlder(python, OLDEST_PYTHON)) {
    return error(
      l10n.t("{0} is Python {1}, and the server needs Python {2} or newer. Name a newer one in the setting {3}, or let the extension install the server.", quoted(launch), python.join("."), OLDEST_PYTHON.join("."), PATH_SETTING),
      ["setting", "install"],
    );
  }
  if (/No module named '?nm_lsp/.test(errors)) {
    return error(
      l10n.t("{0} is a Python without the package nm-lsp. Install it there, or name another Python or server in the setting {1}.", quoted(launch), PATH_SETTING),
      ["setting", "install", "copy-command"],
    );
  }
  return error(
    l10n.t("The server {0} ended right after its start ({1}). {2} Correct the setting {3}, or install the server again.", quoted(launch), ending(cause.exitCode, cause.signal), lastWords(errors), PATH_SETTING).replace(/ {2,}/g, " "),
    ["output", "setting", "install"],
  );
}

/** The command a person can type to get the server. */
export function installCommand(launch: Launch | undefined, target: string): string {
  return launch?.isPython ? `"${launch.command}" -m pip install "${target}"` : `uv tool install "${target}"`;
}

export function isOlder(version: readonly number[], oldest: readonly number[]): boolean {
  for (let at = 0; at < oldest.length; at += 1) {
    const difference = (version[at] ?? 0) - oldest[at];
    if (difference !== 0) {
      return difference < 0;
    }
  }
  return false;
}

/** The numbers of "0.1.0" or "0.1.0.dev3+abc"; undefined for what has none. */
export function versionNumbers(text: string | undefined): number[] | undefined {
  const match = /^\s*v?(\d+)\.(\d+)(?:\.(\d+))?/.exec(text ?? "");
  return match ? [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)] : undefined;
}

/** The last line of standard error that says something, cut to one line of a message. */
export function lastWords(errors: string): string {
  const lines = errors.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== "");
  const line = lines.at(-1);
  if (!line) {
    return "";
  }
  const cut = line.length > 200 ? `${line.slice(0, 200)}…` : line;
  return l10n.t("It said: “{0}”.", cut.replace(/[.。]$/, ""));
}

function ending(exitCode: number | null, signal: string | null): string {
  return signal ? l10n.t("signal {0}", signal) : l10n.t("exit code {0}", String(exitCode ?? "?"));
}

function systemWords(code: string): string {
  const words: Record<string, string> = {
    ENOENT: l10n.t("the file, or the interpreter it names, is missing"),
    EACCES: l10n.t("it is not executable"),
    ENOEXEC: l10n.t("it is no program of this machine"),
    UNKNOWN: l10n.t("it is no program of this machine"),
  };
  return words[code] ?? code;
}

function quoted(launch: Launch): string {
  return `“${launch.command}”`;
}

function error(text: string, remedies: Remedy[]): Explanation {
  return { text, remedies, severity: "error" };
}
