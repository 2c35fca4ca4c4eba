"""The records of a batch that a producer is filling, encoded as they arrive.

A producer could keep records as objects and encode them when it sends the batch. HMB's producer encodes each record at
once, for two reasons:

- Encoded records take a tenth of the memory of objects. A limit on their bytes is then a limit on the producer's
  memory.
- The application's thread encodes the records. If the sender thread encoded them, it would delay the batches of all
  partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.records.fast.value_runs import ValueRun, encode_run_messages, encode_values
from hmb.records.record import Header, append_record


class RecordsBuilder:
    """The uncompressed records of one batch, with the offset deltas 0, 1, 2 and so on."""

    __slots__ = ("base_timestamp", "count", "data", "max_timestamp", "runs")

    def __init__(self) -> None:
        self.data = bytearray()
        self.count = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.runs: list[ValueRun] = []

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...] = ()) -> None:
        """Append one record. `timestamp` is in ms since 1970, or -1 for none."""
        count = self.count
        if not count:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        append_record(self.data, timestamp - self.base_timestamp, count, key, value, headers)
        self.count = count + 1

    def append_values(self, timestamp: int, values: Sequence[bytes]) -> None:
        """Append a record for each value, all with one timestamp (ms), without keys and headers."""
        if not self.count:
            self.base_timestamp = timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        number = len(values)
        encoded, runs = encode_values(values, self.count, timestamp, self.base_timestamp, len(self.data))
        count = self.count + number
        # None of the following lines calls a function, so Ctrl-C cannot interrupt between them. Otherwise `data` could
        # contain a record that `count` does not include.
        self.data += encoded
        self.runs += runs
        self.count = count

    def message_set(self, magic: int) -> bytes | None:
        """Return the records as uncompressed messages of magic 0 or 1.

        Return None if a record is not part of a run (see `fast.value_runs`).
        """
        if sum(run.records for run in self.runs) != self.count:
            return None
        return encode_run_messages(self.data, self.runs, magic)
