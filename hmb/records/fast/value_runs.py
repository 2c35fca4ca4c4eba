"""Encode all values of one `append_values` call together, and locate them later to convert them for old brokers.

The values of one `append_values` call share a timestamp, and have neither keys nor headers. The value's length
determines every byte of the record, except the offset delta and the value. So one *template* serves all values of a
length.

For example, the following template serves values of 3 bytes at the base timestamp. `hmb.records.record` describes the
layout::

    12 00 00 %b 01 06 %b 00      length 9, attributes, timestamp delta, OFFSET DELTA, no key, size 3, VALUE, no headers

Values of one length that follow each other form a *run*. Brokers before Kafka 0.11 get messages instead of a record
batch. The runs let the producer build these messages without decoding each record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from hmb.records.legacy.message import encode_messages
from hmb.records.varint import VARINTS


class ValueRun(NamedTuple):
    """Consecutive records with the same timestamp and with values of one length, without keys and headers."""

    start: int  # the position of the first record in the batch's data
    records: int  # the number of records
    size: int  # bytes of each record
    value_size: int
    timestamp: int


def encode_values(
    values: Sequence[bytes], first: int, timestamp: int, base_timestamp: int, start: int
) -> tuple[bytes, list[ValueRun]]:
    """Return the encoded records and their runs. Values of mixed lengths have no run.

    The first record has the offset delta `first`, and will be at position `start` of its batch's data.
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
        if len(templates) == 1:  # If the lengths differ, the values have no run.
            runs.append(ValueRun(start, len(deltas), len(records[-1]), lengths[0], timestamp))
            start += len(deltas) * len(records[-1])
        done += len(deltas)
    return b"".join(records), runs


def encode_run_messages(data: bytes | bytearray, runs: Sequence[ValueRun], magic: int) -> bytes:
    """Return the records of all runs as uncompressed messages of magic 0 or 1."""
    messages: list[bytes] = []
    for run in runs:
        value_of_each = Struct(f"{run.size - run.value_size - 1}x{run.value_size}sx")  # The last x is the header count.
        values = value_of_each.iter_unpack(memoryview(data)[run.start : run.start + run.records * run.size])
        messages += encode_messages(len(messages), magic, run.timestamp, values, run.value_size)
    return b"".join(messages)


@lru_cache(maxsize=1024)
def _template(value_length: int, timestamp_delta: bytes, offset_delta_size: int) -> bytes:
    """Return an encoded record with `%b` in place of its offset delta and of its value."""
    attributes, no_key, no_headers = b"\x00", VARINTS[-1], VARINTS[0]
    value_size = VARINTS[value_length]
    size = 1 + len(timestamp_delta) + offset_delta_size + 1 + len(value_size) + value_length + 1
    before, between = VARINTS[size] + attributes + timestamp_delta, no_key + value_size
    return b"%b".join((before.replace(b"%", b"%%"), between.replace(b"%", b"%%"), no_headers))


def _deltas_of_equal_width(first: int, count: int) -> Iterator[range]:
    """Divide `count` offset deltas from `first` on into ranges, and yield the ranges.

    The deltas of one range all need the same number of bytes as varints.
    """
    end = first + count
    for limit in (1 << 6, 1 << 13, 1 << 20, 1 << 27, 1 << 31):
        if first < min(end, limit):
            yield range(first, min(end, limit))
            first = limit
