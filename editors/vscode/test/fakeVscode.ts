/** As much of the editor as the units under test touch: events, settings, folders, and a record of what was shown. */

export class EventEmitter<T> {
  private readonly listeners = new Set<(value: T) => unknown>();
  readonly event = (listener: (value: T) => unknown) => {
    this.listeners.add(listener);
    return { dispose: () => this.listeners.delete(listener) };
  };
  fire(value: T): void {
    [...this.listeners].forEach((listener) => listener(value));
  }
  dispose(): void {
    this.listeners.clear();
  }
}

export interface Shown { level: "error" | "warning" | "info"; text: string; buttons: string[] }

/** What a test sets up and looks at. */
export const fake = {
  shown: [] as Shown[],
  /** The button that is chosen on each message, by its label; nothing is chosen where it is not there. */
  choose: "",
  settings: new Map<string, unknown>(),
  folders: [] as { uri: Uri; name: string; index: number }[],
  executed: [] as unknown[][],
  copied: [] as string[],
  log: [] as string[],
  reset(): void {
    fake.shown = [];
    fake.choose = "";
    fake.settings.clear();
    fake.folders = [];
    fake.executed = [];
    fake.copied = [];
    fake.log = [];
    workspace.isTrusted = true;
  },
};

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly path: string,
    readonly query = "",
  ) {}
  static file(path: string): Uri {
    return new Uri("file", path);
  }
  static parse(text: string): Uri {
    const [, scheme, path] = /^([\w-]+):(?:\/\/)?(.*)$/.exec(text) ?? ["", "file", text];
    return new Uri(scheme, decodeURIComponent(path));
  }
  static from(parts: { scheme: string; path: string; query?: string }): Uri {
    return new Uri(parts.scheme, parts.path, parts.query);
  }
  static joinPath(base: Uri, ...parts: string[]): Uri {
    return new Uri(base.scheme, [base.path, ...parts].join("/"));
  }
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}://${this.path}${this.query ? `?${this.query}` : ""}`;
  }
}

function show(level: Shown["level"]) {
  return async (text: string, ...rest: unknown[]) => {
    const buttons = rest.filter((one): one is string => typeof one === "string");
    fake.shown.push({ level, text, buttons });
    return buttons.find((button) => button === fake.choose);
  };
}

const channel = () => {
  const write = (text: string) => void fake.log.push(text);
  return { append: write, appendLine: write, debug: write, info: write, warn: write, error: write, show: () => undefined, dispose: () => undefined };
};

export const window = {
  createOutputChannel: channel,
  showErrorMessage: show("error"),
  showWarningMessage: show("warning"),
  showInformationMessage: show("info"),
  showQuickPick: async () => undefined,
  activeTextEditor: undefined,
  setStatusBarMessage: () => undefined,
  withProgress: (_: unknown, work: (progress: object, token: object) => unknown) =>
    work({ report: () => undefined }, { isCancellationRequested: false, onCancellationRequested: () => ({ dispose: () => undefined }) }),
};

export const workspace = {
  isTrusted: true,
  get workspaceFolders() {
    return fake.folders;
  },
  getConfiguration: (section?: string) => ({
    get: (name: string, fallback: unknown) => fake.settings.get(section ? `${section}.${name}` : name) ?? fallback,
    inspect: (name: string) => ({ globalValue: fake.settings.get(section ? `${section}.${name}` : name) }),
  }),
  getWorkspaceFolder: (uri: Uri) => fake.folders.find((folder) => uri.path.startsWith(`${folder.uri.path}/`)),
  asRelativePath: (uri: Uri) => uri.path,
};

export const commands = {
  executeCommand: async (...args: unknown[]) => void fake.executed.push(args),
};

export const env = { clipboard: { writeText: async (text: string) => void fake.copied.push(text) } };

export class CancellationError extends Error {}
export class ThemeIcon {
  constructor(readonly id: string) {}
}
export enum ProgressLocation { Notification = 15 }
export enum QuickPickItemKind { Separator = -1 }
export const QuickInputButtons = { Back: {} };
