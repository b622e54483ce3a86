"""One workspace folder: its index, the buffers over it, and every question that can be asked of it.

Requests read an immutable `Snapshot` and run on the caller's thread; the event loop's calls (documents, changed files)
only take notes. One instance per opened folder; all methods are thread-safe.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import EnvironmentProblem, InvalidInput, NmError
from nm_lsp.engine import answers, contexts, graphs
from nm_lsp.engine.answers import View
from nm_lsp.engine.contexts import Contexts
from nm_lsp.engine.decision_requests import DecisionsChanged
from nm_lsp.engine.decisions.context_block import governing_block
from nm_lsp.engine.decisions.desk import Desk
from nm_lsp.engine.decisions.outlines import Outlines
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.similar import ModelNearness
from nm_lsp.engine.decisions.worktree import WorkTree
from nm_lsp.engine.documents import Document
from nm_lsp.engine.generations import Generations
from nm_lsp.engine.memory.desk import MemoryDesk
from nm_lsp.engine.memory.keeper import MemoryKeepers
from nm_lsp.engine.memory.watching import watch_for_memory
from nm_lsp.engine.overlay import Overlay
from nm_lsp.engine.progress import BuildState
from nm_lsp.engine.query_embedding import QueryEmbedder, model_problems
from nm_lsp.engine.requests import (
    Acknowledged,
    BrainEvent,
    ExplainParams,
    ExplainResult,
    GraphExportParams,
    GraphExportResult,
    GraphValidateParams,
    GraphValidateResult,
    HostEvent,
    Missing,
    Nothing,
    Notice,
    Problem,
    QueryParams,
    QueryResult,
    RebuildParams,
    RelevanceParams,
    RelevanceResult,
    SearchParams,
    SearchResult,
    StatsResult,
    StatusChanged,
    StatusResult,
    WakeupParams,
    WakeupResult,
)
from nm_lsp.engine.settings import Settings
from nm_lsp.engine.texts import SourceTexts
from nm_lsp.search.corpus import Corpus
from nm_lsp.storage.index_store import IndexStore
from nm_lsp.storage.locations import index_folder, vector_cache_file
from nm_lsp.worker.messages import (
    Analyse,
    Analysed,
    CancelBuild,
    CloseFolder,
    OpenFolder,
    Prefer,
    Rebuild,
    Rescan,
    ToChild,
    ToParent,
    Trouble,
)
from nm_lsp.worker.sources import encode_like

_WAIT_POLL_S = 0.05

_R = TypeVar("_R")


class Host:
    """`send` hands a message to the child; `listener` is told what a face may want to show, from any thread."""

    def __init__(
        self,
        key: int,
        folder: Path,
        settings: Settings,
        send: Callable[[ToChild], bool],
        embedder: QueryEmbedder,
        listener: Callable[[HostEvent], None],
        repositories: Repositories,
        memories: MemoryKeepers,
        *,
        use_keyword: bool,
    ) -> None:
        self.key = key
        self.folder = folder
        self._embedder = embedder
        self._settings = settings
        self._send = send
        self._listener = listener
        self._store = IndexStore(index_folder(folder))
        self._overlay = Overlay(self._send_analyse)
        self._state = BuildState(str(folder), listener)
        self._generations = Generations(self._store, self._overlay, self._state.indexed)
        self._contexts = Contexts(lambda paths, budget, count: governing_block(self.decisions, paths, budget, count))
        self._said: set[str] = set()
        self._last_query: str | None = None
        self._use_keyword = use_keyword
        self._closed = False
        self.outlines = Outlines(folder, self._overlay.text)
        revival = settings.decisions.revival == "automatic"
        self._tree = WorkTree(
            folder,
            repositories,
            git=settings.git.path,
            revival=revival,
            clock=time.monotonic,
            require_encrypted=settings.storage.require_encrypted,
        )
        self.decisions = Desk(
            folder,
            self._tree,
            screen=self._screen_bytes,
            spans=self.outlines.spans,
            nearness=ModelNearness(embedder),
            on_change=self._decisions_changed,
        )
        self.memory = MemoryDesk(
            folder,
            self._tree,
            memories,
            corpus=self._indexed,
            ready=lambda: self._state.is_ready,
            cause=self._no_index,
            find=self._found,
            enabled=lambda: self._settings.synapses.enabled,
            writes_page=lambda: self._settings.synapses.page,
        )
        self._tells_events = False

    # -- lifecycle --------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        return self._settings

    def configure(self, settings: Settings) -> None:
        """Use other settings; what decides the content of the index opens it again."""
        reopen = (settings.index, settings.model, settings.git) != (
            self._settings.index,
            self._settings.model,
            self._settings.git,
        )
        self._settings = settings
        self._tree.configure(
            git=settings.git.path,
            revival=settings.decisions.revival == "automatic",
            require_encrypted=settings.storage.require_encrypted,
        )
        if reopen:
            self._send(CloseFolder(self.key))
            self.start()

    def start(self) -> None:
        """Tell the child to index the folder. Also after the child was started anew."""
        if not self._settings.index.enabled or self._closed:
            return
        index, settings = self._settings.index, self._settings
        self._state.begin()
        self._send(
            OpenFolder(
                key=self.key,
                folder=str(self.folder),
                index=str(self._store.folder),
                vector_cache=str(vector_cache_file()),
                excludes=index.excludes,
                max_file_bytes=index.max_file_bytes,
                max_files=index.max_files,
                with_vectors=settings.model.enabled,
                threads=settings.workers.threads,
                git=settings.git.path,
            )
        )
        self._prefer()

    def close(self) -> None:
        self._closed = True
        self.memory.close()
        self._send(CloseFolder(self.key))
        self._state.abandon()
        self._tree.close()

    def receive(self, message: ToParent) -> None:
        """A message of the child, on its reader's thread."""
        match message:
            case Analysed():
                self._overlay.receive(message)
            case Trouble(_, code, text, hint):
                self._say(code, text, hint)
            case _:
                self._state.receive(message)
                self.refresh()

    def refresh(self) -> None:
        """Take up the newest generation if there is one; costs one `stat` if there is none."""
        if self._generations.refresh():
            self._listener(StatusChanged(str(self.folder)))

    def _say(self, code: str, message: str, hint: str | None) -> None:
        """Keep a problem for `status`, and tell it once."""
        self._state.trouble(code, message, hint)
        self._tell(code, message, hint)

    def _tell(self, code: str, message: str, hint: str | None) -> None:
        if self._said.isdisjoint({code, code.partition(".")[0]}):
            self._said.add(code)
            self._listener(Notice("warning", message, str(self.folder), hint))

    def prewarm(self, question: str) -> None:
        """Load the model and embed `question` in the background, for a caller that is about to ask it."""
        threading.Thread(target=self._embedder.embed, args=(question.strip(),), name="nm-prewarm", daemon=True).start()

    def give_up(self, reason: str) -> None:
        """The child is gone for good: what is indexed still answers."""
        self._state.give_up(reason)

    def wait_ready(self, cancel: Cancellation, *, vectors: bool = False, within_s: float = math.inf) -> None:
        """Block until symbols, keyword search and graph (with `vectors`: those too) are complete, `within_s` at most.

        Returns at once where no index is wanted. Raises `Cancelled`, and `EnvironmentProblem` where nobody builds one.
        """
        deadline = time.monotonic() + within_s
        while self._settings.index.enabled and time.monotonic() < deadline:
            if self._state.is_idle if vectors else self._state.is_ready:
                return
            if self._state.given_up is not None:
                raise EnvironmentProblem(
                    f"The index cannot be built: {self._state.given_up}.", hint="Run `nm-lsp doctor`."
                )
            cancel.check()
            time.sleep(_WAIT_POLL_S)
            self.refresh()

    def wait_settled(self, cancel: Cancellation) -> None:
        """Once it is ready: block until its parts are joined, for a caller that ends the child afterwards.

        Else every command that finds them apart would begin to join them and leave them so. Raises `Cancelled`.
        """
        while self._state.is_ready and not self._state.is_settled and self._state.given_up is None:
            cancel.check()
            time.sleep(_WAIT_POLL_S)

    # -- the event loop's side: O(1) --------------------------------------------------------------------------------

    def open_document(self, document: Document) -> None:
        before = self._overlay.documents.get(document.path)
        self._overlay.put(document)
        self._prefer()
        if before is None:
            self.memory.document_opened(document.path)

    def change_document(self, document: Document) -> None:
        before = self._overlay.documents.get(document.path)
        self._overlay.put(document)
        if before is not None:
            self.memory.document_changed(document.path, before.text, document.text, document.version, before.version)

    def save_document(self, path: str) -> None:
        self.memory.document_saved(path)
        self._look_again([path])

    def close_document(self, path: str) -> None:
        self._overlay.drop(path)
        self._prefer()

    def files_changed(self, paths: Sequence[str]) -> None:
        """Files or folders (relative) whose content on disk may have changed, come or gone."""
        self.memory.files_changed(paths)
        self._look_again(paths)

    def files_renamed(self, renames: Mapping[str, str]) -> None:
        """The editor moved files or folders: old → new path."""
        self.memory.renamed(renames)

    def watch_files(self) -> Callable[[], None]:
        """Learn from what any program writes to indexed files, until what is returned is called."""
        return watch_for_memory(self.folder, self._indexed, self.memory.files_changed)

    def tell_events(self) -> None:
        """Have the listener told what happens in this repository's brains, in all processes, from now on."""
        if not self._tells_events:
            self._tells_events = True
            self.memory.subscribe(lambda event: self._listener(BrainEvent.of(str(self.folder), event)))

    def _look_again(self, paths: Sequence[str]) -> None:
        if paths and self._settings.index.enabled:
            self._send(Rescan(self.key, self._state.new_ticket(), tuple(paths)))

    def _prefer(self) -> None:
        self._send(Prefer(self.key, tuple(self._overlay.documents)))

    def _send_analyse(self, message: Analyse) -> bool:
        return self._send(message)

    def document_text(self, path: str) -> str | None:
        """The text on the screen, or None where the file is not open."""
        return self._overlay.text(path)

    # -- decisions --------------------------------------------------------------------------------------------------

    @property
    def repository_root(self) -> Path:
        """The root of the work tree that the folder lies in; the folder itself where there is no repository."""
        return self._tree.root

    def watch_decisions(self) -> None:
        """Look again at the decisions where HEAD moved or somebody wrote; what fails is said once, never raised.

        What keeps git or the store from answering is listed by `Desk.problems` as long as it lasts."""
        if self._closed:
            return
        try:
            look = self.decisions.poll()
        except NmError as problem:
            self._say("decisions", f"Decisions cannot be shown: {problem.message}", problem.hint)
            return
        if look.git_problem is not None:
            message = f"Nobody knows whether decisions still hold: {look.git_problem.message}"
            self._tell("git", message, look.git_problem.hint)
        keeper = self._tree.keeper
        if keeper.folder_in_use != keeper.folder:
            where = f"{keeper.folder} cannot be written or locked: what is decided and learned here is kept in"
            self._say("store-elsewhere", f"{where} {keeper.folder_in_use}.", None)
        if keeper.problem is not None:
            self._tell("decision-store", keeper.problem.message, keeper.problem.hint)
        altered = keeper.check()
        if altered is not None:
            self._tell("decisions-altered", altered.message, altered.hint)

    def _decisions_changed(self) -> None:
        self._listener(DecisionsChanged(str(self.folder)))
        self.memory.tell("decisions", dict)

    def _indexed(self) -> Corpus:
        """The index as it is on disk, without the screen."""
        self.refresh()
        return self._generations.on_disk.corpus

    def _found(self, question: str, cancel: Cancellation) -> list[str]:
        """The first ten hits, without a word to the associative brain."""
        return [candidate.node.id for candidate in answers.ranked(self.view(), question, 10, cancel).candidates]

    def _no_index(self) -> str | None:
        """Why there is no index, None where there is one or it is being built."""
        if not self._settings.index.enabled:
            return "the index is switched off (setting index.enabled)"
        return self._state.cause

    def _screen_bytes(self, path: str) -> bytes | None:
        text = self._overlay.text(path)
        if text is None:
            return None
        try:
            disk = (self.folder / path).read_bytes()
        except OSError:
            disk = b""
        return encode_like(text, disk)

    # -- snapshots --------------------------------------------------------------------------------------------------

    def view(self) -> View:
        """What an answer is made from: the newest index with the screen's texts laid over it."""
        self.refresh()
        snapshot, is_complete = self._generations.with_screen()
        missing = self._state.missing(has_model=self._embedder.files is not None, settings=self._settings)
        if not is_complete and Missing.INDEX not in missing:
            missing = (Missing.INDEX, *missing)
        texts = SourceTexts(self.folder, snapshot, self._overlay.text)
        return View(
            self.folder,
            snapshot,
            missing,
            self._settings,
            self._embedder,
            self._use_keyword,
            texts,
            self.memory.recall(),
        )

    def _answer(self, make: Callable[[View], _R]) -> _R:
        """An answer over one view; sources that turn out to have changed are looked at again afterwards."""
        view = self.view()
        answer = make(view)
        if view.texts.changed:
            self._look_again(view.texts.changed)
        return answer

    # -- use cases --------------------------------------------------------------------------------------------------

    def status(self, _: Nothing, cancel: Cancellation) -> StatusResult:
        cancel.check()
        self.refresh()
        problems = [*model_problems(self._embedder, self._settings), *self._decision_problems()]
        problems += self.memory.problems()
        return self._state.status(self._generations.newest, problems, self.decisions.head(), self.decisions.counts())

    def _decision_problems(self) -> list[Problem]:
        return [Problem("decisions", text) for text in self.decisions.problems()]

    def search(self, params: SearchParams, cancel: Cancellation) -> SearchResult:
        result = self._answer(lambda view: answers.search(view, params, cancel))
        self.memory.answered([hit.id for hit in result.hits])
        return result

    def query(self, params: QueryParams, cancel: Cancellation) -> QueryResult:
        result = self._answer(lambda view: self._contexts.query(view, params, self.decisions.revision(), cancel))
        self._last_query = params.query
        files = dict.fromkeys(hit.place.path for hit in result.hits)
        self.memory.answered([hit.id for hit in result.hits], tokens=result.tokens, files=tuple(files))
        return result

    def wakeup(self, params: WakeupParams, cancel: Cancellation) -> WakeupResult:
        return self._answer(lambda view: contexts.wakeup(view, params, cancel))

    def explain(self, params: ExplainParams, cancel: Cancellation) -> ExplainResult:
        query = params.query if params.query is not None else self._last_query
        if query is None:
            raise InvalidInput("query", "no question has been asked yet", hint="Ask one, or give it here.")
        revision = self.decisions.revision()
        return self._answer(lambda view: contexts.explain(view, self._contexts, query, revision, cancel))

    def relevance(self, params: RelevanceParams, cancel: Cancellation) -> RelevanceResult:
        return self._answer(lambda view: answers.relevance(view, params, cancel))

    def stats(self, _: Nothing, cancel: Cancellation) -> StatsResult:
        model = self._embedder.files
        name = model.model_id if model else "none"
        return graphs.stats(self.view().snapshot, self._store.size(), name, cancel)

    def graph_export(self, params: GraphExportParams, cancel: Cancellation) -> GraphExportResult:
        return graphs.export(self.folder, self.view().snapshot.corpus, params, cancel)

    def graph_validate(self, params: GraphValidateParams, cancel: Cancellation) -> GraphValidateResult:
        return graphs.check(self.folder, self.view().snapshot.corpus, params, cancel)

    def rebuild(self, params: RebuildParams, cancel: Cancellation) -> Acknowledged:
        cancel.check()
        if not self._state.is_writer:
            return Acknowledged(False, "Another server builds this folder's index; rebuild it there.")
        self._send(Rebuild(self.key, self._state.new_ticket(), params.vectors))
        return Acknowledged(True, "The index is being rebuilt; the present one answers until then.")

    def cancel_index(self, _: Nothing, cancel: Cancellation) -> Acknowledged:
        cancel.check()
        if self._state.is_idle:
            return Acknowledged(False, "No index is being built.")
        self._send(CancelBuild(self.key))
        return Acknowledged(True, "The build was stopped; it goes on at the next change or `index.rebuild`.")
