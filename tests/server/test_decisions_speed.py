"""How quick what is shown of decisions is, in a large repository. Minutes long: `pytest -m slow`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from decision_session import Repo, Session, private_env, session

pytestmark = pytest.mark.slow

N_FILES, N_DECISIONS, N_CHANGED = 5_000, 10_000, 100

# Records all decisions in one transaction; one call each would take minutes.
FILL = f"""
import secrets, sys, time
from pathlib import Path
from nm_lsp.decisions.events import EventKind
from nm_lsp.decisions.model import Anchor, AnchorKind, Confirmation, new_id
from nm_lsp.engine.decision_requests import Caller
from nm_lsp.engine.decisions.acts import Scene
from nm_lsp.engine.decisions.anchoring import Prefix, anchors_of
from nm_lsp.engine.decisions.repository import Repositories
from nm_lsp.engine.decisions.sightings import confirm
from nm_lsp.engine.decisions.worktree import WorkTree

root = Path(sys.argv[1])
tree = WorkTree(root, Repositories(), git="git", revival=False, clock=time.monotonic)
scene = Scene(tree, Prefix(""), lambda path: None, Caller("cli", "test"))
look = scene.answering_look()
names = [f"p{{n % 50:02}}/m{{n:04}}.py" for n in range({N_FILES})]
anchors = [Anchor(AnchorKind.FILE, name, None) for name in names]
anchors += [Anchor(AnchorKind.SYMBOL, name, "f") for name in names]
seen = confirm(tree, anchors, lambda path: None)
events = []
for number, sighting in enumerate(seen.seen):
    fields = {{"title": f"Decision {{number}}", "rationale": "Because. " * 20, "anchors": [sighting.anchor.to_plain()],
        "confirmation": Confirmation(seen.commit, (sighting,), seen.ancestors).to_plain()}}
    events.append(scene.event(look, EventKind.RECORDED, new_id(secrets.token_bytes(5)), after=fields))
tree.keeper.append(lambda held: events)
"""


def test_a_commit_of_many_files_and_hovers_in_a_large_repository(tmp_path: Path) -> None:
    env = private_env(tmp_path / "home")
    text = "def f(a):\n    return a + {}\n\n\ndef g(a):\n    return a\n" + "# filler of some length\n" * 200
    files = {f"p{n % 50:02}/m{n:04}.py": text.format(n) for n in range(N_FILES)}
    repo = Repo(tmp_path / "repo", files)
    subprocess.run([sys.executable, "-c", FILL, str(repo.path)], check=True, env={**os.environ, **env})
    with session(repo.path, env=env, options={"notifications": True}) as s:
        uri = repo.uri("p00/m0000.py")
        s.open(uri, files["p00/m0000.py"])
        s.until(lambda: "ACTIVE" in s.hover_text(uri), 120)
        took = []
        for number in range(200):
            started = time.perf_counter()
            assert s.hover(uri, number % 3)
            took.append(1000 * (time.perf_counter() - started))
        hover_p95 = statistics.quantiles(took, n=20)[-1]
        print(f"hover: median {statistics.median(took):.1f} ms, p95 {hover_p95:.1f} ms")
        changed = sorted(files)[:N_CHANGED]
        repo.commit("change", {name: files[name].replace("a +", "a -") for name in changed})
        # The server says when it has looked; that costs it what telling anybody costs.
        seen = len(events(s))
        s.client.ask("neuralmind/decisions.scan", {})
        s.until(lambda: len(events(s)) > seen, 60)
        looked = time.perf_counter()
        s.until(lambda: sum(bool(each) for each in s.shown.values()) == N_CHANGED, 60)
        took_s = time.perf_counter() - looked
        print(f"last diagnostic {1000 * took_s:.0f} ms after the look, load {os.getloadavg()[0]:.1f}")
        assert sum(len(each) for each in s.shown.values()) == 2 * N_CHANGED
        # Bounds with room for a busy machine; the goals are 10 ms and 500 ms.
        assert hover_p95 < 50
        assert took_s < 5


def events(s: Session) -> list[object]:
    return [message for message in list(s.client.messages) if message.get("method") == "neuralmind/event"]
