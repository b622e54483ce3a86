"""Unix times as text: for records, and for names of files. The clock itself is the caller's."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_text(now: float) -> str:
    """`2026-01-31T12:00:00.000000Z`, the form of times in events and audit records."""
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def file_time(now: float) -> str:
    """`20260131T120000Z`: sorts by time and is allowed in names everywhere."""
    return f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}"


def parse_file_time(text: str) -> float:
    """The Unix time of a `file_time`. Raises `ValueError`."""
    return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
