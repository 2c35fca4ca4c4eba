"""Records: the formats in which Kafka sends data over the network and stores it on disk.

A batch of records has the same bytes on the network and on disk.

A *record* is a key, a value, headers and a timestamp. A producer collects records and sends them as a *record batch*:
one header of 61 bytes, then all the records, which may be compressed together. The broker writes the batch to its log
and sends it to consumers without looking at the records::

    producer   records --encode, compress--> batch
    broker                                   batch --assign offset, append--> log --read--> batch
    consumer                                                                                batch --decode--> records

The broker changes only the first 16 bytes of a batch. These bytes hold the base offset and the leader epoch, and the
checksum does not cover them. For example, a producer sends 3 records, and the log end offset is 500. The broker writes
500 into the header, and the records have the offsets 500, 501 and 502. A batch of 10,000 records causes the same work
for the broker.

Read in this order:

- `record`       one record, and its layout inside a batch
- `batch`        the record batch: its header, and encoding a batch
- `reading`      how a reader gets batches from bytes, and records from batches
- `compression`  the folder of codecs, with a bound on the memory that decompression takes
- `crc`, `varint`  checksums, and integers of variable length
- `control`      the markers that end transactions

A first reading can skip the following modules:

- `builder`, `consumer_record`  the batch that a producer fills next, and the record that a consumer returns
- `filtering`, `heads`  batches without some of their records, for compaction, and the fields of records that a broker
  checks
- `legacy`       messages v0 and v1, the formats of 2012 to 2017, and conversion from and to them
- `fast`         faster versions of encoding and decoding
- `annotate`, `annotate_frame`  every byte of a batch or frame with its meaning, for `hmb decode` and `hmb dump-log`
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
