"""The child as a process: it builds, follows, takes over, stops, and survives what kills parsers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from child_process import PATIENCE_S, Child

from nm_lsp.search.corpus import Corpus
from nm_lsp.storage.index_store import IndexStore, Manifest
from nm_lsp.worker.channel import Channel
from nm_lsp.worker.marks import ParseMark, fatal_files
from nm_lsp.worker.messages import (
    Analyse,
    Analysed,
    Building,
    CancelBuild,
    Finished,
    OpenFolder,
    Published,
    Rebuild,
    Rescan,
    Role,
    Stage,
    Trouble,
)

Opening = Callable[..., OpenFolder]
Start = Callable[[], Child]


def corpus(opened: OpenFolder) -> Corpus:
    store = IndexStore(Path(opened.index))
    manifest = store.manifest() or Manifest("")
    return Corpus([(store.segment(entry.name), frozenset(entry.dead)) for entry in manifest.segments])


def ids(corpus: Corpus) -> set[str]:
    return {corpus.id(doc) for doc in range(corpus.n_docs)}


def many_files(folder: Path, n_files: int) -> None:
    for n in range(n_files):
        (folder / f"m{n}.py").write_text(f"def f{n}():\n    return g{n}()\n" * 20)


def test_a_folder_is_built_and_says_so(child: Start, opening: Opening, root: Path) -> None:
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    assert worker.wait(Role).writes
    worker.wait(Finished)
    assert set(corpus(opened).file_numbers) == {"gov.py", "other.py"}
    stages = [message.stage for message in worker.seen if isinstance(message, Building)]
    assert stages[0] is Stage.SCANNING
    assert Stage.PARSING in stages


def test_a_saved_file_costs_one_file(child: Start, opening: Opening, root: Path) -> None:
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    worker.wait(Finished)
    worker.seen.clear()
    (root / "gov.py").write_text("def renamed():\n    return 2\n")
    worker.client.send(Rescan(1, 1, ("gov.py",)))
    worker.wait(Finished, lambda message: message.ticket == 1)
    totals = {message.total for message in worker.seen if isinstance(message, Building)}
    assert totals <= {0, 1}
    now = corpus(opened)
    assert now.find("gov.py::renamed") is not None
    assert now.find("gov.py::governed") is None


def test_what_a_shell_does_is_noticed_without_being_told(child: Start, opening: Opening, root: Path) -> None:
    """New, deleted and renamed files, and a new folder, by the watch alone."""
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    worker.wait(Finished)
    (root / "new").mkdir()
    (root / "new" / "deep.py").write_text("def deep(): pass\n")
    (root / "gov.py").rename(root / "gone_to.py")
    (root / "other.py").unlink()
    wanted = {"new/deep.py", "gone_to.py"}
    while set(corpus(opened).file_numbers) != wanted:
        worker.wait(Published)


def test_a_folder_moved_away_takes_its_files_with_it(
    child: Start, opening: Opening, root: Path, tmp_path: Path
) -> None:
    (root / "pkg").mkdir()
    (root / "pkg" / "inner.py").write_text("def inner(): pass\n")
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    worker.wait(Finished)
    (root / "pkg").rename(tmp_path / "elsewhere")
    while "pkg/inner.py" in corpus(opened).file_numbers:
        worker.wait(Published)


def test_the_second_child_follows_and_takes_over_in_mid_build(child: Start, opening: Opening, root: Path) -> None:
    many_files(root, 400)
    first, second, opened = child(), child(), opening(root)
    first.client.send(opened)
    first.wait(Building, lambda message: message.stage is Stage.PARSING)
    second.client.send(opened)
    assert not second.wait(Role).writes
    pid = first.client.pid
    assert pid is not None
    # A client starts its child anew; without one, the lock is free.
    first.client.close(0.0)
    assert second.wait(Role).writes
    second.wait(Finished, lambda message: message.error is None)
    assert corpus(opened).n_live_files == 402


def test_reopening_parses_nothing(child: Start, opening: Opening, root: Path) -> None:
    first, opened = child(), opening(root)
    first.client.send(opened)
    first.wait(Finished)
    first.client.close()
    for path in root.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    again = child()
    again.client.send(opened)
    again.wait(Finished)
    generation = IndexStore(Path(opened.index)).manifest()
    again.client.close()
    last = child()
    last.client.send(opened)
    last.wait(Finished)
    assert Stage.PARSING not in {message.stage for message in last.seen if isinstance(message, Building)}
    assert IndexStore(Path(opened.index)).manifest() == generation


@pytest.mark.parametrize("n_published", [1, 3])
def test_a_killed_build_is_finished_by_the_next_child(
    child: Start, opening: Opening, root: Path, n_published: int
) -> None:
    many_files(root, 500)
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    for _ in range(n_published):
        worker.wait(Published)
    assert worker.client.pid is not None
    os.kill(worker.client.pid, signal.SIGKILL)
    worker.wait(str, lambda text: text == "restarted")
    worker.client.send(opened)
    worker.wait(Finished, lambda message: message.error is None)
    assert corpus(opened).n_live_files == 502


def test_a_file_that_twice_killed_the_parser_is_left_out_and_named(child: Start, opening: Opening, root: Path) -> None:
    opened = opening(root)
    index = Path(opened.index)
    index.mkdir()
    for _ in range(2):
        # What a process leaves behind that dies while it parses gov.py.
        mark = ParseMark(index)
        mark.enter("gov.py")
        (index / f"parsing-{os.getpid()}.mark").rename(index / "parsing-999999.mark")
        dead = fatal_files(index)
    assert dead == ["gov.py"]
    (index / "parsing-999998.mark").write_bytes((6).to_bytes(2, "little") + b"gov.py")
    worker = child()
    worker.client.send(opened)
    worker.wait(Finished)
    assert set(corpus(opened).file_numbers) == {"other.py"}
    manifest = IndexStore(Path(opened.index)).manifest()
    assert manifest is not None
    assert [(item.path, item.reason) for item in manifest.skipped] == [
        ("gov.py", "parsing it ended the indexing process")
    ]
    (root / "gov.py").write_text("def changed(): pass\n")
    worker.client.send(Rescan(1, 1, ("gov.py",)))
    worker.wait(Finished, lambda message: message.ticket == 1)
    assert "gov.py" in corpus(opened).file_numbers


def test_a_cancelled_build_stops_and_a_rescan_finishes_it(child: Start, opening: Opening, root: Path) -> None:
    many_files(root, 500)
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    worker.wait(Building, lambda message: message.stage is Stage.PARSING)
    worker.client.send(CancelBuild(1))
    assert worker.wait(Finished).error == "cancelled"
    assert corpus(opened).n_live_files < 502
    worker.client.send(Rescan(1, 1, None))
    worker.wait(Finished, lambda message: message.error is None)
    assert corpus(opened).n_live_files == 502


def test_a_rebuild_reads_everything_and_keeps_the_old_index_until_then(
    child: Start, opening: Opening, root: Path
) -> None:
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    worker.wait(Finished)
    before = IndexStore(Path(opened.index)).manifest()
    worker.client.send(Rebuild(1, 1, vectors=False))
    worker.wait(Finished, lambda message: message.ticket == 1)
    after = IndexStore(Path(opened.index)).manifest()
    assert before is not None
    assert after is not None
    assert after.generation > before.generation
    assert {entry.name for entry in after.segments}.isdisjoint(entry.name for entry in before.segments)
    assert corpus(opened).n_live_files == 2


def cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def misspell(file: Path) -> None:
    """Bytes of the content change, and nothing of its form does."""
    data = file.read_bytes()
    assert b"governed" in data
    file.write_bytes(data.replace(b"governed", b"gowerned"))


@pytest.mark.parametrize("harm", [cut, misspell, Path.unlink])
@pytest.mark.parametrize("kind", ["segment", "topics"])
def test_a_damaged_index_is_made_anew(
    harm: Callable[[Path], None], kind: str, child: Start, opening: Opening, root: Path
) -> None:
    first, opened = child(), opening(root)
    first.client.send(opened)
    first.wait(Finished)
    first.client.close()
    before = ids(corpus(opened))
    for file in Path(opened.index).glob(f"{kind}-*"):
        harm(file)
    again = child()
    again.client.send(opened)
    again.wait(Finished)
    assert ids(corpus(opened)) == before
    store = IndexStore(Path(opened.index))
    manifest = store.manifest()
    assert manifest is not None
    assert {symbol for topic in store.topics(manifest.topics) for symbol in topic.symbols} == {"gov.py::governed"}


@pytest.mark.parametrize("content", [b"", b"garbage", b'{"schema": 0}', b"\xff\xfe"])
def test_a_damaged_manifest_is_no_manifest(child: Start, opening: Opening, root: Path, content: bytes) -> None:
    worker, opened = child(), opening(root)
    Path(opened.index).mkdir()
    (Path(opened.index) / "manifest.json").write_bytes(content)
    worker.client.send(opened)
    worker.wait(Finished)
    assert corpus(opened).n_live_files == 2


def test_an_unsaved_text_is_parsed_without_touching_the_index(child: Start, opening: Opening, root: Path) -> None:
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    worker.wait(Finished)
    worker.client.send(Analyse(7, "gov.py", "class Fresh: pass\n"))
    answer = worker.wait(Analysed)
    assert answer.ticket == 7
    assert answer.columns is not None
    assert answer.columns["doc.kind"].shape == (2,)
    worker.client.send(Analyse(8, "gov.bin", "x"))
    assert worker.wait(Analysed).reason == "the graph does not read files of this kind"
    assert corpus(opened).find("gov.py::Fresh") is None


def test_an_index_folder_that_cannot_be_made_is_reported_once(child: Start, opening: Opening, root: Path) -> None:
    worker, opened = child(), opening(root)
    Path(opened.index).write_text("a file in the way")
    worker.client.send(opened)
    trouble = worker.wait(Trouble)
    assert trouble.code == "index-folder"
    assert trouble.hint is not None
    assert worker.wait(Finished).error is not None
    worker.client.send(Rescan(1, 5, None))
    assert worker.wait(Finished, lambda message: message.ticket == 5).error is not None


def test_a_child_ends_with_its_input_and_takes_its_second_process_with_it(
    child: Start, opening: Opening, root: Path
) -> None:
    many_files(root, 1_500)
    worker, opened = child(), opening(root)
    worker.client.send(opened)
    worker.wait(Building, lambda message: message.stage is Stage.PARSING and message.done > 100)
    assert worker.client.pid is not None
    family = [psutil.Process(worker.client.pid), *psutil.Process(worker.client.pid).children(recursive=True)]
    worker.client.close(5.0)
    _, alive = psutil.wait_procs(family, timeout=5.0)
    assert alive == []


def test_a_child_that_dies_at_every_start_is_given_up(
    child: Start, opening: Opening, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHOME", "/nonexistent")
    worker = child()
    worker.client.send(opening(root))
    worker.wait(str, lambda text: text == "given up")
    assert worker.given_up is not None
    assert "ended" in worker.given_up
    assert not worker.client.send(CancelBuild(1))


def test_a_child_whose_parent_is_gone_ends_in_silence(opening: Opening, root: Path) -> None:
    """Its answers have no reader any more, while its input is still open somewhere."""
    command = [sys.executable, "-m", "nm_lsp.worker"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        Channel(process.stderr, process.stdin).send(opening(root))
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == b""
