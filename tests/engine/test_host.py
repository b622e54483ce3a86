"""An opened folder as its faces see it: answers while it grows, the screen before the disk, nothing that is gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Cancelled, EnvironmentProblem, InvalidInput, NotFound, Refused
from nm_lsp.engine import workspace
from nm_lsp.engine.documents import Document
from nm_lsp.engine.host import Host
from nm_lsp.engine.memory.desk import MemoryDesk
from nm_lsp.engine.requests import (
    ExplainParams,
    GraphExportParams,
    GraphValidateParams,
    HostEvent,
    IndexFinished,
    IndexProgress,
    Missing,
    Nothing,
    Notice,
    Phase,
    QueryParams,
    RebuildParams,
    RelevanceParams,
    SearchParams,
    WakeupParams,
)
from nm_lsp.engine.settings import IndexSettings, ModelSettings, Settings
from nm_lsp.engine.workspace import Workspace
from nm_lsp.storage.locations import index_folder

GO = Cancellation()
KEYWORDS = Settings(model=ModelSettings(enabled=False))

Open = Callable[..., Host]


class Opened:
    """A workspace and what it told its listener."""

    def __init__(self, settings: Settings) -> None:
        self.events: list[HostEvent] = []
        self.workspace = Workspace(settings, self.events.append)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    session = Opened(KEYWORDS)
    yield session
    session.workspace.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "pkg").mkdir(parents=True)
    (folder / "README.md").write_text("# Kettle\n\nBoils water for tea.\n")
    (folder / "pkg" / "boil.py").write_text(
        'def heat_water(litres):\n    """Heat water until it boils."""\n    return Burner().ignite(litres)\n'
    )
    (folder / "pkg" / "burner.py").write_text(
        "class Burner:\n    def ignite(self, litres):\n        return litres * 335\n"
    )
    return folder


def ready(session: Opened, folder: Path) -> Host:
    host = session.workspace.add_folder(folder)
    host.wait_ready(GO)
    return host


def ids(host: Host, query: str, **options: object) -> list[str]:
    return [hit.id for hit in host.search(SearchParams(query=query, **options), GO).hits]  # type: ignore[arg-type]


def test_a_question_finds_the_definition(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    result = host.search(SearchParams(query="heat water until it boils"), GO)
    hit = result.hits[0]
    assert hit.id == "pkg/boil.py::heat_water"
    assert (hit.place.path, hit.place.span.start_line, hit.place.span.end_line) == ("pkg/boil.py", 0, 2)
    assert hit.text.startswith("def heat_water(litres)")
    assert hit.ranks.keyword == 1
    assert 0 < hit.score <= 1
    assert result.partial == ()


def test_the_same_question_gets_the_same_answer(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    answers = {repr(host.search(SearchParams(query="burner ignite"), GO)) for _ in range(5)}
    assert len(answers) == 1


def test_what_matches_nothing_finds_nothing(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    assert host.search(SearchParams(query="zeppelin mooring regulations"), GO).hits == ()
    assert "No match" in host.query(QueryParams(query="zeppelin mooring regulations"), GO).text


def test_with_neither_keywords_nor_a_model_nothing_can_be_searched(
    opened: Opened, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURALMIND_BM25", "0")
    host = ready(opened, project)
    for ask in (
        lambda: host.search(SearchParams(query="water"), GO),
        lambda: host.query(QueryParams(query="water"), GO),
        lambda: host.relevance(RelevanceParams(query="water"), GO),
    ):
        with pytest.raises(EnvironmentProblem, match=r"Nothing can be searched.*Unset NEURALMIND_BM25"):
            ask()


def test_kinds_and_paths_restrict(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    assert ids(host, "burner", kinds=("class",)) == ["pkg/burner.py::Burner"]
    assert ids(host, "water", path="pkg/burner.py") == []


def test_an_unsaved_text_is_searched_as_it_is_on_the_screen(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    text = "def steep_leaves(minutes):\n    return minutes\n"
    host.open_document(Document("pkg/boil.py", text, 1, "python"))
    assert ids(host, "steep leaves") == ["pkg/boil.py::steep_leaves"]
    assert "pkg/boil.py::heat_water" not in ids(host, "heat water")
    host.change_document(Document("pkg/boil.py", text.replace("steep_leaves", "pour_milk"), 2, "python"))
    assert ids(host, "pour milk") == ["pkg/boil.py::pour_milk"]
    assert ids(host, "steep leaves") == []
    host.close_document("pkg/boil.py")
    assert ids(host, "heat water")[0] == "pkg/boil.py::heat_water"


def test_a_new_unsaved_file_is_searched_and_leaves_no_trace(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    host.open_document(Document("pkg/cup.py", "class Teacup: pass\n", 1, "python"))
    assert ids(host, "teacup") == ["pkg/cup.py::Teacup"]
    host.close_document("pkg/cup.py")
    assert ids(host, "teacup") == []
    assert host.status(Nothing(), GO).files == 3


def test_a_saved_file_is_searchable_when_the_status_is_ready_again(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    (project / "pkg" / "boil.py").write_text("def whistle(): pass\n")
    host.save_document("pkg/boil.py")
    host.wait_ready(GO)
    assert ids(host, "whistle") == ["pkg/boil.py::whistle"]


def test_a_deleted_file_is_never_cited(opened: Opened, project: Path) -> None:
    """Not even before anybody has noticed that it is gone (I13)."""
    host = ready(opened, project)
    (project / "pkg" / "burner.py").unlink()
    result = host.search(SearchParams(query="burner ignite"), GO)
    assert "pkg/burner.py" not in {hit.place.path for hit in result.hits}
    assert result.partial == (Missing.INDEX,)
    host.wait_ready(GO)
    assert host.search(SearchParams(query="burner ignite"), GO).partial == ()


def test_the_status_says_what_there_is(opened: Opened, project: Path) -> None:
    (project / "pkg" / "blob.py").write_bytes(b"\0\1\2")
    host = ready(opened, project)
    status = host.status(Nothing(), GO)
    assert (status.ready, status.phase, status.files) == (True, Phase.IDLE, 3)
    assert [(item.path, item.reason) for item in status.skipped] == [("pkg/blob.py", "it is binary")]
    assert status.index_revision > 0
    assert status.is_index_writer
    assert status.problems == ()


def test_stats_count_symbols_and_edges(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    stats = host.stats(Nothing(), GO)
    assert {row.name: row.count for row in stats.languages} == {"python": 2, "markdown": 1}
    assert {row.name: row.count for row in stats.kinds}["class"] == 1
    assert stats.symbols == host.status(Nothing(), GO).symbols
    assert stats.vector_search == "exact"
    assert stats.index_bytes > 0


@pytest.mark.parametrize("budget", [50, 200, 700, 1_100, 1_500])
def test_context_never_costs_more_than_its_budget(opened: Opened, project: Path, budget: int) -> None:
    host = ready(opened, project)
    answer = host.query(QueryParams(query="how is water heated by the burner", budget=budget, trace=True), GO)
    assert answer.tokens <= budget
    assert -(-len(answer.text) // 4) <= budget
    assert answer.trace is not None
    assert answer.hits[0].place.path.startswith("pkg/")


def test_context_has_its_four_layers(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    answer = host.query(QueryParams(query="heat water with the burner"), GO)
    assert [layer.name for layer in answer.layers] == ["L0", "L1", "L2", "L3"]
    assert "Boils water for tea." in answer.layers[0].text
    assert "heat_water" in answer.layers[2].text + answer.layers[3].text
    woken = host.wakeup(WakeupParams(), GO)
    assert [layer.name for layer in woken.layers] == ["L0", "L1"]
    assert woken.tokens <= 600


def test_explain_tells_why_and_remembers_the_question(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    with pytest.raises(InvalidInput, match="no question has been asked yet"):
        host.explain(ExplainParams(), GO)
    host.query(QueryParams(query="ignite the burner"), GO)
    story = host.explain(ExplainParams(), GO)
    assert story.query == "ignite the burner"
    assert story.hits[0].reasons
    assert story.hits[0].id in story.text


def test_relevance_names_ranks_and_adjustments(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    rows = host.relevance(RelevanceParams(query="heat water"), GO).nodes
    assert rows[0].trace.keyword_rank == 1
    assert rows[0].trace.adjustments


@pytest.mark.parametrize(
    ("params", "field"),
    [
        (SearchParams(query="  "), "query"),
        (SearchParams(query="x" * 3_000), "query"),
        (SearchParams(query="x", limit=0), "limit"),
        (SearchParams(query="x", limit=10_000), "limit"),
        (SearchParams(query="x", kinds=("klass",)), "kinds"),
    ],
)
def test_wrong_parameters_name_their_field(opened: Opened, project: Path, params: SearchParams, field: str) -> None:
    host = ready(opened, project)
    with pytest.raises(InvalidInput) as caught:
        host.search(params, GO)
    assert caught.value.field == field


def test_a_withdrawn_request_stops(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    withdrawn = Cancellation()
    withdrawn.cancel()
    with pytest.raises(Cancelled):
        host.search(SearchParams(query="heat water"), withdrawn)


def test_the_graph_goes_out_and_is_valid(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    exported = host.graph_export(GraphExportParams(to="out/graph.json"), GO)
    assert exported.path == "out/graph.json"
    checked = host.graph_validate(GraphValidateParams(path="out/graph.json"), GO)
    assert (checked.valid, checked.nodes, checked.edges) == (True, exported.nodes, exported.edges)
    edges = {(e["source"], e["kind"], e["target"]) for e in host.graph_export(GraphExportParams(), GO).graph["edges"]}  # type: ignore[index]
    assert ("pkg/boil.py::heat_water", "instantiates", "pkg/burner.py::Burner") in edges


def test_an_export_stays_in_the_folder_and_spares_other_files(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    with pytest.raises(InvalidInput, match="outside the folder"):
        host.graph_export(GraphExportParams(to="../graph.json"), GO)
    with pytest.raises(Refused, match="not a graph of ours"):
        host.graph_export(GraphExportParams(to="README.md"), GO)
    assert (project / "README.md").read_text().startswith("# Kettle")
    with pytest.raises(NotFound):
        host.graph_validate(GraphValidateParams(path="none.json"), GO)


def test_one_end_for_every_progress(opened: Opened, project: Path) -> None:
    host = ready(opened, project)
    host.rebuild(RebuildParams(), GO)
    host.wait_ready(GO)
    opened.workspace.remove_folder(project)
    begun = [event for event in opened.events if isinstance(event, IndexProgress)]
    ended = [event for event in opened.events if isinstance(event, IndexFinished)]
    assert begun
    assert ended
    assert isinstance([e for e in opened.events if isinstance(e, IndexProgress | IndexFinished)][-1], IndexFinished)


def test_what_goes_wrong_in_a_folder_ends_no_watch(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HEAD, the index and the edits are looked at by one thread each; no folder may end it for all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("HEADS_S", "FOLLOW_S", "LEARN_S"):
        monkeypatch.setattr(workspace, name, 0.01)
    looks = {"heads": threading.Semaphore(0), "index": threading.Semaphore(0), "edits": threading.Semaphore(0)}

    def fail(what: str) -> Callable[..., None]:
        def look(_: object) -> None:
            looks[what].release()
            raise PermissionError(13, "no longer yours")

        return look

    session = Opened(KEYWORDS)
    try:
        session.workspace.add_folder(project)
        monkeypatch.setattr(Host, "watch_decisions", fail("heads"))
        monkeypatch.setattr(Host, "refresh", fail("index"))
        monkeypatch.setattr(MemoryDesk, "tick", fail("edits"))
        for looked in looks.values():
            assert all(looked.acquire(timeout=10) for _ in range(3))
    finally:
        session.workspace.close()


def test_a_folder_is_opened_once_however_it_is_spelt(opened: Opened, project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    host = opened.workspace.add_folder(project)
    assert opened.workspace.add_folder(tmp_path / "link") is host
    assert opened.workspace.add_folder(project / "pkg" / "..") is host
    inner = opened.workspace.add_folder(project / "pkg")
    assert inner is not host


def test_an_empty_folder_is_ready_and_finds_nothing(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    host = ready(opened, tmp_path / "empty")
    assert ids(host, "anything") == []
    assert host.query(QueryParams(query="anything"), GO).hits == ()
    assert host.wakeup(WakeupParams(), GO).tokens > 0


def test_a_cache_that_cannot_be_written_is_said_once(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    session = Opened(KEYWORDS)
    host = session.workspace.add_folder(project)
    while not host.status(Nothing(), GO).problems:
        os.sched_yield()
    host.files_changed(["pkg"])
    assert ids(host, "water") == []
    session.workspace.close()
    assert len([event for event in session.events if isinstance(event, Notice)]) == 1


def test_closing_leaves_the_index_for_the_next_start(opened: Opened, project: Path) -> None:
    ready(opened, project)
    opened.workspace.close()
    again = Opened(KEYWORDS)
    host = again.workspace.add_folder(project)
    # Answers at once, from what is there, while the child still compares the disk.
    assert ids(host, "heat water")[0] == "pkg/boil.py::heat_water"
    host.wait_ready(GO)
    again.workspace.close()
    assert (index_folder(project) / "manifest.json").exists()


def test_waiting_ends_where_nobody_builds_the_index(
    opened: Opened, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")
    host = opened.workspace.add_folder(project)
    with pytest.raises(EnvironmentProblem, match=r"ended .* times"):
        host.wait_ready(GO)
    assert ids(host, "water") == []


def test_without_an_index_nothing_is_waited_for(tmp_path: Path, project: Path, opened: Opened) -> None:
    session = Opened(Settings(model=ModelSettings(enabled=False), index=IndexSettings(enabled=False)))
    host = session.workspace.add_folder(project)
    host.wait_ready(GO)
    assert ids(host, "water") == []
    session.workspace.close()
