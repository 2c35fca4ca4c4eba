"""The records of a batch in the making: encoded one by one, as a producer gets them.

A producer could keep its records as objects and encode them all when their batch goes. It encodes them at once instead:
bytes take a tenth of the objects' memory, so that a bound on them bounds what is really held, and the work is done in
the thread that sends and not in the one that talks to a broker, where it would hold up all others.

Many values that come together share a timestamp, have neither key nor headers, and few different lengths. Of such a
record everything but the offset delta and the value follows from the value's length (for the layout see `record`), so
`append_values` makes one template for all values of a length and fills it in, in half of the time that `append` takes.

A broker before Kafka 0.11 gets messages instead, made from these records (`message_set`). Runs of values of one length
are noted, so that they can be found again without reading every record.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from hmb.records.message import encode_messages
from hmb.records.record import Header, append_record
from hmb.records.varint import VARINTS


class Run(NamedTuple):
    """Records in a row that have the same timestamp and values of one length, and nothing else."""

    start: int  # in the data
    records: int
    size: int  # of a record
    value_size: int
    timestamp: int


class RecordsBuilder:
    """Records that get the offsets 0, 1, 2 ... of their batch, uncompressed."""

    __slots__ = ("base_timestamp", "count", "data", "max_timestamp", "runs")

    def __init__(self) -> None:
        self.data = bytearray()
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.runs: list[Run] = []

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...] = ()) -> None:
        """One record more; `timestamp` in ms since 1970, or -1."""
        count = self.count
        if not count:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        append_record(self.data, timestamp - self.base_timestamp, count, key, value, headers)
        self.count = count + 1

    def append_values(self, timestamp: int, values: Sequence[bytes]) -> None:
        """Records of one timestamp with neither key nor headers."""
        if not self.count:
            self.base_timestamp = timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        timestamp_delta = VARINTS[timestamp - self.base_timestamp]
        records: list[bytes] = []
        runs: list[Run] = []
        done, start = 0, len(self.data)
        for run in _runs_of_equal_width(self.count, len(values)):
            piece = values[done : done + len(run)]
            lengths = list(map(len, piece))
            templates = {length: _template(length, timestamp_delta, len(VARINTS[run[0]])) for length in set(lengths)}
            deltas = map(VARINTS.__getitem__, run)
            records += [templates[it] % (delta, value) for it, delta, value in zip(lengths, deltas, piece, strict=True)]
            if len(templates) == 1:  # else there is no short way, wherever the next ones start
                runs.append(Run(start, len(run), len(records[-1]), lengths[0], timestamp))
                start += len(run) * len(records[-1])
            done += len(run)
        encoded, count = b"".join(records), self.count + done
        self.data += encoded  # without a call from here on, so that Ctrl-C cannot leave records that are not counted
        self.runs += runs
        self.count = count

    def message_set(self, magic: int) -> bytes | None:
        """The records as plain messages (0, 1), if all of them stand in runs."""
        if sum(run.records for run in self.runs) != self.count:
            return None
        messages: list[bytes] = []
        for run in self.runs:
            value_of_each = Struct(f"{run.size - run.value_size - 1}x{run.value_size}sx")  # the last byte: no headers
            values = value_of_each.iter_unpack(memoryview(self.data)[run.start : run.start + run.records * run.size])
            messages += encode_messages(len(messages), magic, run.timestamp, values, run.value_size)
        return b"".join(messages)


@lru_cache(maxsize=1024)
def _template(value_length: int, timestamp_delta: bytes, offset_delta_size: int) -> bytes:
    """A record with %b where its offset delta and its value go."""
    attributes, no_key, no_headers = b"\x00", VARINTS[-1], VARINTS[0]
    value_size = VARINTS[value_length]
    size = 1 + len(timestamp_delta) + offset_delta_size + 1 + len(value_size) + value_length + 1
    before, between = VARINTS[size] + attributes + timestamp_delta, no_key + value_size
    return b"%b".join((before.replace(b"%", b"%%"), between.replace(b"%", b"%%"), no_headers))


def _runs_of_equal_width(first: int, count: int) -> Iterator[range]:
    """Offset deltas from `first` on, split where their varints get longer."""
    end = first + count
    for limit in (1 << 6, 1 << 13, 1 << 20, 1 << 27, 1 << 31):
        if first < min(end, limit):
            yield range(first, min(end, limit))
            first = limit
