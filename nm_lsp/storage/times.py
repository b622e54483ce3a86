"""Unix times as text: for records, and for names of files. The clock itself is the caller's."""

from __future__ import annotations

from datetime import UTC, datetime

_LAST = 253_402_300_799.0  # 9999-12-31 23:59:59


def moment_of(now: float) -> datetime:
    """The time `now`. What a clock that was set wrong calls a time before 1970 or after 9999 is the nearest of these:
    no act is refused for it."""
    return datetime.fromtimestamp(min(max(now, 0.0), _LAST), UTC)


def utc_text(now: float) -> str:
    """`2026-01-31T12:00:00.000000Z`, the form of times in events and audit records."""
    return f"{moment_of(now):%Y-%m-%dT%H:%M:%S.%fZ}"


def file_time(now: float) -> str:
    """`20260131T120000Z`: sorts by time and is allowed in names everywhere."""
    return f"{moment_of(now):%Y%m%dT%H%M%SZ}"


def parse_file_time(text: str) -> float:
    """The Unix time of a `file_time`. Raises `ValueError`."""
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
