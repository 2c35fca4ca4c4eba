"""Counts the delivered and the lost records of `hmb produce`.

`hmb produce` sends records in chunks of one to several thousand records. A `Chunk` contains the line number of each
record. When a chunk is delivered, the `Tally` only increases a count. When a chunk fails, the `Tally` also stores
the number of lost records, and the line of the first lost record. At the end, the command prints these numbers. In this
example, two records are delivered, and line 3 is lost:
    2 records sent to weather in 0.3 s; 1 not sent, from line 3 on
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .line_formats import LineRecord


CAUSE_TIMEOUT = 1.0  # seconds; `raise_error` waits at most this long for the error that names the invalid record


@dataclass(slots=True, eq=False)
class Chunk:
    """Records of the input that are sent together, with one call of the producer.

    Each record has a position in the input, such as `standard input, line 3`. Error messages contain this position.
    """

    source: str  # "standard input", or the name of a file
    lines: Sequence[int] | None  # the line number of each record; None: the file is one record
    values: Sequence[bytes | None]
    records: Sequence[LineRecord] | None = None  # None: the records have only values

    def where(self, index: int) -> str:
        """Return the position of a record in the input, such as `standard input, line 3`."""
        return self.source if self.lines is None else f"{self.source}, line {self.lines[index]}"

    def __getitem__(self, indexes: slice) -> Chunk:
        lines, records = self.lines, self.records
        return Chunk(self.source, lines and lines[indexes], self.values[indexes], records and records[indexes])

    def __len__(self) -> int:
        return len(self.values)


class Tally:
    """Counts the delivered records and the lost records of all chunks.

    The tally calls the function `on_error` at most once, at the first failure among all chunks. This call can run
    in any thread.
    """

    def __init__(self, on_error: Callable[[], None]) -> None:
        self._on_error = on_error
        self._changed = threading.Condition()  # guards all fields below
        self._in_flight: dict[Chunk, None] = {}  # chunks without a result, in the order of sending
        # Each tuple is for one chunk: the position of its first refused record, and the number of its refused records.
        self._lost: list[tuple[str, int]] = []
        # After a timeout or a lost connection, the producer does not know whether the broker has written the records.
        # Each tuple is for one chunk: the position of its first uncertain record, and the number of its uncertain
        # records.
        self._uncertain: list[tuple[str, int]] = []
        self.delivered = 0
        self.error: BaseException | None = None
        self._caused_elsewhere = False

    def begin(self, chunk: Chunk) -> None:
        """Add a chunk that the caller is going to send."""
        with self._changed:
            self._in_flight[chunk] = None

    def finish(
        self,
        chunk: Chunk,
        lost: Sequence[int] = (),
        invalid: int = 0,
        error: BaseException | None = None,
        caused_elsewhere: bool = False,
    ) -> None:
        """Count the records of a chunk as delivered or lost.

        - `lost` contains the index of each lost record in the chunk. It is empty if no record is lost.
        - `error` is the error that the producer has reported for the chunk, or None.
        - `invalid` is the index of the record that the broker has reported as invalid. If the broker has reported no
          record, it is the index of one lost record. Without an error, `invalid` has no meaning.
        - `caused_elsewhere` is true if an invalid record of another chunk has caused the error.

        For example, a batch contains records of chunk A and of chunk B. A record of A is invalid, so the broker refuses
        the whole batch. For B, `caused_elsewhere` is true. The `Tally` keeps only the error of A, even if the caller
        reports B first.
        """
        with self._changed:
            del self._in_flight[chunk]
            self.delivered += len(chunk) - len(lost)
            if lost:
                counts = self._lost if error is None or _is_refusal(error) else self._uncertain
                counts.append((chunk.where(min(lost)), len(lost)))
            first = error is not None and self.error is None
            if error is not None and (first or (self._caused_elsewhere and not caused_elsewhere)):
                self.error, self._caused_elsewhere = with_position(chunk.where(invalid), error), caused_elsewhere
            self._changed.notify_all()
        if first:
            self._on_error()

    def wait(self) -> None:
        """Wait until the broker has acknowledged all records, or until a record is lost.

        The method has no timeout of its own. The wait always ends, because the producer reports an unacknowledged
        record as lost after the record's delivery timeout.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or not self._in_flight)

    def wait_for_the_rest(self, patience: float, at_most: float) -> None:
        """Wait until each chunk of records is delivered or has failed, but at most `at_most` seconds.

        Stop waiting earlier if nothing happens for `patience` seconds: no chunk is delivered, and no chunk fails.
        """
        deadline = time.monotonic() + at_most
        with self._changed:
            while self._in_flight and time.monotonic() < deadline:
                if not self._changed.wait(patience):
                    return

    def raise_error(self) -> None:
        """If a record was lost, raise the error that caused the loss.

        An invalid record of chunk A can also cause an error for chunk B, but only A's error names the record. If B
        fails before A, the method waits for A's error, at most CAUSE_TIMEOUT seconds.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._caused_elsewhere, CAUSE_TIMEOUT)
        if self.error is not None:
            raise self.error

    def pause(self, seconds: float) -> None:
        """Wait for `seconds`, or until a record is lost."""
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None, seconds)

    @property
    def oldest(self) -> str | None:
        """The position of the first record whose result is not known yet, or None if all results are known."""
        with self._changed:
            return next((chunk.where(0) for chunk in self._in_flight), None)

    @property
    def missing(self) -> str:
        """A text with the number of records that are lost or not acknowledged, such as "; 1 not sent, from line 3 on".

        The text is empty if all records are delivered.
        """
        with self._changed:
            in_flight = [(chunk.where(0), len(chunk)) for chunk in self._in_flight]
            unanswered = _sum([*self._uncertain, *in_flight], "not acknowledged")
            uncertain = f"{unanswered}: the broker may have written them" if unanswered else ""
            return _sum(self._lost, "not sent") + uncertain


def with_position(where: str, error: BaseException) -> BaseException:
    """Return a copy of a KafkaError whose message begins with the position of the record.

    Return other errors unchanged, because they are not about a record.
    """
    from hmb.protocol.errors import KafkaError

    return KafkaError(error.code, f"{where}: {error.message}") if isinstance(error, KafkaError) else error


def _sum(chunks: Sequence[tuple[str, int]], what: str) -> str:
    if not chunks:
        return ""
    first = min((where for where, _ in chunks), key=_line_number).removeprefix("standard input, ")
    return f"; {sum(count for _, count in chunks)} {what}, from {first} on"


def _is_refusal(error: BaseException) -> bool:
    """Return whether the error proves that the broker has not written the record.

    If the request timed out or the connection was lost, the broker may have written the record.
    """
    from hmb.protocol.errors import ErrorCode, KafkaError

    return isinstance(error, KafkaError) and error.code is not ErrorCode.REQUEST_TIMED_OUT


def _line_number(where: str) -> int:
    number = where.rpartition(", line ")[2]
    return int(number) if number.isdigit() else 0
