"""The records of a batch in the making: encoded one by one, as a producer gets them.

A producer could keep its records as objects and encode them all when their batch goes. It encodes them at once instead:
bytes take a tenth of the objects' memory, so that a bound on them bounds what is really held, and the work is done in
the thread that sends and not in the one that talks to a broker, where it would hold up all others.

Many values that come together share a timestamp, have neither key nor headers, and few different lengths. Of such a
record everything but the offset delta and the value follows from the value's length (for the layout see `record`), so
`append_values` makes one template for all values of a length and fills it in, in half of the time that `append` takes.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from hmb.records.record import Header, append_record
from hmb.records.varint import VARINTS


class RecordsBuilder:
    """Records that get the offsets 0, 1, 2 ... of their batch, uncompressed."""

    __slots__ = ("base_timestamp", "count", "data", "max_timestamp")

    def __init__(self) -> None:
        self.data = bytearray()
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1

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
        done = 0
        for run in _runs_of_equal_width(self.count, len(values)):
            piece = values[done : done + len(run)]
            lengths = list(map(len, piece))
            templates = {length: _template(length, timestamp_delta, len(VARINTS[run[0]])) for length in set(lengths)}
            deltas = map(VARINTS.__getitem__, run)
            records += [templates[it] % (delta, value) for it, delta, value in zip(lengths, deltas, piece, strict=True)]
            done += len(run)
        encoded, count = b"".join(records), self.count + done
        self.data += encoded  # without a call from here on, so that Ctrl-C cannot leave records that are not counted
        self.count = count


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
