"""Tests of the counts of delivered records, and of the line that caused a failure."""

import threading

import pytest

from hmb.cli.records.tally import Chunk, Tally
from hmb.protocol.errors import ErrorCode, KafkaError


def chunk(*lines: int, source: str = "standard input") -> Chunk:
    return Chunk(source, lines, [b"x"] * len(lines))


def test_counts_and_places() -> None:
    tally = Tally(lambda: None)
    first, second, third = chunk(1, 2), chunk(3, 4, 5), chunk(6, source="file")
    for each in (first, second, third):
        tally.begin(each)
    assert tally.oldest == "standard input, line 1"
    tally.finish(first)
    assert (tally.delivered, tally.oldest) == (2, "standard input, line 3")
    assert tally.missing == "; 4 not acknowledged, from line 3 on: the broker may have written them"
    tally.finish(second, [1, 2], 2, KafkaError(ErrorCode.INVALID_RECORD, "no"))
    assert (tally.delivered, tally.missing) == (
        3,
        "; 2 not sent, from line 4 on; 1 not acknowledged, from file, line 6 on: the broker may have written them",
    )
    tally.finish(third)
    assert (tally.delivered, tally.missing) == (4, "; 2 not sent, from line 4 on")
    with pytest.raises(KafkaError, match="standard input, line 5: no"):
        tally.raise_error()


def test_the_command_waits_for_the_error_of_the_refused_line() -> None:
    """`hmb produce` waits until it knows which line is invalid, and then names this line.

    One batch contains the lines 1 to 4. Line 4 is invalid, so the broker refuses the whole batch. The error of lines 1
    and 2 may arrive before the error of lines 3 and 4. Only the later error names line 4.
    """
    calls: list[None] = []
    tally = Tally(lambda: calls.append(None))
    first, second = chunk(1, 2), chunk(3, 4)
    tally.begin(first)
    tally.begin(second)
    tally.finish(first, [0, 1], 0, KafkaError(ErrorCode.INVALID_RECORD, "together"), caused_elsewhere=True)
    later = threading.Thread(
        target=tally.finish, args=(second, [0, 1], 1, KafkaError(ErrorCode.INVALID_RECORD, "invalid"))
    )
    later.start()
    with pytest.raises(KafkaError, match="line 4: invalid"):
        tally.raise_error()
    later.join()
    assert len(calls) == 1


def test_a_refused_line_that_is_never_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.cli.records.tally.CAUSE_TIMEOUT", 0.0)
    tally = Tally(lambda: None)
    only = chunk(7)
    tally.begin(only)
    tally.finish(only, [0], 0, KafkaError(ErrorCode.INVALID_RECORD, "together"), caused_elsewhere=True)
    with pytest.raises(KafkaError, match="line 7: together"):
        tally.raise_error()


def test_records_that_the_log_may_contain_are_not_reported_as_lost() -> None:
    """The command does not report records as lost if the log may contain them.

    Otherwise a user would send these records twice.
    """
    tally = Tally(lambda: None)
    refused, late, under_way = chunk(1, 2), chunk(3, 4, 5), chunk(6)
    for each in (refused, late, under_way):
        tally.begin(each)
    tally.finish(refused, [1], 1, KafkaError(ErrorCode.INVALID_RECORD, "no"))
    tally.finish(late, [1, 2], 1, TimeoutError("not all was delivered within 1 s"))
    lost = "; 1 not sent, from line 2 on; 3 not acknowledged, from line 4 on: the broker may have written them"
    assert (tally.delivered, tally.missing) == (2, lost)
