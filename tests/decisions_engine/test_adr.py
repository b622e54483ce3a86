"""Architecture decision records of other tools become decisions."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput
from nm_lsp.engine.decision_requests import AmendFields, AmendParams, GetParams
from nm_lsp.engine.decisions import adr

from .conftest import CALLER, Bench

FIXTURES = Path(__file__).parents[2] / "fixtures" / "decisions"


def detail(bench: Bench, identity: str):
    return bench.desk.get(GetParams(ids=(identity,)), Cancellation(), CALLER).decisions[0]


@pytest.fixture
def nygard(bench: Bench) -> Bench:
    shutil.copytree(FIXTURES / "adr-tools", bench.root / "docs" / "adr")
    bench.commit({"src/session.py": "sessions = {}\n"})
    return bench


def test_adr_tools_records_become_decisions(nygard: Bench) -> None:
    result = nygard.import_("docs/adr")
    assert len(result.imported) == 3
    assert result.problems == ("docs/adr/0004-drop-python-2.md: is only proposed; import it when it is accepted",)
    first, second, third = (detail(nygard, identity) for identity in result.imported)
    assert first.row.title == "Record architecture decisions"
    assert [anchor.repo_path for anchor in first.row.anchors] == ["docs/adr/0001-record-architecture-decisions.md"]
    assert first.rationale.startswith("Context:\nWe need to record")
    assert "Consequences:\nSee Michael" in first.rationale
    assert first.evidence == ("docs/adr/0001-record-architecture-decisions.md, dated 2016-02-12",)
    assert (second.row.status, second.row.superseded_by) == ("invalidated", third.row.id)
    assert [anchor.repo_path for anchor in third.row.anchors] == ["src/session.py"]
    assert "# not a heading" in third.rationale
    assert third.row.status == "active"


def test_madr_records_become_decisions(bench: Bench) -> None:
    shutil.copytree(FIXTURES / "madr", bench.root / "docs" / "decisions")
    bench.commit({"tools/check_records.py": "pass\n"})
    result = bench.import_("docs/decisions")
    assert result.problems == ()
    markdown, queue = (detail(bench, identity) for identity in result.imported)
    assert markdown.row.title == "Use Markdown Decision Records"
    assert markdown.row.author == "Ada Lovelace, Charles Babbage"
    assert markdown.row.tags == ("process", "docs")
    assert markdown.alternatives == (
        "Michael Nygard's template",
        "Formless – No conventions for file format and structure",
    )
    assert [anchor.repo_path for anchor in markdown.row.anchors] == ["tools/check_records.py"]
    assert "Good, because it fits" in markdown.rationale
    assert "works" not in markdown.rationale
    assert (queue.row.status, queue.invalidated_reason) == ("invalidated", "deprecated")
    assert queue.alternatives == ("threads",)


def test_a_second_import_changes_nothing(nygard: Bench) -> None:
    nygard.import_("docs/adr")
    revision = nygard.desk.poll().held.revision
    again = nygard.import_("docs/adr")
    assert (again.imported, again.merged, again.unchanged) == ((), (), 3)
    assert nygard.desk.poll().held.revision == revision


def test_a_changed_record_amends_what_nobody_changed_here(nygard: Bench) -> None:
    imported = nygard.import_("docs/adr").imported
    path = nygard.root / "docs/adr/0001-record-architecture-decisions.md"
    amended = AmendParams(id=imported[0], set=AmendFields(title="Write decisions down"))
    nygard.desk.amend(amended, Cancellation(), CALLER)
    path.write_text(path.read_text().replace("# 1. Record", "# 1. Always record").replace("Accepted", "Deprecated"))
    result = nygard.import_("docs/adr")
    assert result.merged == (imported[0],)
    assert any("title was changed there and here" in problem for problem in result.problems)
    now = detail(nygard, imported[0])
    assert (now.row.title, now.row.status) == ("Write decisions down", "invalidated")


def test_a_dry_run_only_reports(nygard: Bench) -> None:
    result = nygard.import_("docs/adr", dry_run=True)
    assert len(result.imported) == 3
    assert not (nygard.root / ".neuralmind").exists()


def test_hostile_records_are_refused_one_by_one(nygard: Bench) -> None:
    adrs = nygard.root / "docs" / "adr"
    text = (adrs / "0001-record-architecture-decisions.md").read_text()
    (adrs / "0010-bidi.md").write_text(text.replace("# 1. Record", "# 10. Re\u202ecord"), "utf-8")
    (adrs / "0011-control.md").write_text(text.replace("We need", "We \x1b[31mneed"), "utf-8")
    (adrs / "0012-long-title.md").write_text(text.replace("# 1. Record", "# 12. " + "x" * 5000), "utf-8")
    (adrs / "0013-huge.md").write_text(text + "y" * 1_000_000, "utf-8")
    (adrs / "0014-latin.md").write_bytes(text.encode() + b"\xff")
    (adrs / "0015-empty.md").write_text("")
    result = nygard.import_("docs/adr")
    assert len(result.imported) == 3
    for name, reason in {
        "0010": "\\u202e",
        "0011": "\\u001b",
        "0012": "5,",
        "0013": "characters",
        "0014": "UTF-8",
        "0015": "no record that is known",
    }.items():
        assert any(name in problem and reason in problem for problem in result.problems), name


def test_replacements_in_a_circle_are_a_problem_and_harmless(nygard: Bench) -> None:
    path = nygard.root / "docs/adr/0003-keep-sessions-in-a-signed-cookie.md"
    back = "Superseded by [2](0002-keep-sessions-in-memory.md)"
    path.write_text(path.read_text().replace("Accepted\n", f"{back}\n"))
    result = nygard.import_("docs/adr")
    assert len(result.imported) == 3
    assert any("replaced by" in problem for problem in result.problems)
    assert [detail(nygard, identity).row.status for identity in result.imported[1:]] == ["invalidated"] * 2


def test_a_source_in_which_nothing_is_known_is_no_success(bench: Bench) -> None:
    bench.commit({"docs/notes/one.md": "# Notes\n\nNothing.\n"})
    with pytest.raises(InvalidInput, match="nothing in notes is a decision"):
        bench.import_("docs/notes")


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "a" * 100_000, "<!--" * 50_000, "# " + "# " * 50_000, "* status: " + " *" * 90_000, "/." * 90_000],
)
def test_no_text_takes_long(text: str) -> None:
    start = time.process_time()
    adr.parse(f"# T\n\n## Status\n\nAccepted\n\n## Decision\n\n{text}\n{text}", "0001-x.md")
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("status", "standing", "by"),
    [
        ("Accepted", adr.Standing.ACCEPTED, None),
        ("", adr.Standing.ACCEPTED, None),
        ("superseded by [ADR-0005](0005-example.md)", adr.Standing.SUPERSEDED, "0005-example.md"),
        ("Superseded by ADR-0005", adr.Standing.SUPERSEDED, "5"),
        ("**Deprecated**", adr.Standing.DEPRECATED, None),
        ("rejected", adr.Standing.REJECTED, None),
        ("Draft", adr.Standing.PROPOSED, None),
    ],
)
def test_the_words_of_a_status(status: str, standing: adr.Standing, by: str | None) -> None:
    record = adr.parse(f"# 1. T\n\n## Status\n\n{status}\n\n## Decision\n\nDo.\n", "0001-t.md")
    assert record is not None
    assert (record.standing, record.superseded_by) == (standing, by)
