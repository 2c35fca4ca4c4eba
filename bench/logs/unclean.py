"""A log that a broker has not closed, for example after a kill. At its next start, the broker must check this log.

A broker that starts with this log checks every batch and writes the indexes again. The log has one segment and no
recovery point.

The benchmark's log contains the sequence numbers of an idempotent producer, because most producers are
idempotent. When the broker checks the log, it also rebuilds the state of this producer.

In the benchmark's log, the timestamps grow from batch to batch. With equal timestamps, the time index would
contain only one entry.

Each batch is a copy of the first batch, except for these fields (byte position in the batch, type, name):
     0   int64   base_offset
    17   uint32  crc, over all bytes from 21 on
    27   int64   base_timestamp
    35   int64   max_timestamp
    53   int32   base_sequence

The file `hmb/records/batch.py` shows the whole layout of a batch.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct

from hmb.records import Record, encode_batch
from hmb.records.batch import CRC_START
from hmb.records.crc import crc32c
from hmb.units import now_ms

RECORD_BYTES = 100
BASE_OFFSET, CRC, TIMESTAMPS, BASE_SEQUENCE = Struct(">q"), Struct(">I"), Struct(">qq"), Struct(">i")
TIMESTAMPS_START, BASE_SEQUENCE_START = 27, 53


def write(directory: Path, size: int, batch_bytes: int) -> int:
    """Write a segment of at most `size` bytes, with batches of about `batch_bytes` bytes. Return the log end offset."""
    value = os.urandom(RECORD_BYTES)
    count = max(1, batch_bytes // (RECORD_BYTES + 10))  # A record without its value takes 10 bytes.
    now = now_ms()
    records = [Record(i, now, None, value) for i in range(count)]
    batch = bytearray(encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=0, leader_epoch=0))
    batches = size // len(batch)
    with (directory / f"{0:020d}.log").open("wb", buffering=1 << 20) as file:
        for number in range(batches):
            BASE_OFFSET.pack_into(batch, 0, number * count)
            TIMESTAMPS.pack_into(batch, TIMESTAMPS_START, now + number, now + number)
            BASE_SEQUENCE.pack_into(batch, BASE_SEQUENCE_START, number * count % 2**31)
            CRC.pack_into(batch, CRC_START - CRC.size, crc32c(memoryview(batch)[CRC_START:]))
            file.write(batch)
    return batches * count
