"""Buffers on the screen that differ from the index, parsed by the child so that search sees them.

Noting a change is O(1) and safe on an event loop; the parsing happens when somebody asks, and only then.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nm_lsp.engine.documents import Document
from nm_lsp.search.segment import Segment
from nm_lsp.worker.analysis import content_hash
from nm_lsp.worker.messages import Analyse, Analysed

WAIT_S = 1.0
"""How long a request waits for the parse of a buffer; after that it searches the last one that is known."""


@dataclass(frozen=True, slots=True)
class _Parsed:
    """`document` is the very object that was parsed: documents are replaced, never changed."""

    document: Document
    segment: Segment | None


class Overlay:
    """Thread-safe. `send` hands a message to the child and says whether that was possible."""

    def __init__(self, send: Callable[[Analyse], bool]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._documents: dict[str, Document] = {}
        self._parsed: dict[str, _Parsed] = {}
        self._asked: dict[int, tuple[Document, threading.Event]] = {}
        self._tickets = itertools.count(1)

    @property
    def documents(self) -> Mapping[str, Document]:
        return self._documents

    def put(self, document: Document) -> None:
        self._documents = {**self._documents, document.path: document}

    def drop(self, path: str) -> None:
        self._documents = {key: value for key, value in self._documents.items() if key != path}
        with self._lock:
            self._parsed.pop(path, None)

    def text(self, path: str) -> str | None:
        document = self._documents.get(path)
        return document.text if document else None

    def receive(self, answer: Analysed) -> None:
        with self._lock:
            document, event = self._asked.pop(answer.ticket, (None, None))
            if document is not None:
                segment = Segment(answer.columns) if answer.columns is not None else None
                if self._documents.get(document.path) is document:
                    self._parsed[document.path] = _Parsed(document, segment)
        if event is not None:
            event.set()

    def segments(self, indexed_hash: Callable[[str], bytes | None]) -> tuple[dict[str, Segment | None], bool]:
        """Per path whose screen text differs from the index its segment; and whether all of them are up to date.

        Waits at most `WAIT_S` for the child.
        """
        changed = [
            document
            for document in self._documents.values()
            if indexed_hash(document.path) != content_hash(document.text.encode("utf-8", "surrogatepass"))
        ]
        self._parse([document for document in changed if not self._is_known(document)])
        found: dict[str, Segment | None] = {}
        complete = True
        for document in changed:
            parsed = self._parsed.get(document.path)
            if parsed is not None:
                found[document.path] = parsed.segment
            complete = complete and parsed is not None and parsed.document is document
        return found, complete

    def _is_known(self, document: Document) -> bool:
        parsed = self._parsed.get(document.path)
        return parsed is not None and parsed.document is document

    def _parse(self, documents: Sequence[Document]) -> None:
        waiting = []
        for document in documents:
            event = threading.Event()
            with self._lock:
                ticket = next(self._tickets)
                self._asked[ticket] = (document, event)
            if self._send(Analyse(ticket, document.path, document.text)):
                waiting.append(event)
        for event in waiting:
            event.wait(WAIT_S)
