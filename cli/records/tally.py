"""What has arrived and what has not: `hmb produce` counts what the broker acknowledged, record by record.

Records go off in portions, thousands at a time where the input has them. A portion that arrived whole is forgotten at
once; of one that did not, the places of its lost records stay.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .line_formats import Record

BLAME_TIMEOUT = 1.0  # seconds


@dataclass(slots=True, eq=False)
class Portion:
    """Records that are sent together, and where each stands in the input."""

    source: str  # standard input, or the name of a file
    lines: Sequence[int] | None  # the number of each record's line; None: the file is one record
    values: Sequence[bytes | None]
    records: Sequence[Record] | None = None  # where there is more to them than the value

    def where(self, row: int) -> str:
        """The place of a record, for a message."""
        return self.source if self.lines is None else f"{self.source}, line {self.lines[row]}"

    def __getitem__(self, rows: slice) -> "Portion":
        lines, records = self.lines, self.records
        return Portion(self.source, lines and lines[rows], self.values[rows], records and records[rows])

    def __len__(self) -> int:
        return len(self.values)


class Tally:
    """Counts; `on_error` is called at the first record that will not arrive, in whichever thread that is."""

    def __init__(self, on_error: Callable[[], None]) -> None:
        self._on_error = on_error
        self._settled = threading.Condition()  # guards all below
        self._under_way: dict[Portion, None] = {}  # in order
        self._lost: list[tuple[str, int]] = []  # the place of the first of some, and how many
        self._unanswered: list[tuple[str, int]] = []  # likewise, of those that the broker may have written
        self.delivered = 0
        self.error: BaseException | None = None
        self._is_collateral = False

    def begin(self, portion: Portion) -> None:
        """It is being sent."""
        with self._settled:
            self._under_way[portion] = None

    def settle(
        self,
        portion: Portion,
        lost: Sequence[int] = (),
        guilty: int = 0,
        error: BaseException | None = None,
        is_collateral: bool = False,
    ) -> None:
        """What became of it: which rows are lost, which of them is to blame, and why.

        If it is collateral damage of another portion, which shared a batch with it, that one's error will follow.
        """
        with self._settled:
            del self._under_way[portion]
            self.delivered += len(portion) - len(lost)
            if lost:
                fate = self._lost if error is None or _is_answer(error) else self._unanswered
                fate.append((portion.where(min(lost)), len(lost)))
            first = error is not None and self.error is None
            if error is not None and (first or (self._is_collateral and not is_collateral)):
                self.error, self._is_collateral = of_place(portion.where(guilty), error), is_collateral
            self._settled.notify_all()
        if first:
            self._on_error()

    def wait(self) -> None:
        """Until all has arrived, or something will not."""
        with self._settled:
            self._settled.wait_for(lambda: self.error is not None or not self._under_way)

    def wait_for_the_rest(self, patience: float, at_most: float) -> None:
        """Until all is settled, as long as something is every `patience` seconds."""
        deadline = time.monotonic() + at_most
        with self._settled:
            while self._under_way and time.monotonic() < deadline:
                if not self._settled.wait(patience):
                    return

    def raise_error(self) -> None:
        """If something did not arrive; the error of the record that is to blame, if that is told soon."""
        with self._settled:
            self._settled.wait_for(lambda: not self._is_collateral, BLAME_TIMEOUT)
        if self.error is not None:
            raise self.error

    def pause(self, seconds: float) -> None:
        """Wait for so long, or until there is an error."""
        with self._settled:
            self._settled.wait_for(lambda: self.error is not None, seconds)

    @property
    def oldest(self) -> str | None:
        """The place of the first record that is under way."""
        with self._settled:
            return next((portion.where(0) for portion in self._under_way), None)

    @property
    def missing(self) -> str:
        """How many have not arrived, or perhaps not, and from where on; empty if all have."""
        with self._settled:
            under_way = [(portion.where(0), len(portion)) for portion in self._under_way]
            unanswered = _sum([*self._unanswered, *under_way], "not acknowledged")
            return _sum(self._lost, "not") + (f"{unanswered}: they may be there or not" if unanswered else "")


def _sum(some: Sequence[tuple[str, int]], what: str) -> str:
    if not some:
        return ""
    first = min((where for where, _ in some), key=_line_number).removeprefix("standard input, ")
    return f"; {sum(count for _, count in some)} {what}, from {first} on"


def _is_answer(error: BaseException) -> bool:
    """Whether the broker, or the producer itself, has refused a record; else it may have been written."""
    from hmb.protocol.errors import ErrorCode, KafkaError

    return isinstance(error, KafkaError) and error.code is not ErrorCode.REQUEST_TIMED_OUT


def _line_number(where: str) -> int:
    number = where.rpartition(", line ")[2]
    return int(number) if number.isdigit() else 0


def of_place(where: str, error: BaseException) -> BaseException:
    """What is wrong with a record, with its place; a broker that is not there is no record's fault."""
    from hmb.protocol.errors import KafkaError

    return KafkaError(error.code, f"{where}: {error.message}") if isinstance(error, KafkaError) else error
