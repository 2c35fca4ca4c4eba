"""Records: the formats of the data that Kafka sends over the network and stores on disk.

A batch of records has the same bytes on the network and on disk, except for a few fields of its header.

A *record* consists of a key, a value, headers and a timestamp. A producer collects records and sends them as a *record
batch*. The batch has one header of 61 bytes, followed by all the records. The records may be compressed together. The
broker appends the batch to its log, and later sends the batch to consumers. The broker usually does not decode the
records:
    producer   records --encode, compress--> batch
    broker                                   batch --assign offset, append--> log --read--> batch
    consumer                                                                                batch --decode--> records

With the default settings, the broker changes only two fields in the first 16 bytes of a batch: the base offset and the
leader epoch. The checksum does not include these bytes, so the checksum stays valid. For example, a producer sends a
batch of 3 records, and the log end offset is 500. The broker writes 500 into the header as the base offset. The three
records then have the offsets 500 to 502.

The broker usually decodes only the header of a batch, and verifies the batch's checksum. The work of the broker
therefore depends on the number of bytes in the batch, and not on the number of records.

In a few cases, the broker must decode or decompress the records of a batch. For example, the topic is compacted, or
the topic refuses records with old timestamps. Another example is a topic whose codec differs from the codec of the
batch.

Read in this order:
- `record`       one record, and its layout inside a batch
- `batch`        the record batch: its header, and encoding a batch
- `reading`      finds the batches in a buffer, and decodes their records
- `compression`  compresses and decompresses records, with a limit on memory (a folder)
- `crc`, `varint`  checksums, and integers of variable length
- `control`      the markers with which the broker commits or aborts a transaction

You can skip the following modules when you read this folder for the first time:
- `changed_batch`  copies of batches with other timestamps, another codec, another producer or other records
- `producer_numbers`  the producer id, the epoch and the sequence number of a batch
- `builder`, `consumer_record`  the batch that a producer is filling, and the record that a consumer returns
- `aborted`    finds the batches that belong to aborted transactions
- `filtering`  removes records from a batch, for compaction
- `partial_records`  decodes only the offset and the timestamp of each record, and whether the record has a key
- `legacy`     messages v0 and v1, the formats of 2012 to 2017, and their conversion
- `fast`       functions that encode and decode records faster
- `annotate`, `annotate_frame`  show the meaning of every byte, for the commands `hmb decode` and `hmb dump-log`
"""

from hmb.records.batch import LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, RecordBatch, encode_batch
from hmb.records.compression import DEFAULT_LIMIT, Codec, compress, decompress
from hmb.records.control import ControlType, EndTransactionMarker, control_type, decode_marker, encode_marker
from hmb.records.crc import crc32, crc32c
from hmb.records.legacy.down_conversion import DownConversion
from hmb.records.legacy.message import Message
from hmb.records.legacy.message_set import AssignedMessages, assign_offsets, encode_message_set
from hmb.records.legacy.up_conversion import up_convert
from hmb.records.reading import Batch, first_batch, iter_batches, parse_batch, read_records
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
    "first_batch",
    "iter_batches",
    "parse_batch",
    "read_records",
    "up_convert",
]
