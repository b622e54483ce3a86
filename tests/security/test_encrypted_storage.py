"""`storage.requireEncrypted`, from outside: where nothing is encrypted nothing is remembered, and search goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from decision_session import Repo, private_env, session
from lsp_harness import LspError

from nm_lsp.base.cancellation import Cancellation
from nm_lsp.base.errors import StoreProblem
from nm_lsp.cli import main
from nm_lsp.engine import store_folder
from nm_lsp.engine.decision_requests import Caller, ListParams, RecordParams
from nm_lsp.engine.decisions.alone import open_desk
from nm_lsp.engine.settings import CONFIG_FILE, Settings, StorageSettings
from nm_lsp.storage.encryption import Protection, protection_of

SAID = "storage.requireEncrypted is on"
PARAMS = RecordParams(title="Doubled", rationale="Half was too little.", files=("gov.py",))
CLI = Caller("cli")

here_is_encrypted = protection_of(Path(__file__)).is_encrypted


@pytest.mark.skipif(here_is_encrypted, reason="this machine's disk is encrypted, so nothing would be refused")
def test_the_server_remembers_nothing_says_so_once_and_answers(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    settings = {"index": {"enabled": True}, "storage": {"requireEncrypted": True}}
    with session(repo.path, env=private_env(tmp_path / "home"), settings=settings) as s:
        with pytest.raises(LspError, match=SAID) as refusal:
            s.record("gov.py")
        assert refusal.value.code == -32803
        assert "Move it to an encrypted disk, or set storage.requireEncrypted to false." in refusal.value.data["hint"]
        s.until(lambda: s.call("status")["ready"], 60)
        assert s.call("search", query="governed")["hits"]
        assert s.call("query", query="how are values doubled")["text"]
        with pytest.raises(LspError, match=SAID):
            s.call("feedback", id="gov.py::governed", useful=True, context=["gov.py::other"])
        s.until(lambda: any(SAID in text for text in s.messages()))
        assert SAID in json.dumps(s.call("status")["problems"])
        assert sum(SAID in text for text in s.messages()) == 1, "said once"
    assert not (repo.path / ".neuralmind").exists()
    assert not list((tmp_path / "home").rglob("memory*"))


@pytest.mark.skipif(here_is_encrypted, reason="this machine's disk is encrypted, so nothing would be refused")
def test_the_setting_beside_the_store_binds_every_face(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path / "repo")
    for name, value in private_env(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(repo.path)
    (repo.path / CONFIG_FILE).parent.mkdir(parents=True)
    (repo.path / CONFIG_FILE).write_text("[storage]\nrequireEncrypted = true\n")
    with pytest.raises(SystemExit) as ended:
        main.run(["decisions", "record", "gov.py", "--title", "t", "--rationale", "r"])
    assert ended.value.code == 4
    assert SAID in capsys.readouterr().err
    assert [path.name for path in (repo.path / CONFIG_FILE).parent.iterdir()] == ["config.toml"]


def test_where_it_is_encrypted_nothing_changes_and_the_setting_can_come_and_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, kept = Repo(tmp_path / "repo"), {"is_encrypted": True}
    for name, value in private_env(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    # The disk of this machine is what it is; how it is told is tested with the reading of /sys.
    monkeypatch.setattr(store_folder, "protection_of", lambda _folder: Protection(kept["is_encrypted"], "a test disk"))
    demanding = Settings(storage=StorageSettings(require_encrypted=True))
    with open_desk(repo.path, demanding) as desk:
        identity = desk.record(PARAMS, Cancellation(), CLI).decision.row.id
    kept["is_encrypted"] = False
    with open_desk(repo.path, demanding) as desk:
        with pytest.raises(StoreProblem, match=r"lies on a test disk\.") as refusal:
            desk.list(ListParams(), Cancellation(), CLI)
        assert refusal.value.reason == "unencrypted"
        desk.tree.configure(git="git", revival=False, require_encrypted=False)
        assert [row.id for row in desk.list(ListParams(), Cancellation(), CLI).decisions] == [identity]
        desk.tree.configure(git="git", revival=False, require_encrypted=True)
        with pytest.raises(StoreProblem, match=r"lies on a test disk\."):
            desk.record(PARAMS, Cancellation(), CLI)
    with open_desk(repo.path, Settings()) as desk:
        assert len(desk.list(ListParams(), Cancellation(), CLI).decisions) == 1
