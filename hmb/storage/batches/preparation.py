"""Preparing a record batch for an append: the slow work, which the broker does before it locks the log.

While a thread holds the log's lock, all other producers of the partition wait. So with the lock, the broker only
assigns offsets and writes. Before it takes the lock, it prepares the batch in these steps:
- *Checks* (validation.py).
- *Compression.* If the topic setting `compression.type` requires another codec, the broker decompresses the records and
  compresses them with this codec. The batch gets a new codec, length and CRC, but keeps the same records.
- *Timestamps.* If `message.timestamp.type=LogAppendTime`, the broker sets the timestamps of the records to its own
  time.

This module prepares only record batches. Clients older than Kafka 0.11 send messages v0 or v1 instead of record
batches. The module messages.py prepares these messages for the append.

Source: Kafka's `LogValidator`. (Kafka prepares the records while it holds the log's lock. HMB does this earlier.)
"""

from __future__ import annotations

from hmb.records import RecordBatch
from hmb.records.changed_batch import with_codec, with_log_append_time
from hmb.storage.batches.decoding import PREPARING
from hmb.storage.batches.validation import check_batch, check_size
from hmb.storage.config import LogConfig


def prepare(batch: RecordBatch, config: LogConfig, now: int) -> RecordBatch:
    """Check and convert a producer's batch, so that the log can append it. `now` is in ms. Raises KafkaError."""
    check_batch(batch, config, now)
    if config.compression_type != "producer" and batch.codec is not config.codec:
        assert config.codec is not None
        with PREPARING:
            batch = with_codec(batch, config.codec, config.level, limit=config.max_decompressed)
        check_size(batch, config)
    return with_log_append_time(batch, now) if config.uses_log_append_time else batch
