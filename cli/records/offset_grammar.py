r"""`-o`: where to start, and where to stop, in the words of rpk, kcat and Kafka's tools.

    start end           the oldest record; what comes from now on (also beginning, earliest; latest)
    12  +12  -12        that offset; 12 after the oldest; 12 before the end
    12:40  12:  :40     from offset 12 on; up to 40, which is not printed any more, or to the end if that comes before
    12:end  :end        ... up to what is the end now
    @T  @T:T  @:T       from a time on; up to another; T is one of the times below, or `end` behind the colon
    s@T  e@T            kcat's start and end, each with a -o of its own; a bare number is milliseconds
    stored              where the group has committed that it is (-G); what `-o` is without an option, in a group

Times are 2026-02-14, 2026-02-14T10:30:00Z (UTC unless they say otherwise), seconds since 1970 (up to 10 digits) or
milliseconds, and durations as -1h30m, which count from now; behind a colon, from the first time if that is no duration.

A time's colons are not in the way of the one in the middle: the whole is one regular expression.
"""

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hmb.client.offsets import AtTime, Offset, Until

STARTS = ("start", "beginning", "earliest", "oldest")
ENDS = ("end", "latest", "newest")
STORED = "stored"

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
DURATION = r"-?(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+"
DATE = r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]|[+-]\d\d:?\d\d)?)?"
TIME = rf"\d+|{DATE}|{DURATION}"
TIMES = re.compile(rf"@(?P<start>{TIME})?(?P<colon>:(?P<until>{TIME}|end)?)?", re.ASCII)
OFFSETS = re.compile(r"(?P<start>[+-]?\d+|[a-z]+)?(?P<colon>:(?P<until>\d+|end)?)?", re.ASCII)
MAX_INT64 = 2**63 - 1


@dataclass(frozen=True)
class Span:
    """Where to start and where to stop; None where nothing was said."""

    start: "Offset | None" = None
    until: "Until" = None
    stored: bool = False


def parse_span(text: str) -> Span:
    """The type of an option."""
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
        f"{text!r} is none of: start, end, an offset, +N, -N (N before the end), FROM:TO, @TIME, @TIME:TIME, "
        "s@TIME, e@TIME, stored; `hmb consume --help` explains them"
    )


def merge(spans: "tuple[Span, ...]") -> Span:
    """What several -o say together: one where to start, the other where to stop."""
    merged = Span()
    for span in spans:
        if (merged.start is not None or merged.stored) and (span.start is not None or span.stored):
            raise click.UsageError("two -o say where to start; one of them has to go")
        if merged.until is not None and span.until is not None:
            raise click.UsageError("two -o say where to stop; one of them has to go")
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
        raise ValueError(f"it stops at {stop}, before it starts")
    if first == "latest" and colon:
        raise ValueError("nothing comes after the end")
    return Span(first, stop)


def _start(text: str) -> "Offset":
    from hmb.client.offsets import FromStart

    if text in STARTS:
        return "earliest"
    if text in ENDS:
        return "latest"
    number = _int64(text)
    if text.startswith("+"):
        return FromStart(number)
    return "latest" if text == "-0" else number


def _until(text: str | None) -> "Until":
    if text is None:
        return None
    return "end" if text == "end" else _int64(text)


def _int64(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("it starts with neither start, end, stored nor a number") from None
    if abs(number) > MAX_INT64:
        raise ValueError(f"{text} does not fit into an offset")
    return number


def _times(start: str | None, until: str | None) -> Span:
    from hmb.client.offsets import AtTime

    now = time.time_ns() // 1_000_000
    if start is None:
        if until is None:
            raise ValueError("a time is missing after the @")
        return Span("earliest", "end" if until == "end" else AtTime(_time(until, now)))
    first = _time(start, now)
    if until is None or until == "end":
        return Span(AtTime(first), None if until is None else "end")
    stop = _time(until, now if _is_duration(start) else first)
    if stop <= first:
        raise ValueError("it stops before it starts")
    return Span(AtTime(first), AtTime(stop))


def _kcat_time(text: str) -> "AtTime":
    from hmb.client.offsets import AtTime

    if text.isascii() and text.isdigit():
        return AtTime(_int64(text))
    if not re.fullmatch(TIME, text, re.ASCII):
        raise ValueError("what follows the @ is no time")
    return AtTime(_time(text, time.time_ns() // 1_000_000))


def _is_duration(text: str) -> bool:
    return re.fullmatch(DURATION, text, re.ASCII) is not None


def _time(text: str, base: int) -> int:
    """Milliseconds since 1970; a duration is added to `base`."""
    if text.isdigit():
        return _moment(int(text) * (1000 if len(text) <= 10 else 1))
    if _is_duration(text):
        parts = re.findall(r"([\d.]+)(ms|[smhdw])", text)
        duration = sum(float(number) * UNITS[unit] for number, unit in parts)
        return _moment(base + (-duration if text.startswith("-") else duration))
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f"{text} is no date: {error}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _moment((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))


def _moment(milliseconds: float) -> int:
    if milliseconds > MAX_INT64:
        raise ValueError("no record is that far in the future")
    return max(int(milliseconds), 0)


def moment(text: str) -> int:
    """The type of an option: a time as above, in ms since 1970."""
    try:
        if re.fullmatch(TIME, text, re.ASCII):
            return _time(text, time.time_ns() // 1_000_000)
        problem = "it is no time"
    except ValueError as error:
        problem = str(error)
    hint = "write 2026-02-14T10:30:00Z, seconds or milliseconds since 1970, or -1h30m for so long ago"
    raise click.BadParameter(f"{text!r}: {problem}; {hint}")
