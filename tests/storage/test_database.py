"""Opening a shared SQLite file: foreign, newer, damaged, locked, read-only, full, on a drive without WAL, migrated."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nm_lsp.base.errors import InternalError, StoreProblem
from nm_lsp.storage import damage
from nm_lsp.storage.database import Database, Options, open_anew_if_damaged, open_database, set_damaged_aside
from nm_lsp.storage.migrations import Migration, Schema

NOW = 1_769_860_800.0
ONE = Migration("notes", ("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",))
TWO = Migration(
    "notes have authors",
    ("ALTER TABLE notes ADD COLUMN author TEXT", "CREATE INDEX notes_by_author ON notes (author)"),
)
THREE = Migration(
    "tags", ("CREATE TABLE tags (note INTEGER REFERENCES notes (id), tag TEXT, PRIMARY KEY (note, tag)) STRICT",)
)
FIRST = Schema("note", 0x6E6D4C54, (ONE,))
SECOND = Schema("note", 0x6E6D4C54, (ONE, TWO))
THIRD = Schema("note", 0x6E6D4C54, (ONE, TWO, THREE))
QUICK = Options(busy_ms=200)


def texts(database: Database) -> list[str]:
    with database.reading() as connection:
        return [row[0] for row in connection.execute("SELECT text FROM notes ORDER BY id")]


def add(database: Database, text: str) -> None:
    with database.atomic() as connection:
        connection.execute("INSERT INTO notes (text) VALUES (?)", (text,))


def filled(path: Path, schema: Schema = FIRST, n: int = 3) -> None:
    database = open_database(path, schema, QUICK)
    with database.atomic() as connection:
        connection.executemany("INSERT INTO notes (text) VALUES (?)", [(f"note {i} " + "x" * 500,) for i in range(n)])
    database.close()


def refusal(path: Path, schema: Schema = FIRST, **options: bool) -> str:
    with pytest.raises(StoreProblem) as caught:
        open_database(path, schema, QUICK, **options)  # type: ignore[arg-type]
    assert str(path) in caught.value.message or "database" in caught.value.message
    return caught.value.reason


def test_a_new_file_is_ours_and_uses_wal(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "memory.db"
    database = open_database(path, FIRST)
    assert (database.opened.journal, database.opened.created, database.opened.migrated) == ("wal", True, (0, 1))
    add(database, "one")
    assert texts(database) == ["one"]
    with database.reading() as connection:
        assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    database.close()
    assert damage.application_id_in_header(path) == FIRST.application_id
    again = open_database(path, FIRST)
    assert (again.opened.created, again.opened.migrated) == (False, (1, 1))
    assert texts(again) == ["one"]
    again.close()


# Foreign and newer files


def test_a_foreign_database_is_refused_and_untouched(tmp_path: Path) -> None:
    for application_id in (0, 0x12345678):
        path = tmp_path / f"foreign{application_id}.db"
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")
            other.execute(f"PRAGMA application_id = {application_id}")
        other.close()
        before = path.read_bytes()
        assert refusal(path) == "foreign"
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.glob(f"{path.name}*")] == [path.name]


def test_the_unfinished_log_of_a_foreign_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    holder = sqlite3.connect(tmp_path / "live.db", isolation_level=None)
    holder.execute("PRAGMA application_id = 305419896")
    holder.execute("PRAGMA journal_mode = WAL")
    holder.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY)")
    for suffix in ("", "-wal"):
        Path(f"{path}{suffix}").write_bytes((tmp_path / f"live.db{suffix}").read_bytes())
    holder.close()
    before = {p.name: p.read_bytes() for p in tmp_path.glob("foreign.db*")}
    assert len(before["foreign.db-wal"]) > 0
    assert refusal(path) == "foreign"
    assert {p.name: p.read_bytes() for p in tmp_path.glob("foreign.db*")} == before


def test_a_newer_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path, THIRD)
    before = path.read_bytes()
    assert refusal(path, SECOND) == "newer"
    assert path.read_bytes() == before


# Damage


def zeros_in_the_middle(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\0" * 4096)


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def text_file(path: Path) -> None:
    path.write_text("hello, this is not a database\n" * 200)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = [zeros_in_the_middle, truncated, emptied, text_file, a_folder]


@pytest.mark.parametrize("how", DAMAGES)
def test_damage_is_refused_and_the_file_set_aside_as_it_was(tmp_path: Path, how: Callable[[Path], None]) -> None:
    path = tmp_path / "memory.db"
    filled(path, n=100)
    how(path)
    content = path.read_bytes() if path.is_file() else None
    assert refusal(path, expect_content=True) == "damaged"
    assert (path.read_bytes() if path.is_file() else None) == content
    aside = set_damaged_aside(path, FIRST, NOW, expect_content=True)
    assert aside == tmp_path / "memory.db.corrupt-20260131T120000Z"
    assert (aside.read_bytes() if aside.is_file() else None) == content
    assert not path.exists()
    # Whoever comes second finds nothing to set aside, and never moves the good file that took the place.
    assert set_damaged_aside(path, FIRST, NOW) is None
    filled(path)
    assert set_damaged_aside(path, FIRST, NOW) is None
    how(path)
    assert set_damaged_aside(path, FIRST, NOW, expect_content=True) == tmp_path / "memory.db.corrupt-20260131T120000Z.2"


def test_an_empty_file_is_a_start_where_nothing_is_expected(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    filled(path)
    assert len(texts(open_database(path, FIRST))) == 3


def test_the_log_of_a_damaged_file_goes_with_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path, n=100)
    holder = open_database(path, FIRST)
    add(holder, "only in the log")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 3)
    aside = set_damaged_aside(path, FIRST, NOW)
    assert aside is not None
    assert b"only in the log" in Path(f"{aside}-wal").read_bytes()
    assert not Path(f"{path}-wal").exists()
    assert holder.replaced()
    holder.close()


def test_what_can_be_rebuilt_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "synapses.db"
    filled(path, n=100)
    zeros_in_the_middle(path)
    database, aside = open_anew_if_damaged(path, FIRST, QUICK, NOW)
    assert aside is not None
    assert texts(database) == []
    database.close()
    database, aside = open_anew_if_damaged(path, FIRST, QUICK, NOW)
    assert aside is None
    database.close()


def test_damage_met_later_is_told_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path, n=100)
    with path.open("r+b") as file:
        file.seek(4096 * 2)
        file.write(b"\0" * 4096 * 8)
    database = open_database(path, FIRST, Options(busy_ms=200, check_integrity=False))
    with pytest.raises(StoreProblem) as caught:
        texts(database)
    assert caught.value.reason == "damaged"
    database.close()


# File systems


def test_rollback_journal_where_wal_cannot_work(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    (tmp_path / "memory.db-shm").mkdir()
    database = open_database(path, FIRST)
    assert database.opened.journal == "delete"
    add(database, "one")
    database.close()
    two = [open_database(path, FIRST), open_database(path, FIRST)]
    for n, one in enumerate(two):
        add(one, f"from {n}")
    assert texts(two[0]) == ["one", "from 0", "from 1"]
    for one in two:
        one.close()
    # A drive where it works again gets its log again.
    (tmp_path / "memory.db-shm").rmdir()
    database = open_database(path, FIRST)
    assert database.opened.journal == "wal"
    assert texts(database) == ["one", "from 0", "from 1"]
    database.close()


def test_a_file_in_wal_mode_is_still_read_where_wal_stops_working(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path)
    (tmp_path / "memory.db-shm").mkdir()
    database = open_database(path, FIRST)
    assert database.opened.journal == "delete"
    add(database, "more")
    assert len(texts(database)) == 4
    database.close()


def test_a_process_that_uses_the_rollback_journal_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    (tmp_path / "memory.db-shm").mkdir()
    first = open_database(path, FIRST, QUICK)
    (tmp_path / "memory.db-shm").rmdir()
    with first.reading() as connection:
        connection.execute("SELECT * FROM notes").fetchall()
        second = open_database(path, FIRST, QUICK)
    add(first, "one")
    add(second, "two")
    assert texts(first) == texts(second) == ["one", "two"]
    first.close()
    second.close()


AS_NOBODY = """
import os, sys
from pathlib import Path
from nm_lsp.base.errors import StoreProblem
from nm_lsp.storage.database import open_database
from nm_lsp.storage.migrations import Migration, Schema
os.setuid(65534)
one = Migration("notes", ("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",))
schema = Schema("note", 0x6E6D4C54, (one,))
for name in sys.argv[1:]:
    try:
        open_database(Path(name), schema)
    except StoreProblem as problem:
        print(problem.reason)
"""


def test_a_read_only_folder_is_told_as_such(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    filled(folder / "memory.db")
    paths = [folder / "memory.db", folder / "new.db", folder / "sub" / "new.db"]
    folder.chmod(0o555)
    try:
        if os.getuid() == 0:
            for parent in folder.parents:
                if parent != Path("/") and not parent.stat().st_mode & 0o001:
                    parent.chmod(parent.stat().st_mode | 0o055)
            run = subprocess.run(
                [sys.executable, "-c", AS_NOBODY, *map(str, paths)],
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            assert run.stdout.split() == ["read-only"] * 3
        else:
            assert [refusal(path) for path in paths] == ["read-only"] * 3
    finally:
        folder.chmod(0o755)
    assert [p.name for p in folder.iterdir()] == ["memory.db"]


def test_a_full_disk_fails_the_write_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    database = open_database(path, FIRST)
    add(database, "kept")
    with pytest.raises(StoreProblem) as caught, database.atomic() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        connection.execute("INSERT INTO notes (text) VALUES (?)", ("x" * 100_000,))
    assert caught.value.reason == "full"
    add(database, "small")
    assert texts(database) == ["kept", "small"]
    database.close()


# Transactions


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = open_database(tmp_path / "memory.db", FIRST)
    with pytest.raises(ZeroDivisionError), database.atomic() as connection:
        connection.execute("INSERT INTO notes (text) VALUES ('half')")
        _ = 1 / 0
    with pytest.raises(StoreProblem), database.atomic() as connection:
        connection.execute("INSERT INTO notes (text) VALUES ('half')")
        connection.execute("INSERT INTO notes (text) VALUES (NULL)")
    with pytest.raises(InternalError), database.atomic(), database.atomic():
        pass
    add(database, "whole")
    assert texts(database) == ["whole"]
    database.close()


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    database = open_database(tmp_path / "memory.db", FIRST)
    with pytest.raises(StoreProblem), database.reading() as connection:
        connection.execute("INSERT INTO notes (text) VALUES ('sneaked in')")
    assert texts(database) == []
    database.close()


def test_a_lock_is_reported_after_the_stated_time(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    database = open_database(path, FIRST, QUICK)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreProblem) as caught:
        add(database, "late")
    assert caught.value.reason == "locked"
    # Opening needs no lock where nothing is to be migrated.
    other = open_database(path, FIRST, QUICK)
    assert texts(other) == []
    other.close()
    assert refusal(path, SECOND) == "locked"
    blocker.execute("ROLLBACK")
    blocker.close()
    add(database, "on time")
    assert texts(database) == ["on time"]
    database.close()


def test_threads_share_one_database(tmp_path: Path) -> None:
    database = open_database(tmp_path / "memory.db", FIRST)

    def work(name: str) -> None:
        for n in range(20):
            add(database, f"{name}{n}")
            texts(database)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts(database)) == 80
    database.close()


def test_the_stamp_moves_with_every_write_of_anybody_and_with_another_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    mine, other = open_database(path, FIRST), open_database(path, FIRST)
    stamps = [mine.stamp()]
    assert mine.stamp() == stamps[0]
    add(other, "theirs")
    stamps.append(mine.stamp())
    add(mine, "ours")
    stamps.append(mine.stamp())
    path.rename(tmp_path / "gone.db")
    stamps.append(mine.stamp())
    assert mine.replaced()
    with pytest.raises(StoreProblem) as caught:
        add(mine, "into nowhere")
    assert caught.value.reason == "replaced"
    assert len(set(stamps)) == 4
    copy = sqlite3.connect(":memory:")
    mine.copy_to(copy)
    assert copy.execute("SELECT count(*) FROM notes").fetchone() == (2,)
    copy.close()
    mine.close()
    other.close()


def test_copying_waits_for_no_reader_and_delays_none(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path)
    database = open_database(path, FIRST, QUICK)
    copied: list[int] = []

    def copy() -> None:
        with contextlib.closing(sqlite3.connect(":memory:")) as target:
            database.copy_to(target)
            copied.extend(target.execute("SELECT count(*) FROM notes").fetchone())

    with database.reading():
        thread = threading.Thread(target=copy)
        thread.start()
        thread.join(timeout=20)
        assert copied == [3]
    database.close()


# Migrations


@pytest.mark.parametrize(("schema", "version"), [(FIRST, 1), (SECOND, 2)])
def test_every_earlier_schema_is_migrated_with_a_backup_and_all_rows(
    tmp_path: Path, schema: Schema, version: int
) -> None:
    path = tmp_path / "memory.db"
    filled(path, schema)
    backups: list[int] = []

    def back_up(connection: sqlite3.Connection) -> None:
        copy = sqlite3.connect(":memory:")
        connection.backup(copy)
        backups.append(copy.execute("PRAGMA user_version").fetchone()[0])
        copy.close()

    database = open_database(path, THIRD, before_migration=back_up)
    assert database.opened.migrated == (version, 3)
    assert backups == [version]
    assert len(texts(database)) == 3
    database.close()
    open_database(path, THIRD, before_migration=back_up).close()
    assert backups == [version]


def test_a_backup_that_fails_stops_the_migration(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path, FIRST)

    def fail(connection: sqlite3.Connection) -> None:
        raise StoreProblem("no room for a backup", reason="full")

    with pytest.raises(StoreProblem, match="no room"):
        open_database(path, THIRD, before_migration=fail)
    database = open_database(path, FIRST)
    assert database.opened.migrated == (1, 1)
    database.close()


def test_content_decides_not_the_marker(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path, FIRST)
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 3")
    other.close()
    database = open_database(path, THIRD)
    assert database.opened.migrated == (1, 3)
    assert len(texts(database)) == 3
    database.close()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 1")
    other.close()
    database = open_database(path, THIRD)
    assert database.opened.migrated == (3, 3)
    with database.reading() as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 3
    database.close()


def test_a_content_that_fits_no_version_is_a_clear_failure(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path, THIRD)
    with sqlite3.connect(path) as other:
        other.execute("ALTER TABLE notes DROP COLUMN text")
    other.close()
    with pytest.raises(StoreProblem, match=r"column notes\.text") as caught:
        open_database(path, THIRD)
    assert caught.value.reason == "schema"


def test_a_migration_killed_half_way_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    filled(path, FIRST)

    class Killed(BaseException):
        pass

    def kill(step: str) -> None:
        if step == "migrated":
            raise Killed

    with pytest.raises(Killed):
        open_database(path, THIRD, failpoint=kill)
    database = open_database(path, FIRST)
    assert database.opened.migrated == (1, 1)
    database.close()


OPEN_AT_ONCE = """
import sys
from pathlib import Path
from nm_lsp.storage.database import open_database
from nm_lsp.storage.migrations import Migration, Schema
one = Migration("notes", ("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",))
two = Migration("more", ("ALTER TABLE notes ADD COLUMN author TEXT", "CREATE INDEX notes_by_author ON notes (author)"))
sys.stdin.readline()
database = open_database(Path(sys.argv[1]), Schema("note", 0x6E6D4C54, (one, two)))
with database.atomic() as connection:
    connection.execute("INSERT INTO notes (text) VALUES ('here')")
database.close()
"""


@pytest.mark.parametrize("old", [False, True])
def test_several_processes_start_at_once(tmp_path: Path, *, old: bool) -> None:
    path = tmp_path / "memory.db"
    if old:
        filled(path, FIRST, n=2)
    runs = [
        subprocess.Popen([sys.executable, "-c", OPEN_AT_ONCE, str(path)], stdin=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("go\n")
        run.stdin.flush()
    codes = [run.wait(timeout=60) for run in runs]
    for run in runs:
        assert run.stdin is not None
        run.stdin.close()
    assert codes == [0] * 4
    database = open_database(path, SECOND)
    assert len(texts(database)) == (6 if old else 4)
    database.close()
