/** Small rules about what people type. */

/** An input box has one line; line breaks travel through it as a visible sign. */
export function toBox(text: string): string {
  return text.replace(/\r?\n/g, "⏎");
}

export function fromBox(text: string): string {
  return text.replace(/ ?⏎ ?/g, "\n");
}

/** Alternatives are typed in one line, separated by semicolons. */
export function alternativesOf(text: string): string[] {
  return text.split(/[;\n]/).map((part) => part.trim()).filter((part) => part !== "");
}

/** `path::symbol` as people say it. */
export function spokenAnchor(anchor: string): string {
  const [path, symbol] = anchor.split("::");
  return symbol ? symbol : (path.split("/").filter(Boolean).pop() ?? path);
}

/** The file as it was confirmed: `now` (the whole file, or a symbol in it) put back to `seen`. Undefined where `now` is
 * not there, or there twice. */
export function asConfirmed(file: string, seen: string, now: string): string | undefined {
  const at = now === "" ? -1 : file.indexOf(now);
  if (at < 0 || file.indexOf(now, at + 1) >= 0) {
    return undefined;
  }
  return file.slice(0, at) + seen + file.slice(at + now.length);
}
