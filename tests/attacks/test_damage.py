"""Bytes of our files altered, cut or gone: each file is used as it was, rebuilt, or set aside and reported."""

from __future__ import annotations

import hashlib
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from decision_session import GOV, Repo, Session, private_env
from lengths import Length, lengths
from lsp_harness import LspError

PATIENCE_S = 30.0
REQUEST_FAILED = -32803
WITH_INDEX = {"index": {"enabled": True}}


class Store:
    """A repository with decisions of every status, something learned and an index; put back before every round."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder / "live", folder / "kept"
        self.repo = Repo(self.folder / "repo")
        self.env = private_env(self.folder / "home")
        session = self.start()
        ids = [session.record("gov.py", title=f"Rule {name}") for name in ("kept", "broken", "given up")]
        session.record("docs/", title="Words are short")
        session.call("decisions.invalidate", id=ids[2], reason="Nobody needs it.")
        self.repo.commit("change", {"gov.py": GOV.replace("* 2", "* 3")})
        session.scan()
        session.call("decisions.restore", ids=[ids[0]], note="Still so.")
        session.until(lambda: session.call("status")["ready"], PATIENCE_S)
        session.call("feedback", id="gov.py::governed", useful=True, context=["gov.py::other"])
        self.truth = self.decisions(session)
        self.found = self.search(session)
        assert sorted({row["status"] for row in self.truth.values()}) == ["active", "invalidated", "stale"]
        session.stop()
        shutil.copytree(self.folder, self.kept, symlinks=True)

    def start(self) -> Session:
        return Session(self.repo.path, env=self.env, settings=WITH_INDEX)

    @staticmethod
    def decisions(session: Session) -> dict[str, Any]:
        ids = [row["id"] for row in session.call("decisions.list")["decisions"]]
        return {row["id"]: row for row in session.call("decisions.get", ids=ids)["decisions"]} if ids else {}

    @staticmethod
    def search(session: Session) -> list[str]:
        return [hit["id"] for hit in session.call("search", query="governed values doubled")["hits"]]

    def put_back(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept, self.folder, symlinks=True)

    def files(self, pattern: str) -> list[Path]:
        return sorted(path for path in self.folder.glob(pattern) if path.is_file() and path.stat().st_size)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("damage"))


def damage(file: Path, rng: random.Random) -> str:
    """Alter the file, and say how."""
    raw = bytearray(file.read_bytes())
    at = rng.randrange(len(raw))
    how = rng.choice(["flip", "flip", "flip", "cut", "zero", "append", "empty", "noise", "gone"])
    match how:
        case "flip":
            for _ in range(rng.choice([1, 1, 4])):
                raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        case "cut":
            del raw[at:]
        case "zero":
            length = min(len(raw) - at, rng.choice([16, 512, 4096]))
            raw[at : at + length] = bytes(length)
        case "append":
            raw += rng.randbytes(100)
        case "empty":
            raw.clear()
        case "noise":
            raw[:] = rng.randbytes(len(raw))
        case _:
            file.unlink()
            return how
    file.write_bytes(raw)
    return f"{how} near {at} of {len(raw)}"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reported(session: Session) -> list[str]:
    """What a person is told of the decisions' store, in a message and in the status."""
    problems = session.call("status")["problems"]
    return [each["message"] for each in problems if each["code"] == "decisions"] if session.messages() else []


def check_decisions(store: Store, session: Session, how: str) -> None:
    """Every decision reads as it was recorded, or a person is told that it may not."""
    refused = None
    try:
        shown = store.decisions(session)
    except LspError as error:
        refused = error
    assert refused is None or refused.code == REQUEST_FAILED, how
    if refused is not None or shown != store.truth:
        session.until(lambda: reported(session), PATIENCE_S)


@pytest.mark.parametrize("name", ["memory.db", "audit.jsonl"])
@lengths(1, share=2)
def test_damage_to_the_memory_is_harmless_or_reported(length: Length, name: str, store: Store) -> None:
    """No decision is lost or falsified without a word, and no byte of the damaged file goes away."""
    rng = random.Random(seed := length.seed)
    for number in range(length.rounds):
        store.put_back()
        file = store.repo.path / ".neuralmind" / "lsp" / name
        before = digest(file)
        how = f"seed {seed}, round {number}: {name} {damage(file, rng)}"
        damaged = digest(file) if file.exists() else None
        session = store.start()
        try:
            check_decisions(store, session, how)
            # A torn last line of the text is written again from the table; all else is told.
            if name == "audit.jsonl" and (not file.exists() or digest(file) != before):
                session.until(lambda session=session: reported(session), PATIENCE_S)
            kept = {digest(path) for path in file.parent.iterdir() if path.name.startswith(name)}
            session.stop()
        except Exception as error:
            raise AssertionError(how) from error
        finally:
            session.client.kill()
        if name == "memory.db" and damaged is not None and not file.exists():
            assert damaged in kept, how


@pytest.mark.parametrize("pattern", ["repo/.neuralmind/lsp/synapses.db", "home/XDG_CACHE_HOME/nm_lsp/index/*/*"])
@lengths(1, share=2)
def test_damage_to_what_can_be_made_again_costs_nobody_anything(length: Length, pattern: str, store: Store) -> None:
    """The decisions are as they were and the same question finds the same code."""
    rng = random.Random(seed := length.seed)
    for number in range(length.rounds):
        store.put_back()
        file = rng.choice(store.files(pattern))
        how = f"seed {seed}, round {number}: {file.name} {damage(file, rng)}"
        session = store.start()
        try:
            assert store.decisions(session) == store.truth
            session.until(lambda session=session: session.call("status")["ready"], PATIENCE_S)
            assert store.search(session)[0] == store.found[0]
            session.call("neighbors", symbol="gov.py::governed")
            session.stop()
        except Exception as error:
            raise AssertionError(how) from error
        finally:
            session.client.kill()


def test_a_word_changed_behind_the_back_of_sqlite_is_told(store: Store) -> None:
    """SQLite takes the changed bytes for content; the audit chain does not."""
    store.put_back()
    file = store.repo.path / ".neuralmind" / "lsp" / "memory.db"
    raw = file.read_bytes()
    assert b"Words are short" in raw
    file.write_bytes(raw.replace(b"Words are short", b"Words are large"))
    session = store.start()
    try:
        assert "Words are large" in {row["title"] for row in store.decisions(session).values()}
        session.until(lambda: any("as they were recorded" in text for text in reported(session)), PATIENCE_S)
        session.stop()
    finally:
        session.client.kill()
