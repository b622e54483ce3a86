# ruff: noqa: INP001 (a script of a folder that is no package)
"""Writes the server's settings into the manifest of the VS Code extension, from the schema the server itself reads.

`python editors/vscode/scripts/settings.py` rewrites `package.json` and `package.nls.json`; `--check` only says whether
they match. The settings that the extension reads itself (`nmLsp.server.*`, `nmLsp.trace.*`) are left as they stand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from nm_lsp.engine.settings import SECTION, settings_schema

FOLDER = Path(__file__).resolve().parent.parent
MANIFEST, TEXTS = FOLDER / "package.json", FOLDER / "package.nls.json"

# A git command of another machine is no use, and one from a repository would be a program it brings along.
_SCOPES = {"git.path": "machine-overridable"}
_GROUPS = {
    "index": "Index",
    "search": "Search",
    "context": "Answers",
    "model": "Search by meaning",
    "workers": "Indexing process",
    "git": "Git",
    "storage": "Storage",
    "symbols": "Symbols",
    "decisions": "Decisions",
    "synapses": "Learning",
}


def generated(manifest: dict[str, Any], texts: dict[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The manifest and its texts with one group of settings per group of the schema; the arguments stay as they are."""
    schema: Any = settings_schema()
    groups, words = [manifest["contributes"]["configuration"][0]], {}
    for group, body in schema["properties"].items():
        properties = {}
        words[f"settings.{group}.title"] = _GROUPS.get(group, group.capitalize())
        for order, (name, entry) in enumerate(body["properties"].items(), 1):
            key = f"settings.{group}.{name}"
            words[key] = entry["description"]
            kept = {field: value for field, value in entry.items() if field != "description"}
            scope = _SCOPES.get(f"{group}.{name}", "window")
            properties[f"{SECTION}.{group}.{name}"] = {
                **kept,
                "scope": scope,
                "markdownDescription": f"%{key}%",
                "order": order,
            }
        groups.append({"title": f"%settings.{group}.title%", "properties": properties})
    own = {f"settings.{name.removeprefix(SECTION + '.')}" for name in groups[0]["properties"]} | {
        "settings.server.title"
    }
    kept_texts = {key: text for key, text in texts.items() if not key.startswith("settings.") or key in own}
    contributes = {**manifest["contributes"], "configuration": groups}
    return {**manifest, "contributes": contributes}, {**kept_texts, **words}


def written(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    before = MANIFEST.read_text(encoding="utf-8"), TEXTS.read_text(encoding="utf-8")
    manifest, texts = generated(json.loads(before[0]), json.loads(before[1]))
    after = written(manifest), written(texts)
    if "--check" in arguments:
        return 0 if after == before else 1
    MANIFEST.write_text(after[0], encoding="utf-8")
    TEXTS.write_text(after[1], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
