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
