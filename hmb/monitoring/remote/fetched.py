"""Reads batches with Fetch requests, because `hmb ui -b ADDRESS` cannot read the broker's files.

A Fetch response contains whole batches, with exactly the bytes that the broker stores. So the web page can show
a batch of any broker: its header, its records, and its bytes with an explanation of each field. The response
does not contain the position of the batch in its segment. The page therefore identifies a batch by the batch's
first offset.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from hmb.client.admin.brokers import Brokers
from hmb.client.admin.whole_batches import fetch_batches
from hmb.monitoring.page.log_views import MAX_BATCHES, batch_row, opened_batch
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records import iter_batches

MAX_BYTES = 1 << 20  # the limit for one Fetch response; it is exceeded only if the first batch alone is larger

Json = dict[str, Any]


def fetched_batches(brokers: Brokers, partition: TopicPartition, offset: int) -> Json:
    """Return a dict with rows for the batches from `offset` on.

    The key "batches" contains at most MAX_BATCHES rows. "next" contains the offset to read next, or None if no
    batch follows.
    """
    data, end = fetch_batches(brokers, partition, offset, MAX_BYTES)
    found = [each for each in iter_batches(data) if each.last_offset >= offset][:MAX_BATCHES]
    following = found[-1].last_offset + 1 if found else offset
    return {
        "from": offset,
        "batches": [batch_row(batch, None) for batch in found],
        "next": following if found and following < end else None,
    }


def fetched_batch(brokers: Brokers, partition: TopicPartition, offset: int) -> Json:
    """Return the header and the records of the batch that contains `offset`, and lines that explain its bytes."""
    data, _ = fetch_batches(brokers, partition, offset, MAX_BYTES)
    position = 0
    for batch in iter_batches(data):
        if batch.last_offset >= offset:
            whole = bytes(data[position : position + batch.size])
            return {"file": None, **opened_batch(io.BufferedReader(io.BytesIO(whole)), Path(str(partition)), 0)}
        position += batch.size
    raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{partition} has no batch at or after offset {offset}")
