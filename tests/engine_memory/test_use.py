"""What was learned in use: recall in answers, neighbours, next steps, feedback, review, export, decay, the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from editing import CALLER, GO, Editing
from hypothesis import given
from hypothesis import strategies as st

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import InvalidInput, NotFound, Refused
from nm_lsp.engine.memory.probing import probe
from nm_lsp.engine.memory.recall import MORE_LOOKED_AT
from nm_lsp.engine.memory_requests import (
    FeedbackParams,
    InspectParams,
    MemoryExportParams,
    MemoryImportParams,
    NeighborsParams,
    NextParams,
    ProbeParams,
    ResetParams,
    ReviewParams,
)
from nm_lsp.engine.requests import Nothing
from nm_lsp.search.corpus import Corpus
from nm_lsp.search.ranking import Candidate, search
from nm_lsp.search.segment import FileStamp, SegmentBuilder
from nm_lsp.storage.synapses import SynapseStore
from nm_lsp.synapses.page import FIRST_LINE, LearnedPair, LearnedStep, memory_page
from nm_lsp.synapses.rules import DAY_S
from nm_lsp.worker.analysis import analyse_text

ADD, TOTAL, DISCOUNT = "cart.py::Cart.add", "cart.py::Cart.total", "cart.py::discount"
ESTIMATE, ZONE = "ship.py::estimate", "ship.py::zone"
CONFIRM, RENDER = "mail.py::confirm", "mail.py::render"


def learn(work: Editing, *pairs: tuple[str, str], times: int = 1) -> None:
    for _ in range(times):
        for a, b in pairs:
            for symbol in (a, b):
                path, _, name = symbol.partition("::")
                work.edit(path, name.rpartition(".")[2])
            work.pass_time(3)
            work.now += 700
            work.tick()


def ask(work: Editing, question: str, limit: int = 10) -> list[Candidate]:
    """As `answers.ranked` does."""
    recall = work.desk.recall()
    extra = 0 if recall is None or recall.is_empty else MORE_LOOKED_AT
    found = search(work.corpus, question, limit=limit + extra).candidates
    return list(recall.rerank(work.corpus, found, limit, None)) if recall is not None else list(found)


def test_nothing_learned_changes_nothing(work: Editing) -> None:
    assert work.desk.recall() is None
    work.edit("cart.py", "add")
    work.pass_time(3)
    recall = work.desk.recall()
    assert recall is None or recall.is_empty


def test_what_goes_together_comes_first(work: Editing) -> None:
    """A pair 30 times, one 10 times, one once, one never."""
    learn(work, (ADD, ZONE), times=30)
    learn(work, (ADD, RENDER), times=10)
    learn(work, (ADD, CONFIRM))
    found = work.desk.neighbors(NeighborsParams(symbol=ADD), GO, CALLER).neighbors
    learned = [(row.id, row.count) for row in found if row.source != "structural"]
    assert learned == [(ZONE, 30), (RENDER, 10), (CONFIRM, 1)]
    before = {row.id: row.weight for row in found}
    work.now += 60 * DAY_S
    after = {row.id: row.weight for row in work.desk.neighbors(NeighborsParams(symbol=ADD), GO, CALLER).neighbors}
    assert all(after[node] < before[node] for node, _ in learned)
    assert after[ZONE] > after[RENDER] > after[CONFIRM]


def test_recall_brings_what_the_question_does_not_name(work: Editing) -> None:
    plain = [candidate.node.id for candidate in ask(work, "add product to the cart items", 5)]
    assert RENDER not in plain
    learn(work, (ADD, RENDER), times=6)
    with_recall = ask(work, "add product to the cart items", 5)
    ids = [candidate.node.id for candidate in with_recall]
    assert len(plain) == len(ids) == 5
    assert ids[:4] == plain[:4]
    assert ids[4] == RENDER
    recall = work.desk.recall()
    assert recall is not None
    assert "goes with cart.py::Cart.add (synapse" in recall.sentences(with_recall)[RENDER][0]


def test_the_same_question_for_ten_days_gets_the_same_list(work: Editing) -> None:
    learn(work, (ADD, RENDER), (ADD, ZONE), times=2)
    first = [(c.node.id, c.score) for c in ask(work, "cart product total", 5)]
    for _ in range(50):
        answer = [(c.node.id, c.score) for c in ask(work, "cart product total", 5)]
        assert answer == first
        work.desk.answered([identity for identity, _ in answer])
        work.pass_time(DAY_S / 5, step=DAY_S / 10)


def test_scores_stay_sorted_and_hits_few(work: Editing) -> None:
    learn(work, (ADD, RENDER), (TOTAL, ZONE), (DISCOUNT, CONFIRM), times=8)
    for limit in (1, 3, 5, 10):
        for question in ("cart total", "order", "estimate zone address", "voucher discount"):
            found = ask(work, question, limit)
            scores = [candidate.score for candidate in found]
            assert scores == sorted(scores, reverse=True)
            assert len(found) <= len(search(work.corpus, question, limit=limit).candidates)
            assert len({candidate.doc for candidate in found}) == len(found)


def test_neighbors_take_names_files_and_ids(work: Editing) -> None:
    learn(work, (ADD, ZONE))
    for symbol in (ADD, "add", "Cart.add"):
        assert work.desk.neighbors(NeighborsParams(symbol=symbol), GO, CALLER).id == ADD
    with pytest.raises(NotFound):
        work.desk.neighbors(NeighborsParams(symbol="nowhere"), GO, CALLER)
    with pytest.raises(InvalidInput):
        work.desk.neighbors(NeighborsParams(symbol=ADD, limit=0), GO, CALLER)


def test_structure_is_read_and_never_stored(work: Editing) -> None:
    rows = work.desk.neighbors(NeighborsParams(symbol=ESTIMATE), GO, CALLER).neighbors
    assert [(row.id, row.source, row.weight) for row in rows] == [(ZONE, "structural", 0.25)]
    assert work.weights() == {}


def test_next_is_what_came_after(work: Editing) -> None:
    for then in ("ship.py", "ship.py", "mail.py"):
        work.edit("cart.py", "add")
        work.pass_time(20)
        work.edit(then, "zone" if then == "ship.py" else "render")
        work.pass_time(20)
        work.now += 700
        work.tick()
    steps = work.desk.next(NextParams(symbol=ADD), GO, CALLER).steps
    assert [(step.id, step.share) for step in steps] == [
        (ZONE, pytest.approx(0.67, abs=0.01)),
        (RENDER, pytest.approx(0.33, abs=0.01)),
    ]
    work.edit("cart.py", "add")
    work.pass_time(3)
    assert work.desk.next(NextParams(), GO, CALLER).id == ADD


def test_feedback_binds_and_loosens(work: Editing) -> None:
    with pytest.raises(InvalidInput):
        work.desk.feedback(FeedbackParams(id=ZONE, useful=True), GO, CALLER)
    work.desk.answered([ADD, RENDER, ZONE])
    result = work.desk.feedback(FeedbackParams(id=ZONE, useful=True), GO, CALLER)
    assert (result.namespace, result.edges) == ("personal", 2)
    assert work.weights() == {(ADD, ZONE): 0.3, (RENDER, ZONE): 0.3}
    work.desk.feedback(FeedbackParams(id=ZONE, useful=False), GO, CALLER)
    assert work.weights() == {(ADD, ZONE): 0.15, (RENDER, ZONE): 0.15}


def test_feedback_counts_while_the_index_is_still_being_read(work: Editing) -> None:
    work.is_indexed = False
    result = work.desk.feedback(FeedbackParams(id=ADD, useful=True, context=(ZONE,)), GO, CALLER)
    assert result.edges == 1
    assert work.weights() == {(ADD, ZONE): 0.3}


def test_a_review_names_what_usually_changes_too(work: Editing) -> None:
    learn(work, (ADD, ZONE), times=5)
    work.git("checkout", "-q", "--", ".")
    assert work.desk.review(ReviewParams(), GO, CALLER).changed == ()
    work.write({"cart.py": work.read("cart.py").replace("append(product)", "append(product, 1)")})
    result = work.desk.review(ReviewParams(), GO, CALLER)
    assert result.changed == (ADD,)
    assert [(row.id, row.because) for row in result.missing] == [(ZONE, ADD)]
    # A symbol that nobody edited before: its file says what goes with it.
    work.git("checkout", "-q", "--", ".")
    work.write({"cart.py": work.read("cart.py").replace("voucher.amount", "voucher.sum")})
    result = work.desk.review(ReviewParams(), GO, CALLER)
    assert result.changed == (DISCOUNT,)
    assert [(row.id, row.because) for row in result.missing] == [("ship.py", "cart.py")]
    with pytest.raises(NotFound):
        work.desk.review(ReviewParams(against="nowhere"), GO, CALLER)


def shown_as_learned(work: Editing) -> list[str]:
    """All that is shown of what `ADD`, or its file, goes with, in every way of asking."""
    desk, line = work.desk, work.read("cart.py").split("\n").index("    def add(self, product):")
    rows = [
        row
        for symbol in (ADD, "cart.py")
        for row in desk.neighbors(NeighborsParams(symbol=symbol), GO, CALLER).neighbors
    ]
    recall = desk.recall()
    return [
        *(row.id for row in rows if row.source != "structural"),
        *(step.id for step in desk.next(NextParams(symbol=ADD), GO, CALLER).steps),
        *(row.id for row in desk.review(ReviewParams(), GO, CALLER).missing),
        *(identity for identity, _ in desk.associations("cart.py", line)),
        *(row.id for row in (recall.spread({ADD: 1.0}) if recall is not None else ())),
    ]


def test_nothing_that_is_asked_shows_what_another_branch_learned(work: Editing) -> None:
    work.git("checkout", "-q", "-b", "a")
    learn(work, (ADD, ZONE), (ZONE, RENDER), times=6)
    work.git("commit", "-q", "--allow-empty", "-m", "on a")
    work.tick()
    edited = {"cart.py": work.read("cart.py").replace("append(product)", "append(product, 1)")}
    work.write(edited)
    shown = shown_as_learned(work)
    # The symbol is shown in all five ways, the file beside it.
    assert shown.count(ZONE) == 5
    assert "ship.py" in shown
    work.git("checkout", "-q", "main", "--force")
    work.git("checkout", "-q", "-b", "b")
    work.screen.clear()
    work.tick()
    work.write(edited)
    assert shown_as_learned(work) == []


def test_associations_for_a_hover(work: Editing) -> None:
    learn(work, (ADD, ZONE), times=2)
    line = next(n for n, text in enumerate(work.read("cart.py").splitlines()) if "def add" in text)
    assert work.desk.associations("cart.py", line) == [(ZONE, pytest.approx(0.51, abs=0.001))]
    assert work.desk.associations("missing.py", 0) == []


def test_inspect_export_reset_decay(work: Editing) -> None:
    learn(work, (ADD, ZONE))
    seen = work.desk.inspect(InspectParams(), GO, CALLER)
    assert (seen.active, seen.learning, [(row.name, row.edges) for row in seen.namespaces]) == (
        "personal",
        True,
        [("personal", 2)],
    )
    with pytest.raises(NotFound):
        work.desk.inspect(InspectParams(namespace="branch:none"), GO, CALLER)
    exported = work.desk.export(MemoryExportParams(), GO, CALLER)
    assert exported.text is not None
    bundle = json.loads(exported.text)
    assert (bundle["format"], bundle["version"]) == ("nm-lsp-synapses", 1)
    assert [edge[:2] for edge in bundle["namespaces"]["personal"]["edges"]] == [["cart.py", "ship.py"], [ADD, ZONE]]
    assert work.desk.export(MemoryExportParams(to="out/memory.json"), GO, CALLER).path == "out/memory.json"
    assert work.desk.export(MemoryExportParams(to="out/memory.json"), GO, CALLER).path == "out/memory.json"
    with pytest.raises(Refused):
        work.desk.export(MemoryExportParams(to="cart.py"), GO, CALLER)
    with pytest.raises(InvalidInput):
        work.desk.export(MemoryExportParams(to="../out.json"), GO, CALLER)
    with pytest.raises(Refused):
        work.desk.reset(ResetParams(namespace="personal"), GO, CALLER)
    with pytest.raises(NotFound):
        work.desk.reset(ResetParams(namespace="nonsense", confirm=True), GO, CALLER)
    work.now += 500 * DAY_S
    assert work.desk.decay(Nothing(), GO, CALLER).edges == 2
    work.now += 10
    learn(work, (ADD, ZONE))
    assert work.desk.reset(ResetParams(namespace="all", confirm=True), GO, CALLER).edges == 2
    assert work.weights() == {}
    text = (work.root / ".neuralmind" / "lsp" / "audit.jsonl").read_text()
    assert text.count("synapses.export") == 2
    assert text.count("synapses.reset") == 1


def test_what_others_learned_is_taken_into_the_shared_namespace(work: Editing) -> None:
    learn(work, (ADD, ZONE), (TOTAL, RENDER), times=2)
    work.git("checkout", "-q", "-b", "feature")
    work.tick()
    learn(work, (ADD, RENDER))
    work.desk.export(MemoryExportParams(to="bundle.json"), GO, CALLER)
    work.desk.reset(ResetParams(namespace="all", confirm=True), GO, CALLER)
    first = work.desk.import_(MemoryImportParams(source="bundle.json"), GO, CALLER)
    # Two pairs of symbols and of their files, and the steps between; nothing of the branch.
    assert (first.edges, first.transitions, first.unchanged, first.unknown) == (4, 2, 0, 0)
    assert work.weights("shared") == {
        (ADD, ZONE): pytest.approx(0.51, abs=1e-3),
        (TOTAL, RENDER): pytest.approx(0.51, abs=1e-3),
    }
    assert work.weights()[ADD, ZONE] == pytest.approx(0.255, abs=1e-3)
    once = work.desk.export(MemoryExportParams(), GO, CALLER).text
    assert work.desk.import_(MemoryImportParams(source="bundle.json"), GO, CALLER).edges == 0
    assert work.desk.export(MemoryExportParams(), GO, CALLER).text == once
    work.desk.export(MemoryExportParams(to="second.json"), GO, CALLER)
    again = work.desk.import_(MemoryImportParams(source="second.json"), GO, CALLER)
    assert (again.edges, again.transitions, again.unchanged) == (0, 0, 4)
    assert work.desk.export(MemoryExportParams(), GO, CALLER).text == once
    assert (work.root / ".neuralmind" / "lsp" / "audit.jsonl").read_text().count("synapses.import") == 3


@pytest.mark.parametrize("weight", ["-0.5", "1.5", "Infinity", "NaN", '"much"'])
def test_a_bundle_with_an_impossible_weight_changes_nothing(work: Editing, weight: str) -> None:
    learn(work, (ADD, ZONE))
    before = work.desk.export(MemoryExportParams(), GO, CALLER).text
    assert before is not None
    edges = f'[["{ADD}", "{RENDER}", 0.4, 1, 1], ["{ADD}", "{CONFIRM}", {weight}, 1, 1]]'
    head = '"format": "nm-lsp-synapses", "version": 1, "time": "2026-01-01T00:00:00Z"'
    content = f'{{{head}, "namespaces": {{"personal": {{"edges": {edges}, "transitions": []}}}}}}'
    work.write({"bundle.json": content})
    with pytest.raises(InvalidInput, match=r"namespaces\.personal\.edges\[1\]\[2\]"):
        work.desk.import_(MemoryImportParams(source="bundle.json"), GO, CALLER)
    assert work.desk.export(MemoryExportParams(), GO, CALLER).text == before


def test_what_a_bundle_names_and_is_not_here_is_left_out(work: Editing, tmp_path: Path) -> None:
    rows = [[ADD, ZONE, 0.4, 1, 1], [ADD, "gone.py::f", 0.4, 1, 1], ["cart.py::Cart.gone", ZONE, 0.4, 1, 1]]
    bundle = {
        "format": "nm-lsp-synapses",
        "version": 1,
        "time": "2026-01-01T00:00:00Z",
        "namespaces": {"shared": {"edges": rows, "transitions": [["gone.py::f", ADD, 1]]}},
    }
    outside = tmp_path / "bundle.json"
    outside.write_text(json.dumps(bundle))
    result = work.desk.import_(MemoryImportParams(source=str(outside)), GO, CALLER)
    assert (result.edges, result.transitions, result.unknown) == (1, 0, 3)
    with pytest.raises(Refused):
        work.desk.import_(MemoryImportParams(source=str(outside)), GO, replace(CALLER, face="lsp"))
    with pytest.raises(NotFound):
        work.desk.import_(MemoryImportParams(source="none.json"), GO, CALLER)
    with pytest.raises(InvalidInput):
        work.desk.import_(MemoryImportParams(source="cart.py"), GO, CALLER)
    work.is_indexed, work.cause = False, "the disk is full"
    with pytest.raises(Refused, match="the disk is full"):
        work.desk.import_(MemoryImportParams(source=str(outside)), GO, CALLER)


def test_savings_survive_and_name_their_formula(work: Editing) -> None:
    work.desk.answered([ADD], tokens=10, files=["cart.py"])
    learn(work, (ADD, ZONE))
    result = work.desk.savings(Nothing(), GO, CALLER)
    size = work.corpus.stamp("cart.py")
    assert size is not None
    assert (result.queries, result.tokens_given, result.tokens_of_files) == (1, 10, size.size // 4)
    assert result.saved == result.tokens_of_files - result.tokens_given
    assert "tokens_of_files" in result.formula
    work.desk.close()
    work.keepers.close()
    # The event log rolls and may go; what was counted is in the store.
    for log in (work.root / ".neuralmind" / "lsp").glob("events.jsonl*"):
        log.unlink()
    store = SynapseStore.open(work.root / ".neuralmind" / "lsp" / "synapses.db", work.now)
    assert (store.counters()["queries"], store.counters()["tokens_given"]) == (1, 10)
    store.close()


def test_a_probe_asks_by_documentation(work: Editing) -> None:
    result = work.desk.probe(ProbeParams(), GO, CALLER)
    assert result.asked == 1
    assert 0 <= result.mrr <= 1


def test_a_probe_says_what_would_help() -> None:
    """Three symbols; what is found is given, so that each kind of advice is met."""
    text = (
        'def charge(a):\n    """Take the money for an order from the card of its buyer."""\n'
        'def refund(a):\n    """Take the money for an order from the card of its buyer."""\n'
        'def send(a):\n    """Send to somebody who waits."""\n'
        'def ship(a):\n    """Hand a parcel with its papers over to the carrier of the day."""\n'
    )
    builder = SegmentBuilder()
    builder.add(analyse_text("shop.py", text, FileStamp(b"\0" * 16, len(text), 0)))
    answers = {"Take": ["shop.py::charge"], "to some": ["shop.py::ship"], "Hand": []}
    asked: list[str] = []

    def find(question: str, _cancel: Cancellation) -> list[str]:
        asked.append(question)
        return next(hits for word, hits in answers.items() if word in question)

    result = probe(Corpus([(builder.build(), frozenset())]), find, 10, GO)
    assert (result.asked, result.found_first, result.mrr) == (4, 1, 0.25)
    assert "to somebody who waits." in asked, "the name itself is not asked for"
    advice = {spot.id.partition("::")[2]: (spot.first, spot.advice) for spot in result.blind_spots}
    assert advice == {
        "refund": ("shop.py::charge", "shop.py::charge is documented in the same words: say what differs."),
        "send": (
            "shop.py::ship",
            "Its first sentence has 4 words beside the name: say what it does, with what, and for whom.",
        ),
        "ship": (None, "Nothing was found: use words that the code or its neighbours use too."),
    }


# -- the page --------------------------------------------------------------------------------------------------------


def page(work: Editing) -> Path:
    return work.root / ".neuralmind" / "SYNAPSE_MEMORY.md"


def test_the_page_is_written_every_five_minutes_at_most_and_at_the_end(work: Editing) -> None:
    work.edit("cart.py", "add")
    work.edit("ship.py", "zone")
    work.pass_time(4)
    work.tick()
    first = page(work).read_text()
    assert first.startswith(FIRST_LINE)
    assert ADD in first
    work.now += 10
    for symbol in ("render", "confirm"):
        work.edit("mail.py", symbol)
    work.edit("ship.py", "estimate")
    work.pass_time(200, step=20)
    assert page(work).read_text() == first
    work.pass_time(200, step=20)
    second = page(work).read_text()
    assert RENDER in second
    work.edit("mail.py", "render")
    work.edit("ship.py", "zone")
    work.pass_time(3)
    work.tick()
    assert page(work).read_text() == second
    work.desk.close()
    assert page(work).read_text() != second


def test_a_page_of_somebody_else_is_never_touched(work: Editing) -> None:
    page(work).parent.mkdir(exist_ok=True)
    page(work).write_text("# Mine\n")
    learn(work, (ADD, ZONE))
    work.pass_time(400, step=50)
    assert page(work).read_text() == "# Mine\n"


def test_an_ignore_file_of_somebody_else_is_never_touched(work: Editing) -> None:
    ignore = page(work).parent / ".gitignore"
    ignore.parent.mkdir(exist_ok=True)
    ignore.write_text("*.db\n")
    learn(work, (ADD, ZONE))
    work.pass_time(400, step=50)
    assert ignore.read_text() == "*.db\n"
    assert page(work).exists()


@given(
    st.permutations(
        [LearnedPair("a", "b", 0.41, False), LearnedPair("d", "c", 0.9, True), LearnedPair("a", "c", 0.44, False)]
    )
)
def test_the_page_is_sorted_and_stable(pairs: list[LearnedPair]) -> None:
    steps = [LearnedStep("a", "b", 2.2), LearnedStep("b", "a", 1.9)]
    text = memory_page("personal", pairs, steps)
    assert text == memory_page("personal", pairs[::-1], steps[::-1])
    assert (
        text.index("| 0.9 | ★ | `c` | `d` |")
        < text.index("| 0.4 |  | `a` | `b` |")
        < text.index("| 0.4 |  | `a` | `c` |")
    )
    assert text.endswith("Pairs: 3, of them lasting: 1. Transitions taken more than once: 2.\n")


def test_a_file_goes_with_files(work: Editing) -> None:
    """Learned ones first, by how often they changed together; then neighbours by structure; then what changes often."""
    work.write({"tests/test_cart.py": "import cart\n", "far/notes.md": "# Notes\n", "far/plan.md": "# Plan\n"})
    work.git("add", "-A")
    work.reindex()
    learn(work, (ADD, ZONE), (TOTAL, ZONE), times=2)
    learn(work, ("ship.py::zone", "far/notes.md::Notes"))
    rows = work.desk.neighbors(NeighborsParams(symbol="cart.py"), GO, CALLER).neighbors
    assert (rows[0].id, rows[0].source, rows[0].count) == ("ship.py", "personal", 4)
    assert rows[0].weight > 0.51
    sources = {row.id: row.source for row in rows}
    assert sources["mail.py"] == sources["tests/test_cart.py"] == "structural"
    order = list(sources)
    # Its test lies elsewhere, but imports it and bears its name: two reasons against one.
    assert order.index("tests/test_cart.py") < order.index("mail.py") < order.index("far/notes.md")
    assert sources["far/notes.md"] == "frequent"
    assert "far/plan.md" not in sources
