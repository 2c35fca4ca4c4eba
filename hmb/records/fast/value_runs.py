"""Encodes many values as records in one step, and converts such records to messages (v0 or v1).

The records of one `append_values` call have the same timestamp, and no keys or headers. So records with values of the
same length differ only in the offset delta and the value. All their other bytes are the same, and are computed only
once, as a *template*.

A template is an encoded record (`hmb.records.record` describes its layout) with two placeholders `%b`: one for
the offset delta, and one for the value. Numbers are varints: the byte 0x12 means 9, and 0x06 means 3. This
template is for values of 3 bytes:
    12 00 00 %b 01 06 %b 00  length 9, attributes, timestamp delta, %b, no key, value size 3, %b, no headers

A *run* is a sequence of records whose values have the same length. The producer stores where each run begins,
how many bytes each record has, and how long each value is. It can then find the values without decoding the
records.

Brokers older than Kafka 0.11 do not support record batches. For such a broker, the producer converts the runs to
messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from hmb.records.legacy.message import encode_messages
from hmb.records.varint import VARINTS


class ValueRun(NamedTuple):
    """Consecutive records with the same timestamp, and with values of the same length.

    The records have no keys and no headers.
    """

    start: int  # the position of the first record among the encoded records
    records: int  # the number of records
    size: int  # bytes of each record
    value_size: int
    timestamp: int


def encode_values(
    values: Sequence[bytes], first: int, timestamp: int, base_timestamp: int, start: int
) -> tuple[bytes, list[ValueRun]]:
    """Encode one record for each value. Return the bytes of the records, and a list of runs.

    The number `first` is the offset delta of the first record. The caller appends the returned bytes to a
    buffer that already contains `start` bytes.

    A run is a sequence of records of the same size, with values of the same length. A run contains the buffer
    position of its first record.

    If values have different lengths, some records can be in no run. The positions of later runs are then too
    small, so the caller uses no run.
    """
    timestamp_delta = VARINTS[timestamp - base_timestamp]
    records: list[bytes] = []
    runs: list[ValueRun] = []
    done = 0
    for deltas in _deltas_of_equal_width(first, len(values)):
        piece = values[done : done + len(deltas)]
        lengths = list(map(len, piece))
        templates = {length: _template(length, timestamp_delta, len(VARINTS[deltas[0]])) for length in set(lengths)}
        encoded_deltas = map(VARINTS.__getitem__, deltas)
        records += [
            templates[length] % (delta, value)
            for length, delta, value in zip(lengths, encoded_deltas, piece, strict=True)
        ]
        if len(templates) == 1:  # All values have the same length.
            runs.append(ValueRun(start, len(deltas), len(records[-1]), lengths[0], timestamp))
            start += len(deltas) * len(records[-1])
        done += len(deltas)
    return b"".join(records), runs


def encode_run_messages(data: bytes | bytearray, runs: Sequence[ValueRun], magic: int) -> bytes:
    """Convert the records in `runs` to uncompressed messages, for brokers before Kafka 0.11.

    `data` contains the encoded records. In each run, all values have the same length. `magic` is the number of the
    message format: 0 or 1.
    """
    messages: list[bytes] = []
    for run in runs:
        value_of_each = Struct(f"{run.size - run.value_size - 1}x{run.value_size}sx")  # Skips the other fields.
        values = value_of_each.iter_unpack(memoryview(data)[run.start : run.start + run.records * run.size])
        messages += encode_messages(len(messages), magic, run.timestamp, values, run.value_size)
    return b"".join(messages)


@lru_cache(maxsize=1024)
def _template(value_length: int, timestamp_delta: bytes, offset_delta_size: int) -> bytes:
    """Return an encoded record with two placeholders `%b`: one for the offset delta, and one for the value."""
    attributes, no_key, no_headers = b"\x00", VARINTS[-1], VARINTS[0]
    value_size = VARINTS[value_length]
    size = 1 + len(timestamp_delta) + offset_delta_size + 1 + len(value_size) + value_length + 1
    before, between = VARINTS[size] + attributes + timestamp_delta, no_key + value_size
    return b"%b".join((before.replace(b"%", b"%%"), between.replace(b"%", b"%%"), no_headers))


def _deltas_of_equal_width(first: int, count: int) -> Iterator[range]:
    """Divide the `count` offset deltas that begin with `first` into ranges, and yield the ranges.

    All deltas in a range have the same number of bytes when they are encoded as varints. For example, 0 to 63 need
    one byte, and 64 to 8191 need two bytes.
    """
    end = first + count
    for limit in (1 << 6, 1 << 13, 1 << 20, 1 << 27, 1 << 31):
        if first < min(end, limit):
            yield range(first, min(end, limit))
            first = limit
