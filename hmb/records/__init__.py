"""Records: the formats in which Kafka's data travels and is stored, byte for byte the same in both places.

Read in this order:

- `record`       one record, and its layout inside a record batch
- `batch`        the record batch (magic 2): what a broker reads of it, and what it writes into it
- `compression`  codecs, and how decompression stays bounded (`snappy_framing`, `lz4_frame`, `zstd_frame`)
- `crc`          the two checksums
- `message`      messages v0 and v1, plain and wrappers: the formats of 2012 to 2017
- `message_set`  encoding them, and the broker's assignment of offsets
- `reading`      from bytes to batches to records, formats mixed
- `convert`      new records for old clients, and the other way
- `filtering`    batches without some of their records, for compaction (`plain_records`: the fast way)
- `heads`        offset, timestamp and key of each record, for checks and look-ups
- `control`      transaction markers
"""

from hmb.records.batch import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, RecordBatch, encode_batch
from hmb.records.compression import DEFAULT_LIMIT, Codec, compress, decompress
from hmb.records.control import ControlType, EndTransactionMarker, control_type, decode_marker, encode_marker
from hmb.records.crc import crc32, crc32c
from hmb.records.legacy.down_conversion import DownConversion
from hmb.records.legacy.message import Message
from hmb.records.legacy.message_set import AssignedMessages, assign_offsets, encode_message_set
from hmb.records.legacy.up_conversion import up_convert
from hmb.records.reading import Batch, iter_batches, parse_batch, read_records
from hmb.records.record import NO_TIMESTAMP, Header, Record, TimestampType

__all__ = [
    "DEFAULT_LIMIT",
    "LOG_OVERHEAD",
    "NO_TIMESTAMP",
    "RECORD_BATCH_OVERHEAD",
    "AssignedMessages",
    "Batch",
    "Codec",
    "ControlType",
    "DownConversion",
    "EndTransactionMarker",
    "Header",
    "Message",
    "Record",
    "RecordBatch",
    "TimestampType",
    "assign_offsets",
    "compress",
    "control_type",
    "crc32",
    "crc32c",
    "decode_marker",
    "decompress",
    "encode_batch",
    "encode_marker",
    "encode_message_set",
    "iter_batches",
    "parse_batch",
    "read_records",
    "up_convert",
]
