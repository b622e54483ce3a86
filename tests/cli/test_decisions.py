"""`nm-lsp decisions`, `audit` and `hooks`: what is asked of the desk, what is printed, which code scripts get."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

import nm_lsp.cli.desk as desk_module
from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import Conflict, GitUnavailable, NmError, NotFound, Refused
from nm_lsp.cli.commands import decisions_change
from nm_lsp.engine import decision_requests as d

Run = Callable[..., Any]

ROW = d.DecisionRow(
    id="nm-abcdefgh",
    revision=3,
    title="Tokens expire \x1b[31mfast",
    status="active",
    status_reason=None,
    reason=None,
    severity=None,
    stale_commit=None,
    stale_path=None,
    reverted=False,
    acknowledged=False,
    anchors=(
        d.AnchorRow("symbol", "src/auth.py", "src/auth.py", "login", d.AnchorState.HOLDS, None),
        d.AnchorRow("file", "up.py", None, None, d.AnchorState.MOVED, "lib/up.py"),
    ),
    type="security",
    confidence=0.9,
    author="Ada",
    tags=("auth",),
    superseded_by=None,
    recorded_at="2026-01-31T12:00:00.000000Z",
    recorded_commit="ab" * 20,
    changed_at="2026-01-31T12:00:00.000000Z",
)
STALE = replace(
    ROW, id="nm-stalesta", status="stale", status_reason="src/auth.py was changed by 1a2b3c4d (faster)",
    reason="changed", reverted=True,
)  # fmt: skip
DETAIL = d.DecisionDetail(
    ROW, "Line one.\nLine two.", ("never expire",), ("nm-otherone",), ("https://example.org",), "Ada <a@b>",
    "2026-02-01T00:00:00Z", 2, None, None, ("it depends on itself",),
)  # fmt: skip
HISTORY = d.HistoryRow(
    "2026-01-31T12:00:00Z", "amended", "Ada", "cli", None, "ab" * 20, "main", "typo", {"title": "Old"},
    {"title": "New"}, "amended (title) by Ada (cli): typo",
)  # fmt: skip


def canned() -> dict[str, object]:
    listed = d.ListResult((STALE, ROW), 2, None)
    rows, one = d.DecisionsResult((ROW,)), d.DecisionResult(DETAIL)
    return {
        "record": d.RecordResult(DETAIL, (d.Similar(STALE, "the same title"),)),
        "amend": one,
        "list": listed,
        "get": d.GetResult((DETAIL, DETAIL)),
        "search": d.DecisionSearchResult((d.DecisionHit(ROW, 0.5, 1, None),), ("no model",)),
        "timeline": listed,
        "history": d.HistoryResult(ROW.id, ROW.title, (HISTORY,)),
        "as_of": d.AsOfResult("ab" * 20, "ab" * 20, (ROW,)),
        "diff": d.DiffResult(ROW.id, "a.py", "a.py", None, None, "a\n", "b\n", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"),
        "restore": rows,
        "acknowledge": rows,
        "reinstate": one,
        "invalidate": one,
        "supersede": one,
        "redact": one,
        "recover": d.RecoverResult(2, "20260131T120000Z-day.db", 1, "line 3 is no record", None),
        "scan": d.ScanResult("ab" * 20, "main", 2, (STALE,), (), 0, 0, 1, 1, 0),
        "export": d.DecisionExportResult(2, "# Decisions\n", ()),
        "import_": d.DecisionImportResult(("nm-abcdefgh",), (), 1, ("one.md: no title",)),
        "audit": d.AuditResult((d.AuditView("stale", "Changed", (STALE,)), d.AuditView("aged", "Old", ())), ("p",)),
        "audit_verify": d.VerifyResult(True, 12, "ff" * 32, 1, 0, 2, ()),
        "audit_anchor": d.AuditAnchorResult(12, "ff" * 32, "nm-lsp audit 12 ffff"),
        "audit_export": d.AuditExportResult(1, '{"sequence": 1}\n', None),
        "audit_rotate": d.AuditRotateResult("/state/audit.00000001-00000012.jsonl", 12, "ff" * 32),
    }


class FakeDesk:
    """Answers with `answers[method]`, raising it if it is an error; remembers what it was asked, and by whom."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers = canned()
        self.asked: list[tuple[str, Any]] = []
        self.callers: list[d.Caller] = []
        self.n_open = 0
        self.missing: set[str] = set()

    def repo_to_abs(self, repo_path: str) -> Path:
        return self.folder / repo_path

    def check_files(self, files: list[str]) -> None:
        for path in files:
            if path in self.missing:
                raise NotFound(f"{path} names nothing here.", hint="Give a path of a file or a folder.")

    def __getattr__(self, method: str) -> Callable[[object, Cancellation, d.Caller], object]:
        def call(params: object, cancel: Cancellation, caller: d.Caller) -> object:
            cancel.check()
            self.asked.append((method, params))
            self.callers.append(caller)
            answer = self.answers[method]
            if isinstance(answer, NmError):
                raise answer
            return answer

        return call


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeDesk]:
    fake = FakeDesk(tmp_path)

    @contextmanager
    def open_desk(_folder: Path, _settings: object) -> Iterator[FakeDesk]:
        fake.n_open += 1
        try:
            yield fake
        finally:
            fake.n_open -= 1

    monkeypatch.setattr(desk_module, "open_desk", open_desk)
    monkeypatch.chdir(tmp_path)
    yield fake
    assert fake.n_open == 0, "the desk is closed however a command ends"


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody at a terminal who gives these answers, in order."""
    answers: list[str] = []

    def prompt(*_: object, **__: object) -> str:
        return answers.pop(0)

    def confirm(*_: object, **__: object) -> bool:
        return answers.pop(0) == "y"

    for module in (desk_module, decisions_change):
        monkeypatch.setattr(module, "may_prompt", lambda _output: True)
    monkeypatch.setattr(typer, "prompt", prompt)
    monkeypatch.setattr(typer, "confirm", confirm)
    return answers


# -- what is asked -----------------------------------------------------------------------------------------------------

RECORD = (
    "record a.py src/ -t T --rationale R --type x --confidence 0.5 --author Ada --tag a --tag b --alternative no "
    "--depends-on nm-abc --evidence e"
)
AMEND = (
    "amend nm-abc -t T --rationale R --file a.py --type x --confidence 1 --author A --tag t --alternative no "
    "--depends-on nm-x --evidence e --clear tags -r why --expect 3"
)
ASKED = [
    (
        RECORD,
        "record",
        d.RecordParams(
            title="T", rationale="R", files=("a.py", "src/"), type="x", confidence=0.5, author="Ada", tags=("a", "b"),
            alternatives=("no",), depends_on=("nm-abc",), evidence=("e",),
        ),
    ),
    (
        AMEND,
        "amend",
        d.AmendParams(
            id="nm-abc", clear=("tags",), reason="why", expect=3,
            set=d.AmendFields(
                title="T", rationale="R", files=("a.py",), type="x", confidence=1.0, author="A", tags=("t",),
                alternatives=("no",), depends_on=("nm-x",), evidence=("e",),
            ),
        ),
    ),
    ("list", "list", d.ListParams()),
    ("list --stale", "list", d.ListParams(status="stale")),
    (
        "list a.py::f -s active --reason layout -n 5 --cursor 10",
        "list",
        d.ListParams(status="active", path="a.py", symbol="f", reason="layout", limit=5, cursor="10"),
    ),
    ("show abc def", "get", d.GetParams(ids=("abc", "def"))),
    (
        "search two words --mode keyword -s all --min-confidence 0.5 -n 3",
        "search",
        d.DecisionSearchParams(query="two words", mode="keyword", status="all", min_confidence=0.5, limit=3),
    ),
    ("timeline abc --before 1 --after 2", "timeline", d.TimelineParams(id="abc", before=1, after=2)),
    ("history abc", "history", d.HistoryParams(id="abc")),
    ("as-of main~2 abc", "as_of", d.AsOfParams(commit="main~2", id="abc")),
    ("as-of 2026-01-31T12:00:00Z", "as_of", d.AsOfParams(time="2026-01-31T12:00:00Z")),
    ("as-of 2026ab12", "as_of", d.AsOfParams(commit="2026ab12")),
    ("diff abc a.py", "diff", d.DiffParams(id="abc", path="a.py")),
    ("restore abc def -r seen --head abcd", "restore", d.RestoreParams(ids=("abc", "def"), note="seen", head="abcd")),
    ("reinstate abc -r why --expect 2", "reinstate", d.ReinstateParams(id="abc", reason="why", expect=2)),
    (
        "invalidate abc -r why --superseded-by def",
        "invalidate",
        d.InvalidateParams(id="abc", reason="why", superseded_by="def"),
    ),
    ("supersede abc --by def -r why", "supersede", d.SupersedeParams(id="abc", by="def", reason="why")),
    ("acknowledge abc", "acknowledge", d.AcknowledgeParams(ids=("abc",))),
    ("redact abc rationale -r secret --yes", "redact", d.RedactParams(id="abc", field="rationale", reason="secret")),
    ("scan", "scan", desk_module.decode(desk_module.BY_NAME["decisions.scan"].params, {})),
    ("recover", "recover", desk_module.decode(desk_module.BY_NAME["decisions.recover"].params, {})),
    ("audit stale", "audit", d.AuditParams(view="stale")),
    ("export --dir docs -s all", "export", d.DecisionExportParams(dir="docs", status="all")),
    ("import docs/adr --dry-run", "import_", d.DecisionImportParams(source="docs/adr", dry_run=True)),
]  # fmt: skip


# The answer names a file that could not be taken in.
EXITS = {"import_": 1}


@pytest.mark.parametrize(("line", "method", "params"), ASKED, ids=[line.split(" -")[0] for line, _, _ in ASKED])
def test_every_option_reaches_the_desk(desk: FakeDesk, nm_lsp: Run, line: str, method: str, params: object) -> None:
    ended = nm_lsp("decisions", *line.split())
    assert ended.code == EXITS.get(method, 0), ended.err
    assert desk.asked == [(method, params)]
    assert desk.callers[0].face == "cli"
    assert "\x1b" not in ended.out


@pytest.mark.parametrize(("line", "method", "params"), ASKED, ids=[line.split(" -")[0] for line, _, _ in ASKED])
def test_json_is_one_document_and_nothing_else(
    desk: FakeDesk, nm_lsp: Run, line: str, method: str, params: object
) -> None:
    ended = nm_lsp("decisions", *line.split(), "--json")
    assert ended.code == EXITS.get(method, 0)
    assert isinstance(json.loads(ended.out), dict)


@pytest.mark.parametrize(
    ("line", "method"),
    [
        ("verify --head ff", "audit_verify"),
        ("anchor", "audit_anchor"),
        ("export --rewrite", "audit_export"),
        ("rotate", "audit_rotate"),
    ],
)
def test_the_audit_chain(desk: FakeDesk, nm_lsp: Run, line: str, method: str) -> None:
    assert nm_lsp("audit", *line.split()).code == 0
    assert [name for name, _ in desk.asked] == [method]
    assert json.loads(nm_lsp("audit", *line.split(), "--json").out)


def test_every_command_of_the_table_has_a_twin(desk: FakeDesk) -> None:
    """`decisions.get` is `show`; `decisions.asOf` is `as-of`."""
    from nm_lsp.cli.commands import audit, decisions

    groups = {"decisions": typer.main.get_command(decisions.app), "audit": typer.main.get_command(audit.app)}
    for name in desk_module.BY_NAME:
        group, _, command = name.partition(".")
        if group in groups:
            twin = {"get": "show", "asOf": "as-of"}.get(command, command)
            assert twin in groups[group].commands, name  # type: ignore[attr-defined]


# -- what is printed ---------------------------------------------------------------------------------------------------


def test_lists_say_status_reason_and_anchors_in_words(desk: FakeDesk, nm_lsp: Run) -> None:
    ended = nm_lsp("decisions", "list")
    assert ended.out.splitlines() == [
        "nm-stalesta  STALE        Tokens expire �[31mfast",
        "             src/auth.py was changed by 1a2b3c4d (faster)",
        "             src/auth.py::login · /up.py → lib/up.py",
        "nm-abcdefgh  ACTIVE       Tokens expire �[31mfast",
        "             src/auth.py::login · /up.py → lib/up.py",
    ]
    assert ended.err.splitlines()[0] == "2 decisions"


def test_a_stale_decision_is_shown_with_what_can_be_done(desk: FakeDesk, nm_lsp: Run) -> None:
    steps = "`nm-lsp decisions diff {0}` shows what changed; `restore {0}` says that it still holds, `invalidate {0}` "
    assert nm_lsp("decisions", "list").err.endswith(steps.format(STALE.id) + "that it does not\n")
    desk.answers["list"] = d.ListResult((STALE, STALE, ROW), 3, None)
    assert steps.format("ID") in nm_lsp("decisions", "list").err
    desk.answers["get"] = d.GetResult((replace(DETAIL, row=STALE),))
    assert steps.format(STALE.id) in nm_lsp("decisions", "show", "stalesta").err
    desk.answers["list"] = d.ListResult((ROW,), 1, None)
    assert "restore" not in nm_lsp("decisions", "list").err
    assert nm_lsp("decisions", "list", "--json").err == ""


def test_a_page_says_how_to_get_the_next(desk: FakeDesk, nm_lsp: Run) -> None:
    desk.answers["list"] = d.ListResult((ROW,), 250, "100")
    assert "1 of 250 decisions; --cursor 100" in nm_lsp("decisions", "list").err


def test_show_prints_every_field(desk: FakeDesk, nm_lsp: Run) -> None:
    out = nm_lsp("decisions", "show", "abc").out
    parts = (
        "Line two.", "governs  src/auth.py::login", "type  security", "confidence  0.9", "author  Ada", "tags  auth",
        "alternative  never expire", "depends on  nm-otherone", "evidence  https://example.org",
        "problem  it depends on itself", "by Ada <a@b> at abababab", "2 confirmations", "revision  3",
    )  # fmt: skip
    for part in parts:
        assert part in out


def test_history_shows_before_and_after(desk: FakeDesk, nm_lsp: Run) -> None:
    out = nm_lsp("decisions", "history", "abc").out
    assert "2026-01-31 12:00  amended (title) by Ada (cli): typo  (abababab on main)" in out
    assert "title: Old" in out
    assert "title: New" in out


def test_audit_prints_every_view_with_its_count(desk: FakeDesk, nm_lsp: Run) -> None:
    ended = nm_lsp("decisions", "audit")
    assert "stale (1)  Changed" in ended.out
    assert "aged (0)  Old" in ended.out
    assert "warning: p" in ended.err


def test_similar_decisions_are_warned_of(desk: FakeDesk, nm_lsp: Run) -> None:
    ended = nm_lsp("decisions", "record", "a.py", "-t", "T", "--rationale", "R")
    assert "like nm-stalesta (stale)" in ended.err
    assert "the same title" in ended.err


def test_export_prints_the_text_as_it_is(desk: FakeDesk, nm_lsp: Run) -> None:
    assert nm_lsp("decisions", "export").out == "# Decisions\n"
    assert nm_lsp("audit", "export").out == '{"sequence": 1}\n'


# -- exit codes --------------------------------------------------------------------------------------------------------


def test_exit_code_on_wish(desk: FakeDesk, nm_lsp: Run) -> None:
    assert nm_lsp("decisions", "list", "--exit-code").code == 3
    assert nm_lsp("decisions", "audit", "--exit-code").code == 3
    desk.answers["list"] = d.ListResult((), 0, None)
    assert nm_lsp("decisions", "list", "--status", "stale", "--exit-code").code == 0
    desk.answers["list"] = d.ListResult((ROW,), 1, None)
    assert nm_lsp("decisions", "list", "--exit-code").code == 0


def test_nothing_found_and_invalid_chains(desk: FakeDesk, nm_lsp: Run) -> None:
    desk.answers["search"] = d.DecisionSearchResult((), ())
    assert nm_lsp("decisions", "search", "x").code == 1
    desk.answers["audit_verify"] = d.VerifyResult(False, 12, "ff", 0, 0, 0, ("record 3 was altered",))
    ended = nm_lsp("audit", "verify")
    assert (ended.code, ended.out.splitlines()[0]) == (1, "record 3 was altered")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("There is no decision nm-zzz."), 2),
        (Refused("It holds.", hint="Nothing to do."), 5),
        (Conflict("It was changed meanwhile."), 5),
        (GitUnavailable("git is missing."), 4),
    ],
)
def test_errors_become_their_codes(desk: FakeDesk, nm_lsp: Run, error: NmError, code: int) -> None:
    desk.answers["restore"] = error
    ended = nm_lsp("decisions", "restore", "abc")
    assert ended.code == code
    assert error.message in ended.err
    assert json.loads(nm_lsp("decisions", "restore", "abc", "--json").err)["error"]["code"] == error.code


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("record a.py", "--title"),
        ("record -t T --rationale R", "FILE"),
        ("invalidate abc", "--reason"),
        ("reinstate abc", "--reason"),
        ("supersede abc --by x", "--reason"),
        ("supersede abc -r x", "--by"),
        ("restore", "give ids"),
        ("restore abc --all layout", "give ids"),
        ("restore --all everything --yes", "layout or reverted"),
        ("restore --all reverted", "--yes"),
        ("redact abc title -r x", "--yes"),
        ("list --stale -s active", "exclude"),
        ("list -n 0", "limit"),
        ("nosuch", "nosuch"),
    ],
)
def test_where_nobody_can_be_asked_it_is_an_error_of_usage(desk: FakeDesk, nm_lsp: Run, line: str, words: str) -> None:
    ended = nm_lsp("decisions", *line.split())
    assert ended.code == 2
    assert words in ended.err
    assert not [name for name, _ in desk.asked if name != "list"]


def test_a_title_of_a_megabyte_is_refused_by_name(desk: FakeDesk, nm_lsp: Run) -> None:
    ended = nm_lsp("decisions", "record", "a.py", "-t", "x" * 1_000_000, "--rationale", "R")
    assert ended.code == 2
    assert "--title: is too long" in ended.err
    assert desk.asked == []


# -- a person at a terminal --------------------------------------------------------------------------------------------


def test_record_asks_for_what_is_missing(desk: FakeDesk, nm_lsp: Run, person: list[str]) -> None:
    person += ["The title", "", "a.py", "src/", "", "", "Because.", "And more.", "", "Not that.", ""]
    assert nm_lsp("decisions", "record").code == 0
    assert person == []
    assert desk.asked == [
        (
            "record",
            d.RecordParams(
                title="The title",
                rationale="Because.\nAnd more.",
                files=("a.py", "src/"),
                alternatives=("Not that.",),
            ),
        )
    ]


def test_a_path_that_is_not_there_is_refused_before_anything_is_asked(
    desk: FakeDesk, nm_lsp: Run, person: list[str]
) -> None:
    desk.missing = {"nowhere.py"}
    ended = nm_lsp("decisions", "record", "nowhere.py")
    assert (ended.code, desk.asked) == (2, [])
    assert "nowhere.py names nothing here" in ended.err


def test_a_path_that_is_typed_wrong_can_be_typed_again(desk: FakeDesk, nm_lsp: Run, person: list[str]) -> None:
    desk.missing = {"nowhere.py"}
    person += ["The title", "nowhere.py", "a.py", "", "Because.", "", ""]
    ended = nm_lsp("decisions", "record")
    assert (ended.code, person) == (0, [])
    assert "nowhere.py names nothing here" in ended.err
    assert [params.files for _, params in desk.asked] == [("a.py",)]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, EOFError, typer.Abort])
@pytest.mark.parametrize(
    ("line", "asks"),
    [("record", "prompt"), ("invalidate abc", "prompt"), ("restore --all layout", "confirm")],
)
def test_ctrl_c_at_a_prompt_changes_nothing(
    desk: FakeDesk,
    nm_lsp: Run,
    person: list[str],
    monkeypatch: pytest.MonkeyPatch,
    stop: type[BaseException],
    line: str,
    asks: str,
) -> None:
    handlers = []

    def interrupted(*_: object, **__: object) -> str:
        handlers.append(signal.getsignal(signal.SIGINT))
        raise stop

    monkeypatch.setattr(typer, asks, interrupted)
    before = signal.getsignal(signal.SIGINT)
    ended = nm_lsp("decisions", *line.split())
    assert ended.code == 130
    assert ended.err.endswith("\nerror: nothing was changed\n")
    assert not [name for name, _ in desk.asked if name != "list"]
    # Ctrl-C must reach whoever waits for the answer, also within a command that takes it as a wish to end in order.
    assert handlers == [signal.default_int_handler]
    assert signal.getsignal(signal.SIGINT) is before


def test_record_asks_for_nothing_that_was_given(desk: FakeDesk, nm_lsp: Run, person: list[str]) -> None:
    person += ["Because.", "", ""]
    assert nm_lsp("decisions", "record", "a.py", "-t", "T").code == 0
    assert person == []


def test_a_reason_is_asked_for(desk: FakeDesk, nm_lsp: Run, person: list[str]) -> None:
    person += ["No more."]
    assert nm_lsp("decisions", "invalidate", "abc").code == 0
    assert desk.asked == [("invalidate", d.InvalidateParams(id="abc", reason="No more."))]


def test_restore_all_shows_what_it_means_and_sends_the_number_seen(
    desk: FakeDesk, nm_lsp: Run, person: list[str]
) -> None:
    person += ["y"]
    ended = nm_lsp("decisions", "restore", "--all", "reverted")
    assert "nm-stalesta" in ended.out
    assert desk.asked == [
        ("list", d.ListParams(status="stale", limit=1_000)),
        ("restore", d.RestoreParams(all="reverted", confirm=1)),
    ]


def test_a_no_changes_nothing(desk: FakeDesk, nm_lsp: Run, person: list[str]) -> None:
    person += ["n", "n"]
    assert nm_lsp("decisions", "restore", "--all", "layout").code == 1
    assert nm_lsp("decisions", "redact", "abc", "title", "-r", "x").code == 1
    assert [name for name, _ in desk.asked] == ["list"]


def test_nothing_to_restore(desk: FakeDesk, nm_lsp: Run) -> None:
    desk.answers["list"] = d.ListResult((), 0, None)
    ended = nm_lsp("decisions", "restore", "--all", "layout", "--yes")
    assert (ended.code, ended.err) == (1, "there is nothing to restore\n")


def test_a_rationale_from_stdin(desk: FakeDesk, nm_lsp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("Because\nof this.\n"))
    nm_lsp("decisions", "record", "a.py", "-t", "T", "--rationale", "-")
    assert desk.asked[0][1].rationale == "Because\nof this."


# -- through the whole engine ------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in (("XDG_STATE_HOME", str(tmp_path / "state")), ("GIT_CONFIG_GLOBAL", os.devnull)):
        monkeypatch.setenv(name, value)
    root = tmp_path / "repo"
    root.mkdir()
    monkeypatch.chdir(root)
    git("init", "-q", "-b", "main")
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.org")
    commit("def f(a):\n    return a\n")
    return root


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def commit(text: str) -> None:
    Path("a.py").write_text(text)
    git("add", "-A")
    git("commit", "-q", "-m", "change")


def test_the_life_of_a_decision(repository: Path, nm_lsp: Run) -> None:
    recorded = nm_lsp("decisions", "record", "a.py::f", "-t", "Keep f", "--rationale", "Because.", "--json")
    assert recorded.code == 0, recorded.err
    identity = json.loads(recorded.out)["decision"]["id"]
    commit("def f(a):\n    return a + 1\n")
    assert nm_lsp("decisions", "list", "--stale", "--exit-code").code == 3
    assert "+    return a + 1" in nm_lsp("decisions", "diff", identity).out
    assert nm_lsp("decisions", "restore", identity[3:7], "-r", "looked").code == 0
    assert nm_lsp("decisions", "list", "--stale", "--exit-code").code == 0
    assert nm_lsp("decisions", "restore", identity).code == 5
    assert nm_lsp("decisions", "amend", identity, "-t", "Keep f better").code == 0
    assert nm_lsp("decisions", "invalidate", identity, "-r", "no more").code == 0
    assert "INVALIDATED" in nm_lsp("decisions", "show", identity).out
    assert nm_lsp("decisions", "reinstate", identity, "-r", "still true").code == 0
    history = nm_lsp("decisions", "history", identity).out
    for word in ("recorded", "restored", "amended (title)", "title: Keep f\n", "invalidated", "reinstated"):
        assert word in history
    assert "1 active" in nm_lsp("decisions", "scan").out
    assert nm_lsp("audit", "verify").out.startswith("valid")
    head = nm_lsp("audit", "anchor", "--json")
    assert nm_lsp("audit", "verify", "--head", json.loads(head.out)["head"]).code == 0
    assert nm_lsp("audit", "verify", "--head", "ab" * 32).code == 1
    assert nm_lsp("decisions", "show", "nm-zzzzzzzz").code == 2


def test_every_field_that_is_given_is_kept(repository: Path, nm_lsp: Run) -> None:
    base = json.loads(nm_lsp("decisions", "record", "a.py", "-t", "Base", "--rationale", "R", "--json").out)
    line = "record a.py a.py::f -t T --type security --confidence 0.25 --author Eve --tag x --tag y --evidence e"
    extra = ["--rationale", "Two\nlines", "--alternative", "not so", "--depends-on", base["decision"]["id"][:6]]
    identity = json.loads(nm_lsp("decisions", *line.split(), *extra, "--json").out)["decision"]["id"]
    (kept,) = json.loads(nm_lsp("decisions", "show", identity, "--json").out)["decisions"]
    expected = {
        "title": "T", "rationale": "Two\nlines", "type": "security", "confidence": 0.25, "author": "Eve",
        "tags": ["x", "y"], "alternatives": ["not so"], "dependsOn": [base["decision"]["id"]], "evidence": ["e"],
    }  # fmt: skip
    assert {name: kept[name] for name in expected} == expected
    assert [(anchor["path"], anchor["symbol"]) for anchor in kept["anchors"]] == [("a.py", None), ("a.py", "f")]
    assert "error: --confidence" in nm_lsp("decisions", "amend", identity, "--confidence", "7").err


def test_a_replaced_decision_never_reads_as_valid(repository: Path, nm_lsp: Run) -> None:
    old, new = (
        json.loads(nm_lsp("decisions", "record", "a.py", "-t", title, "--rationale", "R", "--json").out)["decision"][
            "id"
        ]
        for title in ("Use sessions", "Use tokens")
    )
    assert nm_lsp("decisions", "supersede", old, "--by", new, "-r", "scale").code == 0
    shown = nm_lsp("decisions", "show", old).out
    assert "INVALIDATED" in shown
    assert f"replaced by  {new}" in shown
    found = nm_lsp("decisions", "search", "sessions")
    assert old not in found.out
    assert "1 that is not active matches: --status all" in found.err
    assert nm_lsp("decisions", "search", "sessions", "--json").err == "nothing here matches\n"
    assert old in nm_lsp("decisions", "search", "sessions", "--status", "all").out
    assert nm_lsp("decisions", "supersede", new, "--by", old, "-r", "back").code == 5


def test_hooks(repository: Path, nm_lsp: Run) -> None:
    assert nm_lsp("hooks", "status").code == 1
    assert nm_lsp("hooks", "install").code == 0
    ended = nm_lsp("hooks", "status")
    assert ended.code == 0
    assert ended.out.splitlines()[0].split() == ["installed", "post-commit"]
    assert json.loads(nm_lsp("hooks", "status", "--json").out)["active"] is True
    git("config", "core.hooksPath", os.devnull)
    assert nm_lsp("hooks", "install").code == 5
    git("config", "--unset", "core.hooksPath")
    assert nm_lsp("hooks", "uninstall").code == 0
    assert nm_lsp("hooks", "status").code == 1
