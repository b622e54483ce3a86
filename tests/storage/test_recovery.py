"""Backups, and a store that is removed, damaged, rolled back or put back: nothing that was kept anywhere is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from nm_lsp.audit.verify import Fault
from nm_lsp.base.errors import NotFound, StoreProblem
from nm_lsp.decisions.events import Event
from nm_lsp.storage.backups import Backups
from nm_lsp.storage.database import Options
from nm_lsp.storage.decision_schema import SCHEMA
from nm_lsp.storage.decisions import DecisionStore
from nm_lsp.storage.locations import state_folder
from nm_lsp.storage.recovery import StoreLost

Make = Callable[..., Event]
Open = Callable[..., DecisionStore]
DAY_S = 86_400


@pytest.fixture
def lsp(repository: Path) -> Path:
    return repository / ".neuralmind" / "lsp"


@pytest.fixture
def recover(lsp: Path, tmp_path: Path, now: float) -> Callable[..., DecisionStore]:
    def recover_it(**options: object) -> DecisionStore:
        store, _ = DecisionStore.recover(lsp, tmp_path / "state", now + 60, actor="Ada", face="cli", **options)  # type: ignore[arg-type]
        return store

    return recover_it


def loss(open_store: Open, **options: object) -> StoreLost:
    with pytest.raises(StoreLost) as caught:
        open_store(**options)
    assert caught.value.reason == "lost"
    return caught.value


# Backups


def test_backups_keep_seven_and_one_a_month(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    for day in range(64):
        assert store.back_up_if_due(now + day * DAY_S) is not None
        assert store.back_up_if_due(now + day * DAY_S + 3600) is None
    kept = [backup.path.name[7:15] for backup in store.backups.all()]
    # 64 days from 31 January to 4 April 2026: seven, and the last of each earlier month.
    assert kept == [
        *("20260404", "20260403", "20260402", "20260401", "20260331", "20260330", "20260329"),
        *("20260228", "20260131"),
    ]
    assert all(backup.reason == "day" for backup in store.backups.all())
    assert [path.name for path in store.backups.folder.iterdir() if path.name.startswith(".")] == []


def test_only_files_of_our_names_are_removed(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.back_up(now, "day")
    other = store.backups.folder / "memory-old.db"
    other.write_text("mine")
    for day in range(12):
        store.back_up(now + day * 60, "day")
    assert other.read_text() == "mine"
    assert len(store.backups.all()) == 7


def test_two_backups_in_one_second_are_two(open_store: Open, now: float) -> None:
    store = open_store()
    assert len({store.back_up(now, "day").path for _ in range(3)}) == 3
    assert len(store.backups.all()) == 3


def test_the_newest_good_one_is_chosen(open_store: Open, event: Make, now: float) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    good = store.back_up(now, "day")
    damaged = store.back_up(now + 1, "day")
    with damaged.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\0" * 8192)
    (store.backups.folder / "memory-20260301T000000Z-day.db").write_text("no database")
    sqlite3.connect(store.backups.folder / "memory-20260302T000000Z-day.db").close()
    (store.backups.folder / "memory-20260303T000000Z-day.db").mkdir()
    newest = store.backups.newest_good()
    assert newest is not None
    assert newest.path == good.path


def test_a_backup_that_cannot_be_used_changes_nothing(
    open_store: Open, recover: Callable[..., DecisionStore], event: Make, now: float, lsp: Path, tmp_path: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.close()
    before = (lsp / "memory.db").read_bytes()
    bad = tmp_path / "memory-20260301T000000Z-day.db"
    bad.write_text("no database")
    with pytest.raises(StoreProblem):
        recover(backup=bad)
    with contextlib.closing(sqlite3.connect(tmp_path / "foreign.db", isolation_level=None)) as foreign:
        foreign.execute("CREATE TABLE decisions (id TEXT)")
    with pytest.raises(StoreProblem, match="not a backup of ours"):
        recover(backup=tmp_path / "foreign.db")
    with pytest.raises(NotFound):
        recover(backup=tmp_path / "none.db")
    assert (lsp / "memory.db").read_bytes() == before
    assert len(open_store().records()) == 1


def test_no_backup_where_the_folder_cannot_be_made(open_store: Open, tmp_path: Path, now: float) -> None:
    store = open_store()
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(StoreProblem):
        store.back_up(now, "day")


def test_a_clone_made_anew_at_the_same_place_has_the_same_state_folder(tmp_path: Path) -> None:
    first = state_folder(tmp_path, "ab" * 20, Path("/home/ada/project"))
    assert first == state_folder(tmp_path, "ab" * 20, Path("/home/ada/project"))
    assert first != state_folder(tmp_path, "ab" * 20, Path("/home/ada/other"))
    assert first != state_folder(tmp_path, None, Path("/home/ada/project"))
    assert first.name.startswith("ab" * 20 + "-")


# A store that is gone


def test_git_clean_between_two_starts_offers_the_backup(
    open_store: Open, recover: Callable[..., DecisionStore], event: Make, now: float, repository: Path
) -> None:
    store = open_store()
    store.append([event("recorded", n, n) for n in (1, 2)], now=now)
    backup = store.back_up_if_due(now)
    assert backup is not None
    store.append([event("recorded", 3, 3)], now=now)
    store.close()
    shutil.rmtree(repository / ".neuralmind")
    found = loss(open_store).loss
    assert found.backup == backup
    assert (found.set_aside, found.n_text_records) == (None, 0)
    assert not (repository / ".neuralmind").exists()
    store = recover()
    assert [record.decision.title for record in store.records()] == ["Decision 1", "Decision 2"]
    report = store.audit.verify()
    assert report.sound, report
    last = store.audit.records()[-1].act
    assert (last.action, last.after) == (
        "store.restored",
        {"backup": backup.path.name, "replayed": 0, "stopped": None},
    )
    store.append([event("recorded", 4, 4)], now=now)
    assert store.audit.verify().sound
    store.close()
    assert len(open_store().records()) == 3


def test_the_text_copy_brings_back_what_the_backup_lacks(
    open_store: Open, recover: Callable[..., DecisionStore], event: Make, now: float, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1), event("recorded", 2, 2)], now=now)
    store.back_up(now, "day")
    store.append([event("amended", 1, 3, before={"title": "Decision 1"}, title="Later")], now=now)
    store.append([event("recorded", 3, 4)], now=now)
    store.audit.rotate("Ada", "cli", now)
    store.append([event("invalidated", 2, 5, reason="no more")], now=now)
    revision, memory = store.memory()
    head = store.audit.head()
    store.close()
    (lsp / "memory.db").unlink()
    assert loss(open_store).loss.n_text_records == 6
    store = recover()
    assert store.memory() == (revision, memory)
    assert store.audit.verify([head]).sound
    assert [match.decision for match in store.search("later")[0]] == [event("recorded", 1, 1).decision]
    assert store.audit.records()[-1].act.after is not None
    assert store.audit.records()[-1].act.after["replayed"] == 4
    store.close()


def test_the_text_copy_alone_brings_everything_back(
    open_store: Open, recover: Callable[..., DecisionStore], event: Make, now: float, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1, rationale="keep\nall ☃"), event("recorded", 2, 2)], now=now)
    store.redact(event("redacted", 2, 3, field="rationale", reason="a key"), now=now)
    memory = store.memory()
    store.close()
    (lsp / "memory.db").unlink()
    assert loss(open_store).loss.backup is None
    store = recover()
    assert store.memory() == memory
    assert store.audit.verify().sound
    store.close()


def test_a_redaction_later_than_the_backup_is_done_again(
    open_store: Open, recover: Callable[..., DecisionStore], event: Make, now: float, lsp: Path, tmp_path: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1, rationale="s3cret")], now=now)
    backup = store.back_up(now, "day")
    # A copy that the redaction cannot know of.
    copy = tmp_path / "elsewhere" / backup.path.name
    copy.parent.mkdir()
    shutil.copy(backup.path, copy)
    store.redact(event("redacted", 1, 2, field="rationale", reason="a key"), now=now)
    store.close()
    (lsp / "memory.db").unlink()
    store = recover(backup=copy)
    assert store.records()[0].decision.rationale == "[redacted]"
    assert store.audit.verify().sound
    assert store.search("s3cret")[0] == []
    store.close()
    assert b"s3cret" not in (lsp / "memory.db").read_bytes()


def test_a_text_that_does_not_belong_is_not_replayed(
    open_store: Open, recover: Callable[..., DecisionStore], event: Make, now: float, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.back_up(now, "day")
    store.append([event("recorded", 2, 2), event("recorded", 3, 3)], now=now)
    store.close()
    (lsp / "memory.db").unlink()
    text = lsp / "audit.jsonl"
    text.write_bytes(text.read_bytes().replace(b"Decision 3", b"Decision X"))
    store, done = DecisionStore.recover(lsp, lsp.parents[2] / "state", now, actor="Ada", face="cli")
    assert done.n_replayed == 1
    assert done.stopped is not None
    assert "line 3" in done.stopped
    assert len(store.records()) == 2
    assert not store.audit.verify().sound
    store.close()


def zeros(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 2)
        file.write(b"\0" * 4096 * 4)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def text_instead(path: Path) -> None:
    path.write_text("notes\n" * 500)


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("how", [zeros, cut, empty, text_instead, folder_instead])
def test_a_damaged_store_is_kept_and_restored(
    open_store: Open,
    recover: Callable[..., DecisionStore],
    event: Make,
    now: float,
    lsp: Path,
    how: Callable[[Path], None],
) -> None:
    store = open_store()
    store.append([event("recorded", n, n) for n in range(1, 30)], now=now)
    store.back_up(now, "day")
    store.append([event("recorded", 30, 30)], now=now)
    store.close()
    how(lsp / "memory.db")
    found = loss(open_store).loss
    assert found.set_aside is not None
    assert found.set_aside.exists()
    assert found.backup is not None
    assert found.n_text_records == 30
    # It stays lost until somebody decides.
    assert loss(open_store).loss.set_aside is None
    store = recover()
    assert len(store.records()) == 30
    assert store.audit.verify().sound
    assert found.set_aside.exists()
    store.close()


def test_reading_only_moves_nothing(open_store: Open, event: Make, now: float, lsp: Path) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.close()
    text_instead(lsp / "memory.db")
    with pytest.raises(StoreProblem) as caught:
        open_store(options=Options(reading_only=True))
    assert caught.value.reason == "damaged"
    assert (lsp / "memory.db").read_text().startswith("notes")


def test_damage_without_any_copy_is_still_not_begun_anew_silently(
    open_store: Open, event: Make, now: float, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.close()
    (lsp / "audit.jsonl").unlink()
    cut(lsp / "memory.db")
    error = loss(open_store)
    assert error.loss.set_aside is not None
    assert error.hint is not None
    assert "no backup was found" in error.hint


def test_beginning_anew_keeps_everything_under_other_names(
    open_store: Open, event: Make, now: float, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.back_up(now, "day")
    text = store.audit.text.path.read_bytes()
    store.close()
    (lsp / "memory.db").unlink()
    loss(open_store)
    store = open_store(start_anew=True)
    assert store.records() == []
    old = lsp / "audit.jsonl.old-20260131T120000Z"
    assert old.read_bytes() == text
    assert store.audit.records()[0].act.after == {"setAside": [old.name]}
    assert store.audit.verify().sound
    store.close()
    store = open_store()
    store.append([event("recorded", 2, 2)], now=now)
    assert store.audit.verify().sound


def test_an_older_file_put_in_place_by_hand_is_seen_and_made_good(
    open_store: Open, event: Make, now: float, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    old = store.back_up(now, "day").path
    store.append([event("recorded", 2, 2)], now=now)
    store.close()
    shutil.copy(old, lsp / "memory.db")
    store = open_store()
    assert len(store.records()) == 1
    assert store.audit.is_text_ahead()
    assert [finding.fault for finding in store.audit.verify().verdict.findings] == [Fault.CUT]
    assert store.replay_text() == (1, None)
    assert len(store.records()) == 2
    assert store.audit.verify().sound


def test_a_chain_that_parted_from_its_text_is_not_mixed_into_it(
    open_store: Open, event: Make, now: float, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    old = store.back_up(now, "day").path
    store.append([event("recorded", 2, 2), event("recorded", 3, 3)], now=now)
    store.close()
    text = store.audit.text.path.read_bytes()
    shutil.copy(old, lsp / "memory.db")
    store = open_store()
    store.append([event("recorded", n, n) for n in (4, 5, 6)], now=now)
    assert store.audit.text.path.read_bytes() == text
    assert Fault.DIFFERENT in {finding.fault for finding in store.audit.verify().verdict.findings}
    n_replayed, stopped = store.replay_text()
    assert n_replayed == 0
    assert stopped is not None
    assert store.audit.rewrite_text("Ada", "cli", now) == ["audit.jsonl.old-20260131T120000Z"]
    assert store.audit.verify().sound


# A store that is removed or replaced while it is open


def test_git_clean_under_an_open_store_loses_nothing(
    open_store: Open, event: Make, now: float, repository: Path, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1), event("recorded", 2, 2)], now=now)
    head = store.audit.head()
    shutil.rmtree(repository / ".neuralmind")
    store.append([event("recorded", 3, 3)], now=now)
    assert (lsp / "memory.db").exists()
    assert len(store.records()) == 3
    assert store.audit.verify([head]).sound
    assert "store.put-back" in [record.act.action for record in store.audit.records()]
    store.close()
    assert len(open_store().records()) == 3


def test_several_open_stores_agree_after_git_clean(open_store: Open, event: Make, now: float, repository: Path) -> None:
    one, two = open_store(), open_store()
    one.append([event("recorded", 1, 1)], now=now)
    assert len(two.records()) == 1
    stamp = two.stamp()
    shutil.rmtree(repository / ".neuralmind")
    one.append([event("recorded", 2, 2)], now=now)
    assert two.stamp() != stamp
    two.append([event("recorded", 3, 3)], now=now)
    assert one.memory() == two.memory()
    assert one.revision() == 3
    assert one.audit.verify().sound
    assert not one.heal(now)


def test_removed_between_check_and_commit(open_store: Open, event: Make, now: float, repository: Path) -> None:
    removed = []

    def remove(step: str) -> None:
        if step == "before-commit" and removed == [False]:
            shutil.rmtree(repository / ".neuralmind")
            removed[0] = True

    store = open_store(failpoint=remove)
    store.append([event("recorded", 1, 1)], now=now)
    removed.append(False)
    store.append([event("recorded", 2, 2)], now=now)
    assert removed == [True]
    store.close()
    assert len(open_store().records()) == 2


def test_removed_before_the_commit_and_put_back_by_another_process(
    open_store: Open, event: Make, now: float, repository: Path
) -> None:
    """The commit goes into a file without a name, after the other process has copied that file."""
    others: list[DecisionStore] = []

    def remove_and_put_back(step: str) -> None:
        if step == "before-commit" and others:
            shutil.rmtree(repository / ".neuralmind")
            others.pop().heal(now)

    store = open_store(failpoint=remove_and_put_back)
    other = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    others.append(other)
    store.append([event("recorded", 2, 2)], now=now)
    assert store.memory() == other.memory()
    assert len(other.records()) == 2
    assert other.audit.verify().sound


def test_a_repository_that_is_gone_goes_to_the_backups(
    open_store: Open, event: Make, now: float, repository: Path, tmp_path: Path, recover: Callable[..., DecisionStore]
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1), event("recorded", 2, 2)], now=now)
    shutil.rmtree(repository)
    with pytest.raises(StoreProblem, match="a backup was made"):
        store.append([event("recorded", 3, 3)], now=now)
    assert not repository.exists()
    assert [backup.reason for backup in Backups(tmp_path / "state", SCHEMA).all()] == ["removed"]
    store.close()
    repository.mkdir()
    assert loss(open_store).loss.backup is not None
    store = recover()
    assert len(store.records()) == 2
    store.close()


def test_a_file_that_somebody_restored_is_taken_over(
    open_store: Open, recover: Callable[..., DecisionStore], event: Make, now: float, lsp: Path
) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.back_up(now, "day")
    other = recover()
    assert list(lsp.glob("memory.db.replaced-*"))
    store.append([event("recorded", 2, 2)], now=now)
    assert store.memory() == other.memory()
    assert len(other.records()) == 2
    assert other.audit.verify().sound
    other.close()


# Migrations of the store itself


def test_opening_an_unmarked_store_migrates_by_content(open_store: Open, event: Make, now: float, lsp: Path) -> None:
    store = open_store()
    store.append([event("recorded", 1, 1)], now=now)
    store.close()
    with contextlib.closing(sqlite3.connect(lsp / "memory.db", isolation_level=None)) as other:
        other.execute("PRAGMA user_version = 0")
    store = open_store()
    assert len(store.records()) == 1
    store.close()
    with contextlib.closing(sqlite3.connect(lsp / "memory.db", isolation_level=None)) as other:
        other.execute("ALTER TABLE findings DROP COLUMN detail")
    with pytest.raises(StoreProblem, match=r"findings\.detail") as caught:
        open_store()
    assert caught.value.reason == "schema"
    assert (lsp / "memory.db").exists()


def test_a_store_is_opened_for_reading_while_another_process_writes(
    open_store: Open, event: Make, now: float, lsp: Path
) -> None:
    open_store().append([event("recorded", 1, 1)], now=now)
    with contextlib.closing(sqlite3.connect(lsp / "memory.db", isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        for options in (Options(), Options(check_integrity=False, reading_only=True)):
            store = open_store(options=options)
            assert len(store.records()) == 1
