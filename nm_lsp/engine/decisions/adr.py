"""Architecture decision records as Markdown files: those of adr-tools (Nygard's template) and MADR 2 to 4.

Guarantees: pure; reads what the templates have and never guesses a status. What is only proposed is no decision yet.
The time it takes grows with the text and not faster.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

_HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~)")
_NUMBER = re.compile(r"^(?:ADR[- ]?)?\d+[.:)]?[ \t]*(?:[-–—:][ \t]+)?", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*[*+-][ \t]+(.*)$")
_META = re.compile(
    r"^[*_ \t+-]*(status|date|deciders|decision-makers|tags)[*_ \t]*:[*_ \t]*(.*?)[*_ \t]*$", re.IGNORECASE
)
_LINK = re.compile(r"\[([^\[\]\n]{0,300})\]\(([^()\s]{1,500})\)")
_CHOSEN = re.compile(
    r"chosen option\W{0,4}[\"“`*_]+([^\"”`*_\n]{1,300})|chosen option\W{0,4}([^,;.\n]{1,300})", re.IGNORECASE
)
_WORD = re.compile(r"[\w.@+~/-]+")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_NAMED = re.compile(r"^(?:adr[-_]?)?\d{1,5}[-_ ].*\.(?:md|markdown)$", re.IGNORECASE)
_NOT_RECORDS: Final = frozenset({"readme.md", "index.md", "template.md", "adr-template.md", "toc.md"})

_SUMMARY = ("context", "decision drivers", "decision", "consequences", "positive consequences", "negative consequences")
MAX_LINE: Final = 1_000
"""Longer lines are no headings or fields of any template."""


class Standing(Enum):
    ACCEPTED = "accepted"
    PROPOSED = "proposed"
    REJECTED = "rejected"
    DEPRECATED = "deprecated"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Record:
    """`superseded_by` is the linked file's name or the number that the status names, None for neither. `paths` are the
    words of the text that look like paths, relative to the repository or to the record's folder."""

    title: str
    standing: Standing
    status: str
    rationale: str
    alternatives: tuple[str, ...]
    superseded_by: str | None
    date: str | None
    author: str | None
    tags: tuple[str, ...]
    paths: tuple[str, ...]


def is_record_name(name: str) -> bool:
    """Whether a file of that name is a record whatever it holds: adr-tools and MADR number theirs."""
    return _NAMED.match(name) is not None


def parse(text: str, name: str) -> Record | None:
    """The record in `text`, whose file is called `name`; None if it is none."""
    if name.lower() in _NOT_RECORDS or "template" in name.lower():
        return None
    front, body = _front_matter(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    body = _without_comments(body)
    title, preamble, sections = _sections(body)
    meta = {**_meta(preamble), **front}
    status = _first(sections, ("status",)) or meta.get("status", "")
    has_decision = any(_plain(s.title).startswith("decision") for s in sections)
    if not (status and sections) and not (has_decision and is_record_name(name)):
        return None
    standing, by = _standing(status)
    return Record(
        title=_NUMBER.sub("", title or meta.get("title", "")).strip() or name,
        standing=standing,
        status=" ".join(_LINK.sub(r"\1", status).split()),
        rationale=_rationale(sections),
        alternatives=_alternatives(sections),
        superseded_by=by,
        date=meta.get("date") or None,
        author=(meta.get("deciders") or meta.get("decision-makers") or "").strip("[]") or None,
        tags=tuple(tag.strip() for tag in meta.get("tags", "").strip("[]").split(",") if tag.strip()),
        paths=paths_in(body),
    )


def paths_in(text: str) -> tuple[str, ...]:
    """The words of `text` that look like relative paths, each once, in their order."""
    links = [target.partition("#")[0] for _, target in _LINK.findall(text) if "://" not in target]
    plain = " ".join(word for word in _LINK.sub(" ", text).split() if "://" not in word)
    words = (word.rstrip(".") for word in _WORD.findall(plain))
    found = (word for word in [*words, *links] if "." in word.strip(".") or "/" in word.strip("/"))
    return tuple(dict.fromkeys(posixpath.normpath(w) for w in found if len(w) < 500 and w[0] not in "/~"))


def _without_comments(text: str) -> str:
    kept, rest = [], text
    while rest:
        before, begun, rest = rest.partition("<!--")
        kept.append(before)
        rest = rest.partition("-->")[2] if begun else ""
    return "".join(kept)


@dataclass(frozen=True, slots=True)
class _Section:
    level: int
    title: str
    text: str


def _sections(body: str) -> tuple[str, str, list[_Section]]:
    """The first heading, what stands between it and the next, and the sections after it with their own text."""
    title, at = "", 0
    heads: list[tuple[int, str]] = []
    texts: list[list[str]] = [[]]
    in_fence = ""
    for line in body.split("\n"):
        fence = _FENCE.match(line)
        if fence is not None and (not in_fence or in_fence == fence.group(1)):
            in_fence = "" if in_fence else fence.group(1)
        heading = _heading(line) if not in_fence else None
        if heading is not None and not title and not heads:
            title = heading[1]
        elif heading is not None:
            heads.append(heading)
            texts.append([])
            at += 1
        else:
            texts[at].append(line)
    sections = [_Section(*head, "\n".join(text).strip()) for head, text in zip(heads, texts[1:], strict=True)]
    return title, "\n".join(texts[0]).strip(), sections


def _heading(line: str) -> tuple[int, str] | None:
    if len(line) > MAX_LINE:
        return (1, line.lstrip("# ")) if line.startswith("# ") else None
    match = _HEADING.match(line)
    return (len(match.group(1)), match.group(2)) if match is not None else None


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """The plain `name: value` pairs of the front matter, lists joined by commas; nothing else of YAML is read."""
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    found: dict[str, str] = {}
    last = ""
    for line in match.group(1).split("\n"):
        name, mark, value = line.partition(":")
        item = _BULLET.match(line)
        if item is not None and last:
            found[last] = ", ".join(part for part in (found[last], _unquoted(item.group(1))) if part)
        elif mark and name == name.lstrip():
            last = name.strip().lower()
            found[last] = _unquoted(value)
    return found, text[match.end() :]


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == "'" else value


def _meta(preamble: str) -> dict[str, str]:
    found = {}
    for line in preamble.split("\n"):
        match = _META.match(line) if len(line) <= MAX_LINE else None
        if match is not None:
            found[match.group(1).lower()] = match.group(2)
    return found


def _standing(status: str) -> tuple[Standing, str | None]:
    """What the lines of a status say in the end: adr-tools adds a line below `Accepted` when a record is replaced."""
    status = status[:MAX_LINE]
    plain = _plain(status)
    replaced = re.search(r"supers?[ce]e?ded\s+by\s+(.*)", status, re.IGNORECASE)
    if replaced is not None or re.search(r"\bsupers?[ce]e?ded\b", plain):
        return Standing.SUPERSEDED, _replacement(replaced.group(1)) if replaced is not None else None
    for standing in (Standing.DEPRECATED, Standing.REJECTED):
        if standing.value in plain:
            return standing, None
    if re.search(r"\b(proposed|draft|pending|in discussion|rfc)\b", plain) and "accepted" not in plain:
        return Standing.PROPOSED, None
    return Standing.ACCEPTED, None


def _replacement(text: str) -> str | None:
    link = _LINK.search(text)
    if link is not None:
        return posixpath.basename(link.group(2).partition("#")[0])
    number = re.search(r"\d+", text)
    return number.group().lstrip("0") or "0" if number is not None else None


def _first(sections: Iterable[_Section], titles: Sequence[str]) -> str:
    return next((section.text for section in sections if _plain(section.title) in titles), "")


def _rationale(sections: Sequence[_Section]) -> str:
    """Context, drivers, decision and consequences under their own headings; everything where none is named so."""
    named = [s for s in sections if s.text and _plain(s.title).startswith(_SUMMARY)]
    chosen = named or [s for s in sections if s.text and _plain(s.title) != "status"]
    return "\n\n".join(f"{section.title}:\n{section.text}" for section in chosen)


def _alternatives(sections: Sequence[_Section]) -> tuple[str, ...]:
    """The considered options without the one that was chosen."""
    options = [
        _LINK.sub(r"\1", match.group(1)).strip()
        for line in _first(sections, ("considered options", "options considered", "alternatives")).split("\n")
        if (match := _BULLET.match(line)) is not None
    ]
    outcome = next((s.text for s in sections if _plain(s.title).startswith("decision outcome")), "")
    chosen = _CHOSEN.search(outcome[: 2 * MAX_LINE])
    taken = _plain(chosen.group(1) or chosen.group(2)) if chosen is not None else None
    return tuple(option for option in options if option and _plain(option) != taken)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*_`\"“”']", "", text).casefold().split())


def linked(names: Iterable[str], target: str) -> str | None:
    """The one of the file names that `superseded_by` means: a name, or the number that it begins with."""
    known = list(names)
    if target in known:
        return target
    numbered = [name for name in known if (m := re.search(r"\d+", name)) and (m.group().lstrip("0") or "0") == target]
    return numbered[0] if len(numbered) == 1 else None
