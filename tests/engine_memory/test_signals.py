"""What teaches and what does not: a person's edits, commits, opens and used answers, and everything that only looks
like them. The clock is passed in; git is real."""

from __future__ import annotations

import math
import time

import pytest
from editing import START, Editing

from nm_lsp.synapses.rules import DAY_S

ADD, TOTAL, DISCOUNT = "cart.py::Cart.add", "cart.py::Cart.total", "cart.py::discount"
ESTIMATE, ZONE = "ship.py::estimate", "ship.py::zone"
CONFIRM, RENDER = "mail.py::confirm", "mail.py::render"


def test_symbols_edited_in_one_batch_go_together(work: Editing) -> None:
    work.edit("cart.py", "add")
    work.edit("ship.py", "zone")
    work.pass_time(3)
    assert work.weights() == {(ADD, ZONE): pytest.approx(0.3)}
    assert work.counters()["batches"] == 1


def test_files_go_together_once_a_batch_however_many_symbols_changed(work: Editing) -> None:
    for name in ("add", "total", "discount"):
        work.edit("cart.py", name)
    work.edit("ship.py", "zone")
    work.pass_time(3)
    assert work.weights(files=True) == {("cart.py", "ship.py"): pytest.approx(0.3)}
    work.pass_time(60)
    work.edit("mail.py", "render")
    work.pass_time(3)
    later = work.weights(files=True)
    assert later["cart.py", "mail.py"] == later["mail.py", "ship.py"] == pytest.approx(0.3 * 0.8, abs=0.02)


def test_a_batch_closes_after_two_quiet_seconds_or_thirty(work: Editing) -> None:
    for n in range(40):
        work.edit("cart.py", "add", mark=f"x{n}")
        work.edit("ship.py", "zone", mark=f"x{n}")
        work.pass_time(1)
    assert work.counters()["batches"] == 1
    work.pass_time(3)
    assert work.counters()["batches"] == 2


def test_going_to_another_file_within_minutes_teaches_less(work: Editing) -> None:
    work.edit("cart.py", "add")
    work.pass_time(20)
    work.edit("ship.py", "zone")
    work.pass_time(5)
    assert work.weights()[ADD, ZONE] == pytest.approx(0.3 * math.exp(-20 / 300), abs=0.002)
    work.pass_time(900, step=100)
    work.edit("mail.py", "render")
    work.pass_time(5)
    assert set(work.weights()) == {(ADD, ZONE)}


def test_steps_are_learned_in_their_order(work: Editing) -> None:
    for _ in range(2):
        for path, symbol in (("cart.py", "add"), ("ship.py", "zone"), ("mail.py", "render")):
            work.edit(path, symbol)
            work.pass_time(20)
    memory = work.desk.keeper.memory()
    assert memory is not None
    steps = {(memory.names[a], memory.names[b]): round(n) for (a, b), (n, _) in memory.steps["personal"].items()}
    assert steps == {(ADD, ZONE): 2, (ZONE, RENDER): 2, (RENDER, ADD): 1}


def test_the_innermost_symbol_is_meant(work: Editing) -> None:
    work.edit("docs.md")
    work.edit("cart.py", "total")
    work.pass_time(3)
    assert list(work.weights()) == [(TOTAL, "docs.md::Shop.Shipping")]


def test_typing_for_a_minute_is_few_writes(work: Editing) -> None:
    """600 changes in 60 s."""
    work.edit("ship.py", "zone")
    work.pass_time(3)
    store = work.desk.keeper.store(create=True)
    assert store is not None
    before = store.memory().revision
    for n in range(600):
        work.edit("cart.py", "add", mark=f"x{n}")
        work.now += 0.1
        if n % 5 == 0:
            work.desk.tick()
    work.pass_time(5)
    assert store.memory().revision - before <= 5


def test_noting_a_change_costs_the_loop_nothing(work: Editing) -> None:
    text = "def f():\n    return 1\n" * 2_500
    work.write({"big.py": text})
    work.open("big.py")
    spent = []
    for n in range(200):
        after = text + f"# {n}\n"
        before = time.perf_counter()
        work.desk.document_changed("big.py", text, after, n + 2, n + 1)
        spent.append(time.perf_counter() - before)
    assert sorted(spent)[190] <= 0.002


# -- what is not editing ---------------------------------------------------------------------------------------------


def nothing_learned(work: Editing) -> None:
    work.pass_time(5)
    assert work.weights() == {}
    memory = work.desk.keeper.memory()
    assert memory is None or not memory.steps.get("personal")


def test_undo_teaches_nothing(work: Editing) -> None:
    before = {path: work.read(path) for path in ("cart.py", "ship.py")}
    for path in before:
        work.edit(path)
        work.change(path, before[path])
    nothing_learned(work)


def test_undo_to_the_saved_text_teaches_nothing(work: Editing) -> None:
    before = {path: work.read(path) for path in ("cart.py", "ship.py")}
    work.edit("cart.py", "add")
    work.pass_time(700, step=50)
    work.edit("ship.py", "zone")
    work.pass_time(700, step=50)
    for path, text in before.items():
        work.change(path, text)
    nothing_learned(work)


def test_a_checkout_teaches_nothing(work: Editing) -> None:
    files = {f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(12)}
    work.write(files)
    work.git("add", "-A")
    work.commit("twelve files")
    work.git("checkout", "-q", "-b", "other")
    work.write({path: text.replace("return", "return 1 +") for path, text in files.items()})
    work.commit("change them")
    work.git("checkout", "-q", "main")
    work.reindex()
    work.pass_time(700, step=50)
    before = work.weights()
    work.open(*files)
    work.pass_time(5)
    work.git("checkout", "-q", "other")
    work.reload(*files)
    work.desk.files_changed([f"x{n}.py" for n in range(1_000)])
    work.pass_time(5)
    work.git("checkout", "-q", "main")
    work.reload(*files)
    work.desk.files_changed(list(files)[:5])
    work.pass_time(5)
    assert work.weights() == before


@pytest.mark.parametrize("command", [("reset", "-q", "--hard"), ("stash",), ("checkout", "-q", "--", ".")])
def test_going_back_teaches_nothing(work: Editing, command: tuple[str, ...]) -> None:
    work.open("cart.py", "ship.py")
    work.edit("cart.py", "add")
    work.save("cart.py")
    work.pass_time(700, step=50)
    work.edit("ship.py", "zone")
    work.save("ship.py")
    work.pass_time(700, step=50)
    assert work.weights() == {}
    work.git(*command)
    work.reload("cart.py", "ship.py")
    work.desk.files_changed(["cart.py", "ship.py"])
    nothing_learned(work)


def test_popping_a_stash_teaches_nothing(work: Editing) -> None:
    for path in ("cart.py", "ship.py", "mail.py"):
        work.write({path: work.read(path) + "\n\nlate = 1\n"})
    work.git("stash")
    work.open("cart.py", "ship.py")
    work.pass_time(5)
    work.git("stash", "pop")
    work.reload("cart.py", "ship.py")
    work.desk.files_changed(["cart.py", "ship.py", "mail.py"])
    nothing_learned(work)


def test_a_formatter_teaches_nothing(work: Editing) -> None:
    for path in ("cart.py", "ship.py"):
        work.change(path, work.read(path).replace("(", "( ").replace("\n\n", "\n\n\n"))
    nothing_learned(work)


def test_bulk_is_counted_and_teaches_nothing(work: Editing) -> None:
    files = {f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(21)}
    many = {"many.py": "".join(f"def g{n}():\n    return {n}\n\n" for n in range(60))}
    work.write({**files, **many})
    work.reindex()
    for path in files:
        work.edit(path)
    work.pass_time(3)
    work.change("many.py", many["many.py"].replace("return", "return 1 +"))
    nothing_learned(work)
    assert work.counters()["bulk"] == 2


def test_a_file_written_in_one_go_stands_for_itself(work: Editing) -> None:
    work.edit("ship.py", "zone")
    work.write({"many.py": ""})
    work.open("many.py")
    work.change("many.py", "".join(f"def g{n}():\n    return {n}\n\n" for n in range(60)))
    work.save("many.py")
    work.reindex()
    work.pass_time(3)
    assert set(work.weights()) == {("many.py", ZONE)}


def test_a_version_that_goes_back_teaches_nothing(work: Editing) -> None:
    work.change("cart.py", work.read("cart.py") + "\na = 1\n", version=5)
    work.change("cart.py", work.read("cart.py") + "\nb = 1\n", version=4)
    work.edit("ship.py", "zone")
    nothing_learned(work)


def test_generated_files_teach_nothing(work: Editing) -> None:
    work.write({"made.py": "# Code generated by protoc. DO NOT EDIT.\ndef made():\n    return 1\n"})
    corpus = work.reindex()
    assert corpus.file_is_generated(corpus.file_numbers["made.py"])
    work.edit("made.py", "made")
    work.edit("ship.py", "zone")
    nothing_learned(work)


def test_unknown_files_are_never_stored(work: Editing) -> None:
    work.write({"ignored.py": "def ignored():\n    return 1\n"})
    work.edit("ignored.py", "ignored")
    work.edit("ship.py", "zone")
    nothing_learned(work)
    assert work.counters()["unknown"] == 1


def test_a_session_restored_teaches_nothing(work: Editing) -> None:
    work.edit("cart.py", "add")
    work.pass_time(3)
    work.open("ship.py", "mail.py", "docs.md", "data.bin.txt")
    work.desk.document_opened("fifth.py")
    nothing_learned(work)


def test_switched_off_nothing_is_learned(work: Editing) -> None:
    work.enabled = False
    work.edit("cart.py", "add")
    work.edit("ship.py", "zone")
    work.enabled = True
    nothing_learned(work)


# -- weaker signals --------------------------------------------------------------------------------------------------


def test_opening_a_file_goes_a_little_with_what_was_touched(work: Editing) -> None:
    work.edit("cart.py", "add")
    work.pass_time(3)
    work.open("ship.py")
    work.pass_time(3)
    assert work.weights() == {(ADD, "ship.py"): pytest.approx(0.09, abs=0.002)}


def test_a_hit_that_is_used_goes_with_its_answer(work: Editing) -> None:
    work.desk.answered([ADD, ZONE, RENDER])
    work.pass_time(60, step=10)
    work.edit("ship.py", "zone")
    work.pass_time(3)
    assert work.weights() == {(ADD, ZONE): 0.3, (RENDER, ZONE): 0.3}
    work.edit("ship.py", "zone")
    work.pass_time(3)
    assert work.weights()[ADD, ZONE] == 0.3


def test_asking_lifts_to_a_twentieth_at_most(work: Editing) -> None:
    work.edit("cart.py", "add")
    work.edit("mail.py", "render")
    work.pass_time(3)
    for _ in range(50):
        work.desk.answered([DISCOUNT, ZONE, CONFIRM])
        work.pass_time(DAY_S / 5, step=DAY_S / 5)
    weights = work.weights()
    assert 0 < weights[DISCOUNT, ZONE] <= 0.05
    assert set(weights) == {(ADD, RENDER), (DISCOUNT, ZONE), (DISCOUNT, CONFIRM)}


# -- commits ---------------------------------------------------------------------------------------------------------


def write_bodies(work: Editing, *paths: str) -> None:
    for path in paths:
        work.write({path: work.read(path).replace("return", "return 0 +", 1)})


def test_a_small_commit_of_ones_own_teaches_most(work: Editing) -> None:
    write_bodies(work, "ship.py", "mail.py")
    work.reindex()
    work.commit()
    assert work.weights() == {(CONFIRM, ESTIMATE): 0.3}
    assert work.counters()["commits"] == 1
    work.tick()
    assert work.counters()["commits"] == 1


@pytest.mark.parametrize("how", ["other author", "amend", "merge", "pull", "large"])
def test_other_commits_teach_nothing(work: Editing, how: str) -> None:
    match how:
        case "other author":
            write_bodies(work, "ship.py", "mail.py")
            work.git("commit", "-q", "-a", "-m", "x", "--author", "Bob <bob@example.org>")
        case "amend":
            write_bodies(work, "ship.py", "mail.py")
            work.git("commit", "-q", "-a", "--amend", "-m", "x")
        case "merge":
            work.git("checkout", "-q", "-b", "side")
            write_bodies(work, "ship.py", "mail.py")
            work.git("commit", "-q", "-a", "-m", "x", "--author", "Bob <bob@example.org>")
            work.git("checkout", "-q", "main")
            work.git("merge", "-q", "--no-ff", "-m", "merge", "side")
        case "pull":
            work.git("clone", "-q", ".", "../upstream")
            work.git("-C", "../upstream", "-c", "user.name=Ada", "commit", "-q", "--allow-empty", "-m", "x")
            work.git("pull", "-q", "../upstream", "main")
        case _:
            work.write({f"m{n}.py": f"def f{n}():\n    return {n}\n" for n in range(21)})
            work.git("add", "-A")
            work.git("commit", "-q", "-m", "large")
    work.tick()
    nothing_learned(work)


def commit_unseen(work: Editing, *paths: str, days_ago: float = 0.0, author: str = "Ada <ada@example.org>") -> None:
    write_bodies(work, *paths)
    work.git("commit", "-q", "-a", "-m", "x", "--author", author, at=work.now - days_ago * DAY_S)


def test_commits_made_while_nothing_ran_are_learned_once_as_they_count_by_now(work: Editing) -> None:
    commit_unseen(work, "ship.py", "mail.py", days_ago=30)
    commit_unseen(work, "cart.py", "mail.py", days_ago=60)
    commit_unseen(work, "cart.py", "ship.py", days_ago=91)
    commit_unseen(work, "cart.py", "ship.py", author="Bob <bob@example.org>")
    work.reopen()
    by_age = {
        ("mail.py", "ship.py"): pytest.approx(0.15, abs=1e-3),
        ("cart.py", "mail.py"): pytest.approx(0.075, abs=1e-3),
    }
    assert work.weights(files=True) == pytest.approx(by_age, abs=1e-3)
    assert work.counters()["commits"] == 2
    work.reopen()
    assert work.weights(files=True) == pytest.approx(by_age, abs=1e-3)
    assert work.counters()["commits"] == 2


def test_two_that_start_learn_a_commit_once(work: Editing) -> None:
    commit_unseen(work, "ship.py", "mail.py")
    other = work._open()
    work.desk.close()
    work.desk = work._open()
    for _ in range(2):
        work.desk.tick()
        other.tick()
    work.flush()
    assert work.weights() == {(CONFIRM, ESTIMATE): pytest.approx(0.3)}
    assert work.counters()["commits"] == 1
    other.close()


def test_what_a_process_saw_is_not_learned_again_by_the_next(work: Editing) -> None:
    write_bodies(work, "ship.py", "mail.py")
    work.git("commit", "-q", "-a", "-m", "x", at=work.now)
    work.tick()
    work.tick()
    learned = work.weights()
    work.reopen()
    assert work.weights() == learned == {(CONFIRM, ESTIMATE): 0.3}


def test_past_commits_count_for_their_branch(work: Editing) -> None:
    for branch, path in (("kept", "ship.py"), ("merged", "cart.py")):
        work.git("checkout", "-q", "-b", branch)
        commit_unseen(work, path, "mail.py")
    work.git("checkout", "-q", "main")
    work.git("merge", "-q", "--no-ff", "-m", "merge", "merged", at=work.now)
    work.git("branch", "-q", "-D", "merged")
    work.git("checkout", "-q", "-b", "open")
    commit_unseen(work, "cart.py", "ship.py")
    work.git("checkout", "-q", "main")
    work.git("checkout", "-q", "-b", "dropped")
    commit_unseen(work, "cart.py", "ship.py")
    work.git("checkout", "-q", "--detach", "main")
    commit_unseen(work, "cart.py", "ship.py")
    work.git("checkout", "-q", "main")
    work.git("branch", "-q", "-D", "dropped")
    work.reopen()
    work.tick()
    merged = dict.fromkeys([("mail.py", "ship.py"), ("cart.py", "mail.py")], 0.24)
    assert work.weights("personal", files=True) == pytest.approx(merged, abs=1e-3)
    assert work.weights("branch:open", files=True) == {("cart.py", "ship.py"): 0.3}
    assert work.weights("ephemeral", files=True) == {}
    assert work.counters()["commits"] == 3


def test_past_commits_and_weights_follow_files_that_moved_meanwhile(work: Editing) -> None:
    learn_pair(work)
    commit_unseen(work, "ship.py", "mail.py")
    work.reopen()
    before = work.weights(files=True)
    commit_unseen(work, "cart.py", "ship.py", author="Bob <bob@example.org>")
    work.git("mv", "ship.py", "shipping.py")
    work.git("commit", "-q", "-m", "move", "--author", "Bob <bob@example.org>", at=work.now)
    work.reopen()
    after = work.weights(files=True)
    assert after["mail.py", "shipping.py"] == before["mail.py", "ship.py"] > 0
    assert after["cart.py", "shipping.py"] == before["cart.py", "ship.py"] > 0
    assert set(work.weights()) >= {(ADD, "shipping.py::zone")}
    assert not any("ship.py" in pair for pair in after)


# -- files without an editor -----------------------------------------------------------------------------------------


def test_a_program_that_writes_files_teaches(work: Editing) -> None:
    write_bodies(work, "ship.py", "mail.py")
    work.desk.files_changed(["ship.py", "mail.py"])
    work.pass_time(5)
    assert work.weights() == {(CONFIRM, ESTIMATE): 0.3}


def test_one_change_counts_once_whoever_reports_it(work: Editing) -> None:
    work.open("cart.py", "ship.py")
    work.pass_time(700, step=50)
    work.edit("cart.py", "add")
    work.edit("ship.py", "zone")
    work.pass_time(3)
    work.save("cart.py", "ship.py")
    work.desk.files_changed(["cart.py", "ship.py"])
    work.pass_time(3)
    other = Editing.__new__(Editing)
    other.__dict__ = {**work.__dict__}
    other.desk = other._open()
    other.desk.files_changed(["cart.py", "ship.py"])
    other.pass_time(3)
    assert work.weights() == {(ADD, ZONE): 0.3}


# -- names -----------------------------------------------------------------------------------------------------------


def learn_pair(work: Editing) -> None:
    work.edit("cart.py", "add")
    work.edit("ship.py", "zone")
    work.save("cart.py", "ship.py")
    work.pass_time(3)
    assert set(work.weights()) == {(ADD, ZONE)}


def test_a_rename_in_the_editor_carries_what_was_learned(work: Editing) -> None:
    learn_pair(work)
    work.git("mv", "ship.py", "parcel.py")
    work.desk.renamed({"ship.py": "parcel.py"})
    work.reindex()
    work.tick()
    assert set(work.weights()) == {(ADD, "parcel.py::zone")}


def test_a_rename_that_git_finds_carries_what_was_learned(work: Editing) -> None:
    learn_pair(work)
    work.git("commit", "-q", "-a", "-m", "edits", "--author", "Bob <bob@example.org>")
    work.tick()
    work.git("mv", "ship.py", "parcel.py")
    work.git("commit", "-q", "-m", "rename", "--author", "Bob <bob@example.org>")
    work.reindex()
    work.tick()
    assert set(work.weights()) == {(ADD, "parcel.py::zone")}


@pytest.mark.parametrize("is_watched", [True, False])
def test_a_symbol_that_moved_carries_what_was_learned(work: Editing, is_watched: bool) -> None:
    learn_pair(work)
    work.git("commit", "-q", "-a", "-m", "edits", "--author", "Bob <bob@example.org>")
    work.tick()
    text = work.read("ship.py")
    start = text.index("def zone")
    work.write({"ship.py": text[:start].rstrip() + "\n", "zones.py": text[start:]})
    work.git("add", "-A")
    work.reindex()
    work.git("commit", "-q", "-m", "move zone", at=work.now)
    if is_watched:
        work.tick()
        work.tick()
    else:
        work.reopen()
    assert (ADD, "zones.py::zone") in work.weights()
    assert (ADD, ZONE) not in work.weights()


def test_what_is_deleted_is_pruned(work: Editing) -> None:
    learn_pair(work)
    (work.root / "ship.py").unlink()
    work.reindex()
    work.now += 3 * DAY_S
    work.tick()
    work.now += 7_200
    work.tick()
    assert work.weights() == {}


# -- branches --------------------------------------------------------------------------------------------------------


def test_branches_learn_apart(work: Editing) -> None:
    work.git("checkout", "-q", "-b", "a")
    learn_pair(work)
    work.save()
    work.git("commit", "-q", "-a", "-m", "on a", "--author", "Bob <bob@example.org>")
    on_a = work.weights("branch:a")
    work.git("checkout", "-q", "main")
    work.git("checkout", "-q", "-b", "b")
    work.pass_time(700, step=100)
    assert work.weights() == {}
    work.screen.clear()
    work.edit("cart.py", "total")
    work.edit("mail.py", "render")
    work.pass_time(3)
    store = work.desk.keeper.store(create=False)
    assert store is not None
    store.weaken("branch:b", TOTAL, work.now)
    store.settle(work.now + 500 * DAY_S, only=["branch:b"])
    work.git("checkout", "-q", "a")
    work.tick()
    assert work.weights("branch:a").keys() == on_a.keys()
    assert set(work.weights()) == {(ADD, ZONE)}


@pytest.mark.parametrize("how", ["merge", "fast-forward", "squash", "pick", "upstream gone"])
def test_a_merged_branch_joins_the_default_one(work: Editing, how: str) -> None:
    work.git("checkout", "-q", "-b", "feature")
    learn_pair(work)
    for n in range(2):
        work.edit("cart.py", "add", mark=f"y{n}")
        work.save("cart.py")
        work.git("commit", "-q", "-a", "-m", f"work {n}", "--author", "Bob <bob@example.org>")
        work.tick()
    work.tick()
    assert work.weights("personal") == {}
    work.git("checkout", "-q", "main")
    if how != "fast-forward":
        work.write({"docs.md": "# Other\n"})
        work.git("commit", "-q", "-a", "-m", "other", "--author", "Bob <bob@example.org>")
    match how:
        case "merge":
            work.git("merge", "-q", "--no-ff", "-m", "merge", "feature")
        case "fast-forward":
            work.git("merge", "-q", "--ff-only", "feature")
        case "upstream gone":
            # As a forge leaves it that merged in its own way: the branch was pushed and is no longer there.
            work.git("init", "-q", "--bare", "../forge")
            work.git("remote", "add", "forge", "../forge")
            work.git("push", "-q", "-u", "forge", "feature")
            work.git("push", "-q", "forge", "--delete", "feature")
        case "squash":
            work.git("merge", "-q", "--squash", "feature")
            work.git("commit", "-q", "-m", "squashed", "--author", "Bob <bob@example.org>")
        case _:
            work.git("cherry-pick", "main..feature")
    work.reindex()
    work.tick()
    work.tick()
    assert work.weights("personal")[ADD, ZONE] == pytest.approx(0.24, abs=0.01)
    assert work.weights("branch:feature") == {}


def test_what_a_deleted_branch_learned_ages_out(work: Editing) -> None:
    work.git("checkout", "-q", "-b", "dropped")
    learn_pair(work)
    work.save()
    work.git("commit", "-q", "-a", "-m", "work", "--author", "Bob <bob@example.org>")
    work.tick()
    work.git("checkout", "-q", "main")
    work.git("branch", "-q", "-D", "dropped")
    for month in range(7):
        assert bool(work.weights("branch:dropped")) is (month < 5)
        assert work.weights() == {}
        work.pass_time(30 * DAY_S, step=15 * DAY_S)
    assert work.weights("personal") == work.weights("branch:dropped") == {}


def test_a_branch_without_commits_of_its_own_is_not_merged(work: Editing) -> None:
    work.git("checkout", "-q", "-b", "feature")
    learn_pair(work)
    work.git("checkout", "-q", "main")
    work.git("stash")
    work.tick()
    work.pass_time(5)
    assert work.weights("personal") == {}
    assert set(work.weights("branch:feature")) == {(ADD, ZONE)}


def test_without_git_learning_is_ephemeral(work: Editing) -> None:
    other = Editing(
        work.root.parent / "plain", {"a.py": "def a():\n    return 1\n", "b.py": "def b():\n    return 1\n"}, git=False
    )
    other.edit("a.py", "a")
    other.edit("b.py", "b")
    other.pass_time(3)
    assert other.weights("ephemeral") == {("a.py::a", "b.py::b"): 0.3}
    other.close()


# -- trouble ---------------------------------------------------------------------------------------------------------


def test_without_an_index_batches_are_kept_and_status_says_so(work: Editing) -> None:
    work.is_indexed, work.cause = False, "the disk is full"
    for n in range(20):
        work.edit("cart.py", "add", mark=f"x{n}")
        work.edit("ship.py", "zone", mark=f"x{n}")
        work.pass_time(3)
    (problem,) = work.desk.problems()
    assert problem.code == "not-learning"
    assert "the disk is full" in problem.message
    assert "20 batches" in problem.message
    assert work.weights() == {}
    work.is_indexed, work.cause = True, None
    work.tick()
    assert work.desk.problems() == ()
    memory = work.desk.keeper.memory()
    assert memory is not None
    assert memory.edges["personal"].count.tolist() == [20, 20]


def test_a_clock_that_jumps_for_years_harms_nothing(work: Editing) -> None:
    learn_pair(work)
    for jump in (4_000 * DAY_S, -8_000 * DAY_S, 4_000 * DAY_S):
        work.now += jump
        work.edit("mail.py", "render", mark="z")
        work.tick()
        work.pass_time(5)
    work.now = START + 60
    assert work.weights()[ADD, ZONE] == pytest.approx(0.3, abs=0.001)


def test_a_hundred_thousand_nodes_at_once_cost_nothing(work: Editing) -> None:
    paths = [f"p/{n}.py" for n in range(100_000)]
    before = time.perf_counter()
    work.desk.files_changed(paths)
    noted = time.perf_counter() - before
    work.now += 3
    before = time.perf_counter()
    work.desk.tick()
    assert time.perf_counter() - before <= 0.05
    assert noted <= 0.5
    work.flush()
    assert work.weights() == {}
    assert work.counters()["bulk"] == 1


def test_the_ignore_file_keeps_git_clean(work: Editing) -> None:
    learn_pair(work)
    work.pass_time(400, step=50)
    assert (work.root / ".neuralmind" / "SYNAPSE_MEMORY.md").read_text().count(ADD) >= 1
    work.git("checkout", "-q", "--", ".")
    assert work.git("status", "--porcelain") == ""
