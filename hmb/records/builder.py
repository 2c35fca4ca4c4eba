"""Encodes the records of the batch that a producer is filling, one record after another.

A producer can encode each record immediately, or store Python objects and encode them when it sends the batch.
HMB's producer encodes each record immediately, for two reasons:
- An encoded record takes a tenth of the memory of a Python object. The producer also knows the number of
  encoded bytes, so it can limit its memory.
- The threads of the application encode the records. If the sender thread encoded them, it would take more time
  for each batch, and so delay all other batches.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.records.fast.value_runs import ValueRun, encode_run_messages, encode_values
from hmb.records.record import NO_TIMESTAMP, Header, append_record


class RecordsBuilder:
    """The encoded, uncompressed records of one batch. The records have the offset deltas 0, 1, 2 and so on."""

    __slots__ = ("base_timestamp", "count", "data", "max_timestamp", "runs")

    def __init__(self) -> None:
        self.data = bytearray()
        self.count = 0
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self.runs: list[ValueRun] = []

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...] = ()) -> None:
        """Encode and append one record. `timestamp` is in ms since 1970, or -1 if the record has no timestamp."""
        count = self.count
        if not count:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        append_record(self.data, timestamp - self.base_timestamp, count, key, value, headers)
        self.count = count + 1

    def append_values(self, timestamp: int, values: Sequence[bytes]) -> None:
        """Encode and append one record for each value.

        The records have the same timestamp (ms), and no keys or headers.
        """
        if not self.count:
            self.base_timestamp = timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        number = len(values)
        encoded, runs = encode_values(values, self.count, timestamp, self.base_timestamp, len(self.data))
        count = self.count + number
        # Python checks for Ctrl-C only at function calls and before a loop repeats. The next three lines contain
        # neither. So after Ctrl-C, `data`, `runs` and `count` still describe the same records.
        self.data += encoded
        self.runs += runs
        self.count = count

    def message_set(self, magic: int) -> bytes | None:
        """Return the records as uncompressed messages of magic 0 or 1, or None if a record is not in a *run*.

        A run is a sequence of records whose values have the same length. `message_set` can convert a run without
        decoding the records. Only `append_values` stores runs, so a record that `append` has added is in no run.
        """
        if sum(run.records for run in self.runs) != self.count:
            return None
        return encode_run_messages(self.data, self.runs, magic)
