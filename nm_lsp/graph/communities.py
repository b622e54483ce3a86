"""Which files belong together: Louvain over the weighted graph of files, with ids and titles that stay.

Guarantees: the same input gives the same result; a community keeps its id across rebuilds as long as most of it stays
together; every file is in exactly one community. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

RESOLUTION = 1.0
_SEED = 20_240_229
_MAX_TITLE_WORDS = 3
# Folders that say how a project is laid out, not what a part of it is about.
_PLAIN_FOLDERS = frozenset({"", ".", "src", "lib", "app", "pkg", "packages", "source"})


@dataclass(frozen=True, slots=True)
class Community:
    """`files` are sorted paths; `id` is positive; a new community gets none that the last build used."""

    id: int
    title: str
    files: tuple[str, ...]


def detect(
    files: Sequence[str],
    edges: Mapping[tuple[int, int], float],
    previous: Mapping[str, int] | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> list[Community]:
    """The communities of `files`, largest first.

    `edges` weigh pairs of indices into `files` (either order; weights of both are added; a file's edge to itself is
    ignored). `previous` gives each file's community id of the last build, where it had one. `names` gives each file's
    strongest names, best first, for the titles. Files without an edge are grouped by folder and join the community
    that holds most of their folder, so that they do not make thousands of singletons.
    """
    weights: dict[tuple[int, int], float] = defaultdict(float)
    for (a, b), weight in edges.items():
        if a != b and weight > 0:
            weights[min(a, b), max(a, b)] += weight
    groups = _louvain(weights)
    _add_isolated(files, groups)
    paths = [tuple(sorted(files[index] for index in group)) for group in groups]
    paths.sort(key=lambda group: (-len(group), group))
    ids = _stable_ids(paths, previous or {})
    titles = _titles(paths, files, names or {})
    return [Community(ids[at], titles[at], group) for at, group in enumerate(paths)]


def _louvain(weights: Mapping[tuple[int, int], float]) -> list[list[int]]:
    if not weights:
        return []
    # Imported here because networkx costs a tenth of a second that every start would pay and few builds need.
    import networkx

    graph = networkx.Graph()
    # The order of insertion decides ties; sorted, it does not depend on how the edges were found.
    graph.add_nodes_from(sorted({index for pair in weights for index in pair}))
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in sorted(weights.items()))
    found = networkx.community.louvain_communities(graph, weight="weight", resolution=RESOLUTION, seed=_SEED)
    return [sorted(group) for group in found]


def _add_isolated(files: Sequence[str], groups: list[list[int]]) -> None:
    """Puts each file without an edge into the community that holds most of its folder, else into its folder's own."""
    connected = {index: at for at, group in enumerate(groups) for index in group}
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    for index, at in connected.items():
        votes[_folder(files[index])][at] += 1
    by_folder: dict[str, list[int]] = defaultdict(list)
    for index, path in enumerate(files):
        if index not in connected:
            by_folder[_folder(path)].append(index)
    for folder in sorted(by_folder):
        if folder in votes:
            best = min(votes[folder].items(), key=lambda vote: (-vote[1], vote[0]))[0]
            groups[best] += by_folder[folder]
        else:
            groups.append(by_folder[folder])


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _stable_ids(groups: Sequence[tuple[str, ...]], previous: Mapping[str, int]) -> list[int]:
    """Each group takes the old id with which it shares most files, the largest overlap first; others get new ids."""
    overlaps: list[tuple[int, int, int]] = []
    for at, group in enumerate(groups):
        shared = Counter(previous[path] for path in group if path in previous)
        overlaps += [(-count, old, at) for old, count in shared.items()]
    ids: dict[int, int] = {}
    taken: set[int] = set()
    for _, old, at in sorted(overlaps):
        if at not in ids and old not in taken:
            ids[at] = old
            taken.add(old)
    following = max(previous.values(), default=0) + 1
    for at in range(len(groups)):
        if at not in ids:
            ids[at] = following
            following += 1
    return [ids[at] for at in range(len(groups))]


def _titles(groups: Sequence[tuple[str, ...]], files: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """From the folder most of a community lies in and its strongest names: "django/db: models, fields"."""
    in_folder = Counter(_folder(path) for path in files)
    titles: list[str] = []
    used: Counter[str] = Counter()
    for group in groups:
        place = _place(group, in_folder)
        words = _strongest(group, names, place)
        title = f"{place}: {', '.join(words)}" if place and words else place or ", ".join(words) or "files"
        used[title] += 1
        titles.append(title if used[title] == 1 else f"{title} ({used[title]})")
    return titles


def _place(group: Sequence[str], in_folder: Mapping[str, int]) -> str:
    """The deepest folder that holds at least half of the files, or the one that holds most."""
    counts: Counter[str] = Counter()
    for path in group:
        parts = path.split("/")[:-1]
        counts.update("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    halves = [folder for folder, count in counts.items() if 2 * count >= len(group)]
    candidates = [folder for folder in halves if folder not in _PLAIN_FOLDERS]
    if candidates:
        return max(candidates, key=lambda folder: (folder.count("/"), counts[folder], folder))
    if counts:
        return min(counts, key=lambda folder: (-counts[folder], in_folder.get(folder, 0), folder))
    return ""


def _strongest(group: Sequence[str], names: Mapping[str, Sequence[str]], place: str) -> list[str]:
    """The names that most files of the group put first; without names, the stems of its files."""
    scores: Counter[str] = Counter()
    for path in group:
        ranked = names.get(path, ())
        for rank, name in enumerate(ranked[:5]):
            scores[name] += 5 - rank
    if not scores:
        stems = (PurePosixPath(path).stem for path in group)
        scores.update(stem for stem in stems if not stem.startswith("__") and stem != PurePosixPath(place).name)
    ranked_names = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return [name for name, _ in ranked_names[:_MAX_TITLE_WORDS]]
