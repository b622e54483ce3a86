"""Decisions leave as Markdown and come back whole, also into another clone that went on meanwhile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput, NotFound, Refused
from nm_lsp.decisions.events import Event, canonical
from nm_lsp.engine.decision_requests import (
    AmendFields,
    AmendParams,
    Caller,
    DecisionImportParams,
    GetParams,
    HistoryParams,
    RecordParams,
    RedactParams,
    ReinstateParams,
    RestoreParams,
    SupersedeParams,
    VerifyParams,
)
from nm_lsp.engine.decisions.markdown_format import EVENTS_BEGIN, blocks

from .conftest import CALLER, Bench

DIR = "docs/decisions"


def events_of(bench: Bench) -> dict[str, Event]:
    store = bench.tree.keeper.store()
    return {event.id: event for event in store.changes(0).events} if store is not None else {}


def detail(bench: Bench, identity: str):
    return bench.desk.get(GetParams(ids=(identity,)), Cancellation(), CALLER).decisions[0]


def amend(bench: Bench, identity: str, **fields: object) -> None:
    bench.desk.amend(AmendParams(id=identity, set=AmendFields(**fields)), Cancellation(), CALLER)  # type: ignore[arg-type]


def files(bench: Bench) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((bench.root / DIR).iterdir())}


def clone(bench: Bench, to: str) -> Bench:
    target = bench.root.parent / to
    bench.git("clone", "-q", str(bench.root), str(target))
    other = Bench(target)
    other.git("config", "user.name", "Bob")
    other.git("config", "user.email", "bob@example.org")
    other.time += 1000
    return other


def send(source: Bench, target: Bench) -> None:
    """Export, commit and pull, as a team does."""
    source.export(dir=DIR)
    source.git("add", "-A")
    source.git("commit", "-q", "--allow-empty", "-m", "decisions")
    target.git("pull", "-q", "--no-rebase", "-X", "theirs", str(source.root), "main")


@pytest.fixture
def full(bench: Bench) -> Bench:
    """Every field, every kind of event."""
    first = bench.record("Sessions live in a cookie", "a.py", tags=("web",), confidence=0.8, author="Ada")
    second = bench.record(
        "Ünïcode & <b>Märkup</b>",
        "b.py",
        rationale="Line one\n\n-->\n<!-- nm-lsp events 1\n{}\n-->\n=======\n",
        alternatives=("One\nwith two lines", "Two"),
        depends_on=(first,),
        evidence=("https://example.org",),
    )
    amend(bench, first, rationale="Because it scales.")
    bench.commit({"a.py": "x = 2\n"})
    bench.desk.restore(RestoreParams(ids=(first,), note="still"), Cancellation(), CALLER)
    bench.invalidate(second)
    bench.desk.reinstate(ReinstateParams(id=second, reason="It was right."), Cancellation(), CALLER)
    third = bench.record("Sessions live in a database", "c.py")
    bench.desk.supersede(SupersedeParams(id=first, by=third, reason="Too large."), Cancellation(), CALLER)
    return bench


def test_a_folder_comes_back_whole(full: Bench) -> None:
    exported = full.export(dir=DIR)
    assert exported.count == 3
    assert exported.files[0].startswith("docs/decisions/nm-")
    other = clone(full, "other")
    (other.root / DIR).mkdir(parents=True)
    for name, data in files(full).items():
        (other.root / DIR / name).write_bytes(data)
    result = other.import_(DIR)
    assert (len(result.imported), result.problems) == (3, ())
    assert events_of(other) == events_of(full)
    assert other.tree.keeper.held().memory == full.tree.keeper.held().memory
    verified = other.desk.audit_verify(VerifyParams(), Cancellation(), CALLER)
    assert verified.valid


def test_the_files_are_stable(full: Bench) -> None:
    full.export(dir=DIR)
    before = files(full)
    stamps = {path.name: path.stat().st_mtime_ns for path in (full.root / DIR).iterdir()}
    full.commit({"b.py": "y = 9\n"})
    full.reopen()
    full.export(dir=DIR)
    assert files(full) == before
    assert {path.name: path.stat().st_mtime_ns for path in (full.root / DIR).iterdir()} == stamps
    again = full.import_(DIR)
    assert (again.imported, again.merged, again.unchanged, again.problems) == ((), (), 3, ())


def test_a_file_can_be_read_and_holds_no_derived_status(full: Bench) -> None:
    full.export(dir=DIR)
    name = next(name for name in files(full) if "sessions-live-in-a-cookie" in name)
    text = files(full)[name].decode()
    assert text.startswith('---\nid: "nm-')
    assert 'title: "Sessions live in a cookie"\nstanding: "invalidated"\n' in text
    assert "# Sessions live in a cookie" in text
    assert "**invalidated**, replaced by" in text
    assert "stale" not in text.partition(EVENTS_BEGIN)[0]
    odd = next(data.decode() for name, data in files(full).items() if "unicode" in name)
    assert "# Ünïcode & &lt;b>Märkup&lt;/b>" in odd
    assert odd.count("<!--") == 1


def test_a_file_keeps_its_name_when_the_title_changes(full: Bench) -> None:
    full.export(dir=DIR)
    names = set(files(full))
    identity = full.desk.ids()[0]
    amend(full, identity, title="Another title")
    written = full.export(dir=DIR).files
    assert len(written) == 1
    assert written[0].startswith(f"{DIR}/{identity}-")
    assert set(files(full)) == names


def test_one_text_shows_statuses_and_comes_back_too(full: Bench) -> None:
    full.commit({"c.py": "z = 2\n"})
    text = full.export(status="all").text
    assert text is not None
    assert "**stale**: c.py was changed" in text
    assert "3 decisions as they stand" in text
    active = full.export().text
    assert active is not None
    assert "0 decisions as they stand" in active
    other = clone(full, "other")
    (other.root / "export.md").write_text(text, "utf-8")
    assert len(other.import_("export.md").imported) == 3
    assert events_of(other) == events_of(full)


def test_two_clones_lose_nothing_and_agree(bench: Bench) -> None:
    identity = bench.record("Tokens are opaque", "a.py")
    send(bench, bob := clone(bench, "bob"))
    bob.import_(DIR)
    amend(bench, identity, rationale="Ada's reason.")
    bench.record("Only Ada's", "b.py")
    amend(bob, identity, tags=("security",))
    bob.record("Only Bob's", "b.py")
    send(bob, bench)
    assert len(bench.import_(DIR).imported) == 1
    send(bench, bob)
    bob.import_(DIR)
    assert events_of(bob) == events_of(bench)
    for clone_ in (bench, bob):
        one = detail(clone_, identity)
        assert (one.rationale, one.row.tags) == ("Ada's reason.", ("security",))
    before = files(bench)
    bench.export(dir=DIR)
    bob.export(dir=DIR)
    assert files(bench) == files(bob) == before


def test_conflicting_edits_are_reported_and_end_alike(bench: Bench) -> None:
    identity = bench.record("Tokens are opaque", "a.py")
    send(bench, bob := clone(bench, "bob"))
    bob.import_(DIR)
    amend(bench, identity, title="Ada's title", rationale="Same.")
    amend(bob, identity, title="Bob's later title", rationale="Same.")
    send(bench, bob)
    result = bob.import_(DIR)
    expected = f"{identity}: both sides changed title; the later change stands, the other is in the history"
    assert expected in result.problems
    assert not any("rationale" in problem for problem in result.problems)
    send(bob, bench)
    bench.import_(DIR)
    assert detail(bob, identity).row.title == detail(bench, identity).row.title == "Bob's later title"
    history = bench.desk.history(HistoryParams(id=identity), Cancellation(), CALLER)
    assert {"Ada's title", "Bob's later title"} <= {row.after.get("title") for row in history.rows}
    send(bench, bob)
    assert bob.import_(DIR).merged == ()
    bob.export(dir=DIR)
    assert files(bench) == files(bob)


def test_who_invalidates_beside_a_restore_is_heard(bench: Bench) -> None:
    identity = bench.record("Tokens are opaque", "a.py")
    bench.commit({"a.py": "x = 5\n"})
    send(bench, bob := clone(bench, "bob"))
    bob.import_(DIR)
    bench.invalidate(identity, "JWT won.")
    bob.desk.restore(RestoreParams(ids=(identity,)), Cancellation(), CALLER)
    send(bench, bob)
    assert any("invalidated there" in problem for problem in bob.import_(DIR).problems)
    send(bob, bench)
    bench.import_(DIR)
    assert events_of(bob) == events_of(bench)
    assert detail(bob, identity).row.status == detail(bench, identity).row.status == "invalidated"


def test_reinstated_there_and_invalidated_here_stays_invalidated(bench: Bench) -> None:
    identity = bench.record("Tokens are opaque", "a.py")
    send(bench, bob := clone(bench, "bob"))
    bob.import_(DIR)
    bench.invalidate(identity, "Ada's reason.")
    bob.invalidate(identity, "Bob's reason.")
    bob.desk.reinstate(ReinstateParams(id=identity, reason="No."), Cancellation(), CALLER)
    send(bob, bench)
    assert any("stays invalidated" in problem for problem in bench.import_(DIR).problems)
    send(bench, bob)
    bob.import_(DIR)
    assert detail(bob, identity).row.status == detail(bench, identity).row.status == "invalidated"


def test_conflict_markers_of_git_cost_no_event(bench: Bench) -> None:
    identity = bench.record("Tokens are opaque", "a.py")
    send(bench, bob := clone(bench, "bob"))
    bob.import_(DIR)
    amend(bench, identity, rationale="Ada's.")
    amend(bob, identity, tags=("bob",))
    name = next(iter(files(bench)))
    for clone_ in (bench, bob):
        clone_.export(dir=DIR)
    ours, theirs = (files(clone_)[name].decode().splitlines() for clone_ in (bench, bob))
    at = ours.index(EVENTS_BEGIN) + 2
    merged = [*ours[:at], "<<<<<<< HEAD", *ours[at:-1], "=======", *theirs[at:-1], ">>>>>>> bob", ours[-1]]
    (bench.root / DIR / name).write_text("\n".join(merged) + "\n")
    result = bench.import_(DIR)
    assert result.merged == (identity,)
    assert any("conflict markers" in problem for problem in result.problems)
    assert set(events_of(bench)) == set(events_of(bob)) | set(events_of(bench))
    assert detail(bench, identity).row.tags == ("bob",)
    bench.export(dir=DIR)
    assert "<<<<<<<" not in files(bench)[name].decode()


def test_an_export_never_overwrites_what_was_not_imported(bench: Bench) -> None:
    identity = bench.record("Tokens are opaque", "a.py")
    send(bench, bob := clone(bench, "bob"))
    bob.import_(DIR)
    amend(bench, identity, rationale="Ada's.")
    send(bench, bob)
    before = files(bob)
    with pytest.raises(Refused, match="not in this store"):
        bob.export(dir=DIR)
    assert files(bob) == before


def test_a_text_edited_by_hand_is_reported(bench: Bench) -> None:
    identity = bench.record("Tokens are opaque", "a.py")
    bench.export(dir=DIR)
    path = next((bench.root / DIR).iterdir())
    path.write_text(path.read_text().replace("# Tokens are opaque", "# Tokens are clear"))
    result = bench.import_(DIR)
    assert any("edited by hand" in problem and identity in problem for problem in result.problems)
    assert detail(bench, identity).row.title == "Tokens are opaque"


def test_windows_line_ends_are_no_change(bench: Bench) -> None:
    bench.record("Tokens are opaque", "a.py")
    bench.export(dir=DIR)
    path = next((bench.root / DIR).iterdir())
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert bench.import_(DIR).problems == ()
    before = path.read_bytes()
    bench.export(dir=DIR)
    assert path.read_bytes() == before


def test_redactions_travel(bench: Bench) -> None:
    identity = bench.record("The secret is hunter2", "a.py", rationale="The secret is hunter2, keep it.")
    send(bench, bob := clone(bench, "bob"))
    bob.import_(DIR)
    for field in ("title", "rationale"):
        bench.desk.redact(RedactParams(id=identity, field=field, reason="A secret."), Cancellation(), CALLER)
    send(bench, bob)
    assert not any(b"hunter2" in data for data in files(bob).values() if b"events" in data)
    bob.import_(DIR)
    assert not any("hunter2" in canonical(event).decode() for event in events_of(bob).values())
    assert detail(bob, identity).row.title == "[redacted]"
    assert bob.desk.audit_verify(VerifyParams(), Cancellation(), CALLER).valid


def tampered(bench: Bench, change: Callable[[dict], None], *, name: str = "forged.md") -> None:
    """A file as of another clone, its recording changed."""
    bench.export(dir=DIR)
    path = next((bench.root / DIR).iterdir())
    plain = blocks(path.read_text())[0].events[0].to_plain()
    change(plain)
    path.unlink()
    (bench.root / DIR / name).write_text(f"{EVENTS_BEGIN}\n{json.dumps(plain)}\n-->\n")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: e["after"].update(title="x" * 1_000_000), "characters"),
        (lambda e: e["after"].update(rationale="a\u202eb"), "\\u202e"),
        (lambda e: e["after"].update(tags=["a\x00"]), "unprintable"),
        (lambda e: e.update(actor="Ada\nroot"), "line end"),
        (lambda e: e.update(v=2), "schema version"),
        (lambda e: e.update(kind="deleted"), "no event kind"),
        (lambda e: e["after"].update(surprise=1), "surprise"),
        (lambda e: e["after"]["confirmation"]["seen"][0].update(text="!"), "damaged"),
        (lambda e: e["after"]["confirmation"]["seen"][0]["anchor"].update(path="../../etc/passwd"), "not a path"),
    ],
)
def test_hostile_entries_are_refused_and_the_rest_goes_on(
    make_bench: Callable[..., Bench], change: Callable[[dict], None], reason: str
) -> None:
    source, target = make_bench("source"), make_bench("target")
    source.record("Good", "a.py")
    tampered(source, change)
    target.record("Mine", "a.py")
    target.export(dir=DIR)
    good = make_bench("good")
    good.record("Also good", "b.py")
    good.export(dir=DIR)
    for origin in (source, good):
        for name, data in files(origin).items():
            (target.root / DIR / name).write_bytes(data)
    result = target.import_(DIR)
    assert len(result.imported) == 1
    assert len(result.problems) == 1
    assert result.problems[0].startswith("docs/decisions/forged.md: ")
    assert reason in result.problems[0]


def test_a_kept_text_that_unpacks_to_gigabytes_is_refused(bench: Bench) -> None:
    import base64
    import zlib

    bomb = base64.b64encode(zlib.compress(b"\0" * 50_000_000)).decode()
    bench.record("Good", "a.py")
    tampered(bench, lambda e: e["after"]["confirmation"]["seen"][0].update(text=bomb))
    other = clone(bench, "other")
    (other.root / "x.md").write_bytes((bench.root / DIR / "forged.md").read_bytes())
    assert "unpacks to more" in other.import_("x.md").problems[0]


def test_an_event_that_was_altered_is_refused(bench: Bench) -> None:
    identity = bench.record("Good", "a.py")
    tampered(bench, lambda e: e["after"].update(title="Evil"))
    result = bench.import_(DIR)
    assert "not as it was written here" in result.problems[0]
    assert detail(bench, identity).row.title == "Good"


def test_a_circle_of_dependencies_that_arrives_is_listed(bench: Bench) -> None:
    first = bench.record("One", "a.py")
    second = bench.record("Two", "b.py", depends_on=(first,))
    other = clone(bench, "other")
    (other.root / DIR).mkdir(parents=True)
    bench.export(dir=DIR)
    for name, data in files(bench).items():
        event = blocks(data.decode())[0].events[0].to_plain()
        if event["decision"] == first:
            event["after"]["dependsOn"] = [second]
        (other.root / DIR / name).write_text(f"{EVENTS_BEGIN}\n{json.dumps(event)}\n-->\n")
    result = other.import_(DIR)
    assert len(result.imported) == 2
    assert sum("cycle" in problem for problem in result.problems) == 2
    assert {row.decision.status for row in other.search("one two").hits} == {"active"}


def test_an_import_is_one_transaction_with_a_record(full: Bench) -> None:
    full.export(dir=DIR)
    other = clone(full, "other")
    target = other.root / DIR
    target.mkdir(parents=True)
    for name, data in files(full).items():
        (target / name).write_bytes(data)
    dry = other.import_(DIR, dry_run=True)
    assert len(dry.imported) == 3
    assert not (other.root / ".neuralmind").exists()
    other.import_(DIR)
    store = other.tree.keeper.store()
    assert store is not None
    last = store.audit.records()[-1].act
    assert (last.action, last.actor, last.face) == ("decisions.imported", "Bob <bob@example.org>", "cli")
    assert "decisions.exported" in {record.act.action for record in full.tree.keeper.store().audit.records()}


@pytest.mark.parametrize("folder", ["../outside", "/tmp", ".git/x", ".neuralmind/x"])
def test_an_export_stays_in_the_repository(bench: Bench, folder: str) -> None:
    bench.record("Good", "a.py")
    with pytest.raises(Refused):
        bench.export(dir=folder)


def test_an_export_follows_no_link(bench: Bench, tmp_path: Path) -> None:
    bench.record("Good", "a.py")
    (tmp_path / "outside").mkdir()
    (bench.root / "docs").symlink_to(tmp_path / "outside")
    with pytest.raises(Refused, match="link"):
        bench.export(dir=DIR)
    (bench.root / "docs").unlink()
    bench.export(dir=DIR)
    path = next((bench.root / DIR).iterdir())
    victim = tmp_path / "victim"
    victim.write_text("safe")
    path.unlink()
    path.symlink_to(victim)
    bench.export(dir=DIR)
    assert victim.read_text() == "safe"


def test_only_the_command_line_reads_outside_the_repository(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("nothing")
    with pytest.raises(Refused, match="outside"):
        bench.desk.import_(DecisionImportParams(source=str(outside)), Cancellation(), Caller("lsp"))
    with pytest.raises(NotFound):
        bench.import_("nowhere")


@pytest.mark.parametrize("reason", [" ", "a\u202eb", "x" * 1_000_000, "a\x1b[31m"])
def test_a_reason_that_no_import_would_take_is_not_written(bench: Bench, reason: str) -> None:
    identity = bench.record("Good", "a.py")
    with pytest.raises(InvalidInput, match="reason"):
        bench.invalidate(identity, reason)
    assert detail(bench, identity).row.status == "active"


@pytest.mark.parametrize("name", ["", " ", None, "x" * 500, "an\u202eeditor", "two\nlines"])
def test_what_any_editor_person_or_branch_is_called_can_be_exported_and_imported(
    bench: Bench, name: str | None
) -> None:
    if name and name.isprintable() and name.strip():
        bench.git("config", "user.name", name)
        bench.git("checkout", "-q", "-b", name[:240])
    params = RecordParams(title="Good", rationale="Because.", files=("a.py",))
    made = bench.desk.record(params, Cancellation(), Caller("lsp", name)).decision.row.id
    bench.export(dir=DIR)
    bench.commit({})
    result = clone(bench, "other").import_(DIR)
    assert (result.imported, result.problems) == ((made,), ())


def test_what_an_older_version_wrote_for_an_editor_without_a_name_is_imported(bench: Bench) -> None:
    made = bench.record("Good", "a.py")
    bench.export(dir=DIR)
    (file,) = (bench.root / DIR).glob("nm-*.md")
    text, n = re.subn(r'"client": ?"tests"', '"client":""', file.read_text())
    assert n
    bench.commit({file.relative_to(bench.root).as_posix(): text})
    assert clone(bench, "other").import_(DIR).imported == (made,)


def test_one_decision_stands_alone(bench: Bench) -> None:
    bench.record("Only one", "a.py")
    text = bench.export().text
    assert text is not None
    assert "\n1 decision as it stands" in text
