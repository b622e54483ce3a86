/** What is sent to the server: only what somebody wrote down, so that the workspace's config.toml counts as well. */

/** One setting as the editor knows it, by where it was written. */
export interface Written {
  globalValue?: unknown;
  workspaceValue?: unknown;
  workspaceFolderValue?: unknown;
}

/** Settings that name programs or hand the server power: only the user's own count where nothing is trusted. */
export const RESTRICTED = new Set(["server.path", "server.package", "git.path"]);

/** `names` are relative to the section ("decisions.stale"); the nested object the server expects. */
export function explicitSettings(names: readonly string[], inspect: (name: string) => Written | undefined, trusted: boolean): Record<string, unknown> {
  // The key `server` belongs to the client and keeps the object from being empty: an empty answer would mean "no
  // news" to the server, and a setting that was removed would stay in force.
  const result: Record<string, unknown> = { server: {} };
  for (const name of names) {
    const written = inspect(name);
    const value = trusted || !RESTRICTED.has(name) ? (written?.workspaceFolderValue ?? written?.workspaceValue ?? written?.globalValue) : written?.globalValue;
    if (value === undefined || name.startsWith("server.") || name.startsWith("trace.")) {
      continue;
    }
    const [group, ...rest] = name.split(".");
    const inner = (result[group] ??= {}) as Record<string, unknown>;
    inner[rest.join(".")] = value;
  }
  return result;
}
