"""Communities: what is connected belongs together, and ids and titles survive a rebuild."""

from __future__ import annotations

import random
import time

from nm_lsp.graph.communities import Community, detect

_FILES = [
    "src/shop/cart.py",
    "src/shop/order.py",
    "src/shop/item.py",
    "src/mail/send.py",
    "src/mail/queue.py",
    "docs/a.md",
]
_EDGES = {(0, 1): 3.0, (1, 2): 2.0, (0, 2): 1.0, (3, 4): 2.0, (2, 3): 0.1}


def _by_file(communities: list[Community]) -> dict[str, int]:
    return {path: community.id for community in communities for path in community.files}


def test_connected_files_belong_together_and_each_file_to_one_community() -> None:
    found = detect(_FILES, _EDGES)
    assert [community.files for community in found] == [
        ("src/shop/cart.py", "src/shop/item.py", "src/shop/order.py"),
        ("src/mail/queue.py", "src/mail/send.py"),
        ("docs/a.md",),
    ]
    assert [community.id for community in found] == [1, 2, 3]


def test_titles_come_from_paths_and_strongest_names() -> None:
    names = {"src/shop/cart.py": ["Cart", "add"], "src/shop/order.py": ["Order", "Cart"]}
    found = detect(_FILES, _EDGES, None, names)
    assert found[0].title == "src/shop: Cart, Order, add"
    assert found[1].title == "src/mail: queue, send"


def test_titles_are_told_apart() -> None:
    files = ["a/x.py", "a/y.py", "a/z.py", "a/w.py"]
    found = detect(files, {(0, 1): 1.0, (2, 3): 1.0}, None, {path: ["run"] for path in files})
    assert sorted(community.title for community in found) == ["a: run", "a: run (2)"]


def test_the_order_of_edges_changes_nothing() -> None:
    edges = list(_EDGES.items())
    random.Random(3).shuffle(edges)
    flipped = {(b, a): weight for (a, b), weight in edges}
    assert detect(_FILES, flipped) == detect(_FILES, _EDGES)


def test_ids_follow_the_largest_overlap() -> None:
    before = _by_file(detect(_FILES, _EDGES))
    files = ["src/mail/a_new.py", *_FILES]
    edges = {(a + 1, b + 1): weight for (a, b), weight in _EDGES.items()} | {(0, 4): 2.0, (0, 5): 2.0}
    after = _by_file(detect(files, edges, before))
    assert {path: after[path] for path in _FILES} == before
    assert after["src/mail/a_new.py"] == before["src/mail/send.py"]


def test_a_split_leaves_the_id_with_the_larger_part_and_gives_the_other_a_new_one() -> None:
    files = [f"a/{name}.py" for name in "abcde"]
    before = dict.fromkeys(files, 7)
    after = _by_file(detect(files, {(0, 1): 1.0, (1, 2): 1.0, (0, 2): 1.0, (3, 4): 1.0}, before))
    assert after["a/a.py"] == 7
    assert after["a/d.py"] == 8


def test_files_without_edges_join_their_folder() -> None:
    files = [*_FILES, "src/shop/data.json", "docs/b.md", *(f"images/{n}.md" for n in range(500))]
    found = detect(files, _EDGES)
    by_file = _by_file(found)
    assert by_file["src/shop/data.json"] == by_file["src/shop/cart.py"]
    assert by_file["docs/a.md"] == by_file["docs/b.md"]
    assert len(found) == 4
    assert len(by_file) == len(files)


def test_nothing_gives_nothing() -> None:
    assert detect([], {}) == []
    assert [community.files for community in detect(["a.py"], {(0, 0): 1.0})] == [("a.py",)]


def test_three_thousand_files_and_twenty_thousand_edges_are_quick() -> None:
    rng = random.Random(1)
    files = [f"pkg{n // 100}/m{n}.py" for n in range(3_000)]
    edges: dict[tuple[int, int], float] = {}
    while len(edges) < 20_000:
        a = rng.randrange(3_000)
        b = a // 100 * 100 + rng.randrange(100) if rng.random() < 0.8 else rng.randrange(3_000)
        edges[a, b] = rng.random() * 3
    started = time.process_time()
    found = detect(files, edges)
    # Measured 0.4 s; the bound only catches a change of order of growth.
    assert time.process_time() - started < 10
    assert 10 < len(found) < 60
    before = _by_file(found)
    edges[0, 2_999] = 2.0
    assert _by_file(detect(files, edges, before)) == before
