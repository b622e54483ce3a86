"""How soon answers are as good as they get: needle questions to a server that was opened cold.

    python tests/bench/needles_early.py FOLDER [--at 10 30 60 90] [--count 80]

The documentation that a needle question is made of is blanked out in the copy that is opened (`retrieval_needles.py`).
Prints the MRR of ten hits at each moment, the vectors there were, and what part that is of the MRR with all vectors.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
sys.path.insert(0, str(Path(__file__).parent))

from index_speed import Session
from retrieval_corpus import read_folder
from retrieval_needles import Needle, make_needles


def mrr(session: Session, needles: Sequence[Needle]) -> float:
    return sum(reciprocal_rank(session, needle) for needle in needles) / len(needles)


def reciprocal_rank(session: Session, needle: Needle) -> float:
    hits = session.request("neuralmind/search", {"query": needle.question, "limit": 10})["hits"]
    ranks = (rank for rank, hit in enumerate(hits, 1) if found(hit, needle))
    return 1 / next(ranks, float("inf"))


def found(hit: Any, needle: Needle) -> bool:
    """The hit overlaps the definition that the question is about."""
    first, last = hit["range"]["start"]["line"] + 1, hit["range"]["end"]["line"] + 1
    return hit["path"] == needle.path and first <= needle.end and last >= needle.start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--at", type=float, nargs="*", default=[10, 30, 60, 90], help="seconds after the opening")
    parser.add_argument("--count", type=int, default=80, help="questions")
    options = parser.parse_args()
    needles, texts = make_needles(read_folder(options.folder), options.count)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch).resolve() / options.folder.name
        for path, text in texts.items():
            file = copy / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8", "surrogatepass")
        session = Session(copy, {"XDG_CACHE_HOME": f"{scratch}/cache", "XDG_STATE_HOME": f"{scratch}/state"})
        session.wait(lambda status: status["ready"])
        print(f"{len(needles)} questions\n\n{'after':28}{'vectors':>10}{'MRR':>8}", flush=True)
        values = []
        for at in sorted(options.at):
            time.sleep(max(0.0, session.started + at - time.perf_counter()))
            values.append(report(session, needles, at))
        values.append(report(session, needles, session.wait(lambda status: status["phase"] == "idle", 0.5)))
        session.close()
    shares = ", ".join(f"{value / values[-1]:.1%}" for value in values)
    print(f"\nof the MRR with all vectors: {shares}")


def report(session: Session, needles: Sequence[Needle], at: float) -> float:
    """Print and return the MRR now."""
    cpu_s, n_vectors = session.cpu_s(), session.status()["vectors"]["done"]
    value = mrr(session, needles)
    print(f"{f'{at:.0f} s ({cpu_s:.0f} s of CPU)':28}{n_vectors:10,}{value:8.3f}", flush=True)
    return value


if __name__ == "__main__":
    main()
