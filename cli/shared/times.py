"""Read and print times and durations, in the same way for all commands.

The user writes a time in one of these forms:
    2026-02-14   2026-02-14T10:30:00   2026-02-14T10:30:00Z   2026-02-14T10:30:00+02:00
    1771065000                  seconds since 1970: up to 10 digits
    1771065000000               milliseconds since 1970: more digits
    -1h30m                      a duration before now

A time without a time zone is UTC. A duration consists of one or several numbers, each with a unit: `500ms`,
`90s`, `1h30m`, `7d`, `2w`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from hmb.protocol.enums import INT64_MAX
from hmb.units import DURATION, is_duration, now_ms, parse_duration

DATE = r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?"
TIME = rf"\d+|{DATE}|{DURATION}"
SECONDS_DIGITS = 10  # A number with more digits is in milliseconds.


def moment(text: str) -> int:
    """Parse the time in the value of an option. Return ms since 1970. Raises click.BadParameter."""
    try:
        if re.fullmatch(TIME, text, re.ASCII):
            return parse_time(text, now_ms())
        problem = "it is not a time"
    except ValueError as error:
        problem = str(error)
    hint = "write 2026-02-14T10:30:00Z, seconds or milliseconds since 1970, or -1h30m for a time before now"
    raise click.BadParameter(f"{text!r}: {problem}; {hint}")


def parse_time(text: str, base: int) -> int:
    """Convert a text that matches TIME to a time in ms since 1970. Raises ValueError.

    If the text is a duration, the result is the time `base` (ms since 1970) plus this duration.
    """
    if text.isdigit():
        return in_range(int(text) * (1000 if len(text) <= SECONDS_DIGITS else 1))
    if is_duration(text):
        return in_range(base + parse_duration(text))
    try:
        date = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f"{text} is not a date: {error}") from None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return in_range((date - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))


def in_range(milliseconds: int) -> int:
    """Return `milliseconds`, or 0 for a time before 1970.

    Raises ValueError if the time is too late for the 64 bits of a record's timestamp.
    """
    if milliseconds > INT64_MAX:
        raise ValueError("the time is too far in the future for a record")
    return max(milliseconds, 0)


def format_duration(milliseconds: int | None) -> str | None:
    """Return a duration (ms) as text with at most two units: `2d3h`, `4m5s`, `0.2s`. Return None for None."""
    if milliseconds is None:
        return None
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f}s" if milliseconds else "0s"
    seconds = milliseconds // 1000
    for unit, size, smaller_unit, smaller in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            return f"{seconds // size}{unit}{seconds % size // smaller}{smaller_unit}"
    raise AssertionError(milliseconds)
