"""Holds the verdicts on decisions in a real repository against the oracle of `tests/decisions`.

    PYTHONPATH=. python tests/bench/oracle_on_history.py REPOSITORY [--decisions 30] [--every 7] [--seed 1]

Walks HEAD along the first parents, records decisions on files, Python symbols, folders and globs on the way, restores,
amends and retires some, and asks three judges: one that looked at each step, one at each seventh, one only at the end.
The oracle is asked at every `--every`-th step (1 or a multiple of 7) and at the last. Exits with 1 if they disagree.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.decisions.real_history import real_run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--decisions", type=int, default=30)
    parser.add_argument("--every", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    root = options.repository.resolve()
    tip = (
        subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, check=True, capture_output=True).stdout.decode().strip()
    )
    started = time.monotonic()
    run = real_run(root, tip, seed=options.seed, n_decisions=options.decisions, calm=0.3, check_every=options.every)
    found = run.go()
    counted = Counter(status for status, _, _ in run.statuses)
    seen = ", ".join(f"{n} {status}" for status, n in counted.most_common())
    took = time.monotonic() - started
    print(f"{len(run.plan.steps)} steps, {len(run.decisions)} decisions, verdicts: {seen}; {took:.0f} s")
    for one in found:
        print(one)
    print(f"{len(found)} disagreements")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
