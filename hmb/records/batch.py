"""The record batch (magic 2, KIP-98): many records with one header. Producers send batches, and brokers store them.

A broker usually appends a batch to a log without decoding its records. In this case, the broker decodes only the header
of 61 bytes, big endian:
     0  int64  base offset               offset of the first record; the broker sets it
     8  int32  batch length              number of bytes after this field
    12  int32  partition leader epoch    the broker sets it
    16  int8   magic                     2
    17  uint32 CRC-32C                   of all bytes from the attributes on
    21  int16  attributes                bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
    23  int32  last offset delta         offset of the last record - base offset
    27  int64  base timestamp            timestamp of the first record
    35  int64  max timestamp
    43  int64  producer id               -1: the producer is not idempotent
    51  int16  producer epoch
    53  int32  base sequence             sequence number of the first record
    57  int32  number of records
    61  records, compressed as one block, see `record`

When the broker appends a batch, it writes the base offset and the leader epoch. Both fields are in the first 16 bytes,
and the CRC does not include these bytes. So the broker replaces only these bytes, and does not compute a new CRC.

Kafka has had three formats of records. In each format, the byte at position 16 of a batch or message is the *magic*,
the number of the format. So a reader recognizes the format by this byte (see `reading`).

Compaction can remove records from a batch. The remaining records keep their offsets. For example, a batch with base
offset 100 has 5 records, and compaction removes three of them. The last offset delta is still 4, but the number of
records is 2. In a batch from a producer, the number of records must be the last offset delta + 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple, Self

from hmb.protocol.enums import INT32_MAX, NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from hmb.protocol.errors import corrupt_message
from hmb.records.compression import CODEC_MASK, DEFAULT_LIMIT, Codec, codec_of, compress, decompress
from hmb.records.crc import crc32c
from hmb.records.producer_numbers import NO_BATCH_NUMBERS, BatchNumbers
from hmb.records.record import Record, TimestampType, decode_records, encode_records

MAGIC = 2
_BEFORE_CRC = Struct(">qii")  # base offset, batch length, partition leader epoch
MAGIC_POSITION = _BEFORE_CRC.size  # 16, in all three formats
AFTER_CRC = Struct(">hiqqqhii")  # the fields from the attributes to the number of records
HEADER = Struct(f"{_BEFORE_CRC.format}bI{AFTER_CRC.format[1:]}")  # the magic (b) and the CRC (I) are in the middle
RECORD_BATCH_OVERHEAD = HEADER.size  # 61 bytes
OFFSET_AND_LENGTH = Struct(">qi")  # the fields with which every batch and every message begins
LOG_OVERHEAD = OFFSET_AND_LENGTH.size  # 12 bytes
CRC_START = RECORD_BATCH_OVERHEAD - AFTER_CRC.size  # byte 21 of a batch; the CRC covers the bytes from 21 to the end
_UINT32 = Struct(">I")

# Each constant is one bit of a batch's attributes. The lowest three bits (CODEC_MASK) contain the codec.
LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT, DELETE_HORIZON_BIT = 0x08, 0x10, 0x20, 0x40


class RecordBatch(NamedTuple):
    """The fields of a batch's header, and a memoryview of the whole batch.

    - `size` is at least 61 bytes, the size of a header. `parse` refuses a smaller batch.
    - `view` begins with the header. If the buffer ends inside the batch, `view` has fewer than `size` bytes.
    - Call `check` before you rely on the fields. After `check`, `view` has exactly `size` bytes, and
      `records_count` is at most `last_offset_delta` + 1 (smaller if compaction has removed records).
    """

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int
    view: memoryview  # the bytes of the batch, or only its first bytes if the buffer ends inside the batch

    @classmethod
    def parse(cls, buffer: bytes | bytearray | memoryview, position: int = 0) -> Self:
        """Decode the header of the batch that begins at `position`.

        The buffer must contain the complete header, but the rest of the batch may be missing. Raises CORRUPT_MESSAGE if
        the header is incomplete, or if it is not the header of a record batch.
        """
        view = memoryview(buffer)
        if len(view) - position < RECORD_BATCH_OVERHEAD:
            why = f"only {len(view) - position} bytes are left, but a record batch has at least {RECORD_BATCH_OVERHEAD}"
            raise corrupt_message(why)
        fields = HEADER.unpack_from(view, position)
        size = LOG_OVERHEAD + fields[1]
        if size < RECORD_BATCH_OVERHEAD or fields[3] != MAGIC:
            raise corrupt_message(f"not a record batch: length {fields[1]}, magic {fields[3]}")
        return tuple.__new__(cls, (*fields, view[position : position + size]))  # 15% faster than `cls._make`

    @property
    def size(self) -> int:
        """The number of bytes of the whole batch, including its header."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def has_all_records(self) -> bool:
        """True if compaction has removed no records from the batch.

        In such a batch, the records have the offset deltas 0, 1, 2 and so on.
        """
        return self.records_count == self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, or -1 if the batch has no producer id.

        Sequence numbers end at 2^31 - 1 and then begin at 0 again.
        """
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & INT32_MAX

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether this is a control batch.

        The record in a control batch is a marker that the broker has written. A consumer does not return this record to
        the application (see `control`).
        """
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon(self) -> int | None:
        """The time (ms) after which compaction may remove this batch's tombstones or marker, or None (KIP-534).

        Compaction stores this time in the field of the base timestamp, and sets a bit in the attributes. If this bit is
        not set, the batch has no delete horizon.
        """
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    def check(self) -> None:
        """Raise CORRUPT_MESSAGE if the batch is incomplete, or its CRC or its number of records is wrong."""
        self.check_bytes()
        if not 0 <= self.records_count <= self.last_offset_delta + 1:
            raise corrupt_message(f"{self.records_count} records, but a last offset delta of {self.last_offset_delta}")

    def check_bytes(self) -> None:
        """Raise CORRUPT_MESSAGE if the batch is incomplete, or if its CRC is wrong."""
        if len(self.view) != self.size:
            raise corrupt_message(f"{len(self.view)} of the batch's {self.size} bytes are there")
        computed = crc32c(self.view[CRC_START:])
        if computed != self.crc:
            raise corrupt_message(f"the batch's CRC is {self.crc:#010x}, but the CRC of its bytes is {computed:#010x}")

    def records(self, limit: int = DEFAULT_LIMIT) -> Iterator[Record]:
        """Yield the records of the batch. The caller must call `check` first.

        Raises MESSAGE_TOO_LARGE if the records have more than `limit` bytes after decompression.
        """
        data = self.uncompressed(limit)
        log_append_time = self.max_timestamp if self.attributes & LOG_APPEND_TIME_BIT else None
        count, last_offset_delta = self.records_count, self.last_offset_delta
        return decode_records(data, count, self.base_offset, last_offset_delta, self.base_timestamp, log_append_time)

    def uncompressed(self, limit: int = DEFAULT_LIMIT) -> bytes:
        """Return the uncompressed bytes of the records.

        Raises MESSAGE_TOO_LARGE if the uncompressed records have more than `limit` bytes.
        """
        if not self.attributes & CODEC_MASK:
            return bytes(self.view[RECORD_BATCH_OVERHEAD:])
        return decompress(self.codec, self.view[RECORD_BATCH_OVERHEAD:], limit=limit)

    def with_base_offset(self, base_offset: int, leader_epoch: int) -> list[bytes | memoryview]:
        """Return the batch with a new base offset and leader epoch, in two parts.

        The first part is a copy of the first 16 bytes with the new values. The second part is a memoryview of all other
        bytes.
        """
        start = _BEFORE_CRC.pack(base_offset, self.batch_length, leader_epoch)
        return [start, self.view[_BEFORE_CRC.size :]]


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
    log_append_time: int | None = None,
    keep_offsets: bool = False,
) -> bytes:
    """Encode one or more records as a batch.

    If `keep_offsets` is true, each record keeps the offset that it already has. If `keep_offsets` is false, the records
    get the offsets `base_offset`, `base_offset + 1`, and so on.
    """
    base_timestamp = records[0].timestamp
    if keep_offsets:
        base_offset = records[0].offset
    content = compress(codec, encode_records(records, base_offset if keep_offsets else None, base_timestamp))
    attributes = codec | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0)
    if log_append_time is None:
        max_timestamp = max([record.timestamp for record in records])
    else:
        attributes, max_timestamp = attributes | LOG_APPEND_TIME_BIT, log_append_time
    last_offset_delta = records[-1].offset - base_offset if keep_offsets else len(records) - 1
    producer = (producer_id, producer_epoch, base_sequence)
    after_crc = AFTER_CRC.pack(attributes, last_offset_delta, base_timestamp, max_timestamp, *producer, len(records))
    return assemble(base_offset, leader_epoch, after_crc, content)


def wrap_records(
    content: bytes | bytearray,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    codec: Codec,
    level: int | None = None,
    *,
    producer: BatchNumbers = NO_BATCH_NUMBERS,
    transactional: bool = False,
) -> bytes:
    """Return a batch of records that are already encoded (`content`). Their offsets are 0, 1, 2 and so on."""
    attributes = codec | (TRANSACTIONAL_BIT if transactional else 0)
    after_crc = AFTER_CRC.pack(attributes, count - 1, base_timestamp, max_timestamp, *producer, count)
    if codec is not Codec.NONE:
        content = compress(codec, content, level=level)
    return assemble(0, NO_LEADER_EPOCH, after_crc, content)


def assemble(base_offset: int, leader_epoch: int, after_crc: bytes, content: bytes | bytearray | memoryview) -> bytes:
    """Join the parts of a batch, and compute its CRC. Return the bytes of the batch.

    `after_crc` contains the header fields that come after the CRC, in the layout AFTER_CRC. These are the fields
    from the attributes to the number of records. `content` contains the records, which come after the header.
    """
    before_crc = _BEFORE_CRC.pack(base_offset, RECORD_BATCH_OVERHEAD - LOG_OVERHEAD + len(content), leader_epoch)
    crc = _UINT32.pack(crc32c(content, crc32c(after_crc)))
    return b"".join((before_crc, bytes([MAGIC]), crc, after_crc, content))
