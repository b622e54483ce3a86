"""The bus and the file between processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nm_lsp.events import file as event_file
from nm_lsp.events.bus import Event, EventBus
from nm_lsp.events.file import FILE, EventTail, EventWriter, event_of, line_of


def clock() -> float:
    return 1_800_000_000.0


def test_without_a_listener_nothing_is_made() -> None:
    def fail() -> dict[str, object]:
        raise AssertionError

    EventBus(clock).publish("query", fail)


def test_a_listener_that_fails_silences_nobody(caplog: pytest.LogCaptureFixture) -> None:
    bus = EventBus(clock)
    heard: list[str] = []

    def fail(event: Event) -> None:
        raise ZeroDivisionError

    bus.subscribe(fail)
    stop = bus.subscribe(lambda event: heard.append(event.kind))
    bus.publish("synapse", dict)
    stop()
    bus.publish("query", dict)
    assert heard == ["synapse"]
    assert bus.n_failed == 2


def test_what_one_process_publishes_another_hears_once(tmp_path: Path) -> None:
    here, there = EventBus(clock), EventBus(clock)
    tail = EventTail(tmp_path, there)
    own = EventTail(tmp_path, here)
    heard: list[Event] = []
    there.subscribe(heard.append)
    writer = EventWriter(tmp_path, here)
    own_heard: list[Event] = []
    here.publish("synapse", lambda: {"pairs": 3})
    writer.close()
    here.subscribe(own_heard.append)
    own.poll()
    tail.poll()
    tail.poll()
    with (tmp_path / FILE).open("ab") as file:
        file.write((tmp_path / FILE).read_bytes())
    tail.poll()
    assert [(event.kind, event.data) for event in heard] == [("synapse", {"pairs": 3})]
    assert own_heard == []


def test_a_republished_event_is_not_written_again(tmp_path: Path) -> None:
    bus = EventBus(clock)
    writer = EventWriter(tmp_path, bus)
    bus.emit(Event("other-1", 1.0, "synapse", {}))
    writer.close()
    assert not (tmp_path / FILE).exists()


def test_damaged_lines_cost_only_themselves(tmp_path: Path) -> None:
    bus = EventBus(clock)
    tail = EventTail(tmp_path, bus)
    heard: list[str] = []
    bus.subscribe(lambda event: heard.append(event.id))
    good = [line_of(Event(f"x-{n}", 1.0, "query", {})) for n in range(3)]
    bad = [
        b"{\n",
        b"[]\n",
        b'{"id": 1}\n',
        b"\xff\xfe\n",
        b"\n",
        b'{"id":"a","at":"b","kind":"c","data":{}}\n',
        b"[" * 9999,
    ]
    (tmp_path / FILE).write_bytes(good[0] + b"".join(bad) + b"\n" + good[1].replace(b"\n", b"\r\n") + good[2][:-5])
    tail.poll()
    assert heard == ["x-0", "x-1"]
    assert tail.n_damaged == 6
    with (tmp_path / FILE).open("ab") as file:
        file.write(good[2][-5:])
    tail.poll()
    assert heard == ["x-0", "x-1", "x-2"]


def test_the_file_rolls_and_the_reader_follows(tmp_path: Path) -> None:
    here, there = EventBus(clock), EventBus(clock)
    tail = EventTail(tmp_path, there)
    heard: list[object] = []
    there.subscribe(lambda event: heard.append(event.data["n"]))
    writer = EventWriter(tmp_path, here, max_bytes=200)
    for n in range(10):
        writer.write([Event(f"{here.origin}-{n}", 1.0, "synapse", {"n": n})])
        tail.poll()
    writer.close()
    assert heard == list(range(10))
    assert (tmp_path / FILE).stat().st_size <= 300
    assert (tmp_path / f"{FILE}.1").exists()


def test_what_cannot_be_written_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = EventBus(clock)
    writer = EventWriter(tmp_path / "missing", bus)
    bus.publish("query", dict)
    writer.close()
    assert writer.n_dropped == 1
    monkeypatch.setattr(event_file, "MAX_WAITING", 0)
    writer = EventWriter(tmp_path, bus)
    bus.publish("query", dict)
    writer.close()
    assert writer.n_dropped == 1


def test_a_line_is_an_event() -> None:
    event = Event("a-1", 12.5, "synapse", {"pairs": [["a", "b", 0.3]], "text": "ümlaut\n"})
    assert event_of(line_of(event)) == event
    assert line_of(event).count(b"\n") == 1
