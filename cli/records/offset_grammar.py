"""The option `-o`: where to start and where to stop, in the notations of rpk, kcat and Kafka's tools.

The option `-o` has these forms:
    start          from the oldest record
    end            only records that are written from now on
    12             from offset 12
    +12            from 12 offsets after the oldest record
    -12            from 12 offsets before the end of the log
    12:40          the offsets 12 to 39, or fewer if the log ends earlier
    :40            all offsets up to 39, or fewer if the log ends earlier
    12:end         from offset 12 to the end that the log has when the command starts
    :end           from the oldest record to the end that the log has when the command starts
    @T             from the time T, which is written as in `shared/times.py`
    @T1:T2         from the time T1 until the time T2; T2 can also be `end`
    @:T            from the oldest record until the time T
    s@T            kcat's notation for a start: from the time T; a number without a unit is in ms
    e@T            kcat's notation for an end: until the time T; for example, `-o s@T1 -o e@T2`
    stored         from the committed offset of the group (-G); in a group, this is the default

In the option `-o`, the words beginning, earliest and oldest mean the same as `start`. The words latest and newest mean
the same as `end`.

In the option `-o` (`@T` or `@T1:T2`), a time can be a duration. The command adds the duration to another time:
- T or T1 is a duration: the command adds it to the present time. `@-1h` starts one hour ago.
- Only T2 is a duration: the command adds it to T1. `@2026-02-14:30m` is the first half hour of that day.
- Both T1 and T2 are durations: the command adds both to the present time. `@-2h:-1h` starts two hours ago, and
  ends one hour ago.

In `@T1:T2`, the times can contain colons too, for example 10:30:00. The first colon in the text is therefore
not always the colon between T1 and T2, and the program cannot split the text there. Instead, one regular
expression matches the whole text, and finds the right colon.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hmb.protocol.enums import INT64_MAX
from hmb.units import is_duration, now_ms

from ..shared.times import TIME, in_range, parse_time

if TYPE_CHECKING:
    from hmb.client.offsets import AtTime, Offset, Until

STARTS = ("start", "beginning", "earliest", "oldest")
ENDS = ("end", "latest", "newest")
STORED = "stored"

TIMES = re.compile(rf"@(?P<start>{TIME})?(?P<colon>:(?P<until>{TIME}|end)?)?", re.ASCII)
OFFSETS = re.compile(r"(?P<start>[+-]?\d+|[a-z]+)?(?P<colon>:(?P<until>\d+|end)?)?", re.ASCII)


@dataclass(frozen=True)
class Span:
    """A range of offsets or times, including `start` but not `until`. None means that no limit is set."""

    start: Offset | None = None
    until: Until = None
    stored: bool = False  # Whether to start at the committed offset of the group.


def parse_span(text: str) -> Span:
    """Return the range of offsets or times that a value of the option -o describes, for example `12:40`.

    Raises click.BadParameter if the text is not a valid value.
    """
    try:
        if text[:2] in ("s@", "e@"):
            return Span(start=_kcat_time(text[2:])) if text[0] == "s" else Span(until=_kcat_time(text[2:]))
        if match := TIMES.fullmatch(text):
            return _times(match["start"], match["until"])
        if (match := OFFSETS.fullmatch(text)) and text not in ("", ":"):
            return _offsets(match["start"], match["until"], bool(match["colon"]))
    except ValueError as error:
        raise click.BadParameter(f"{text!r}: {error}") from None
    raise click.BadParameter(
        f"{text!r} has none of these forms: start, end, stored, OFFSET, +N, -N, FROM:TO, @TIME, @TIME:TIME, "
        "s@TIME, e@TIME; `hmb consume --help` explains the forms"
    )


def merge(spans: tuple[Span, ...]) -> Span:
    """Combine the values of all options -o into one range.

    A value can contain the start of the range, the end, or both. Raises click.UsageError if several values contain
    a start, or if several values contain an end.
    """
    merged = Span()
    for span in spans:
        if (merged.start is not None or merged.stored) and (span.start is not None or span.stored):
            raise click.UsageError("two -o options set a start; remove one of them")
        if merged.until is not None and span.until is not None:
            raise click.UsageError("two -o options set an end; remove one of them")
        start = merged.start if span.start is None else span.start
        until = merged.until if span.until is None else span.until
        merged = Span(start, until, merged.stored or span.stored)
    return merged


def _offsets(start: str | None, until: str | None, colon: bool) -> Span:
    if start == STORED:
        return Span(stored=True, until=_until(until))
    first = _start(start) if start is not None else "earliest"
    stop = _until(until)
    if isinstance(first, int) and isinstance(stop, int) and first >= 0 and stop <= first:
        raise ValueError(f"the end offset {stop} must be greater than the start offset {first}")
    if first == "latest" and colon:
        raise ValueError("no records come after the end")
    return Span(first, stop)


def _start(text: str) -> Offset:
    from hmb.client.offsets import FromStart

    if text in STARTS:
        return "earliest"
    if text in ENDS:
        return "latest"
    number = _int64(text)
    if text.startswith("+"):
        return FromStart(number)
    return "latest" if text == "-0" else number


def _until(text: str | None) -> Until:
    if text is None:
        return None
    return "end" if text == "end" else _int64(text)


def _int64(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("the value must begin with start, end, stored or a number") from None
    if abs(number) > INT64_MAX:
        raise ValueError(f"the number {text} does not fit into an offset (64 bits)")
    return number


def _times(start: str | None, until: str | None) -> Span:
    from hmb.client.offsets import AtTime

    now = now_ms()
    if start is None:
        if until is None:
            raise ValueError("a time is missing after the @")
        return Span("earliest", "end" if until == "end" else AtTime(parse_time(until, now)))
    first = parse_time(start, now)
    if until is None or until == "end":
        return Span(AtTime(first), None if until is None else "end")
    stop = parse_time(until, now if is_duration(start) else first)
    if stop <= first:
        raise ValueError("the end time must be later than the start time")
    return Span(AtTime(first), AtTime(stop))


def _kcat_time(text: str) -> AtTime:
    from hmb.client.offsets import AtTime

    if text.isascii() and text.isdigit():
        return AtTime(in_range(int(text)))
    if not re.fullmatch(TIME, text, re.ASCII):
        raise ValueError("a time must follow the @")
    return AtTime(parse_time(text, now_ms()))
