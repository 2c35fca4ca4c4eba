"""Writes rows exactly once. A task stores the number of its newest batch in the same transaction as the batch's rows.

Problem: each run of a task writes its rows, and Spark can run a task more than once. Spark runs a task again after a
failure, or because a slow worker seems to be dead. Spark can start a second run of a slow task and use the faster run
(speculation). After a crash, Spark can also run a whole batch of a streaming query again.

Idea: a task writes the rows of a batch and a *note* in one transaction. The note of batch 7 says "batch 7 is written".
If Spark runs the task again, the new run reads the note first.

A task stores the note "batch 7 is written" as a committed offset of a consumer group: the offset 8 (7 + 1).
The offset belongs to partition 0 of the first topic to which the task writes. All runs of the task use the
same transactional id and group id:
    transactional id  =  group id  =  <transactionalIdPrefix>-<query id>-<task number>

The query id is the same after a restart of a streaming query, because Spark stores it in the checkpoint. The restarted
query therefore uses the same transactional ids and groups. A batch query has no query id, so each of its jobs uses a
random id instead. If a batch query runs again, its new job has another id, and writes all rows again (sink.py).

Each run of a task has three steps:
    1. call init_transactions: it aborts an earlier run's open transaction, and earlier runs can no longer write
    2. wait until earlier transactions have ended, and fetch the note of the newest written batch
    3. if the note is for this batch: write nothing (for failOnChangedRows=false, see "Limits")
       if the note is for an older batch, or missing: write all rows and a new note in one transaction
       if the note is for a newer batch: fail, because the checkpoint is older than the output

Example: task 2 of query Q writes batch 7 and commits. The group `hmb-spark-Q-2` now has the committed offset 8. Spark
crashes and runs batch 7 again. The new run of task 2 fetches offset 8, which means "batch 7 is written". The new run
therefore writes none of its rows.

The order of the steps matters. After step 1, no earlier run can commit a new note. So the note that the run
fetches in step 2 is still correct in step 3.

Limits:

- When Spark runs a batch again, each task must get the same rows as in the first run. But a row can move to
  another task after a `repartition()` without columns, or if the number of tasks changes.

- A note contains a checksum of the rows, which does not depend on their order. If Spark repeats the task with
  other rows, the task fails. Otherwise, the task would silently skip these rows. For example, a query with
  `rand()` fails if it repeats a written batch.

- With the option `failOnChangedRows=false`, a repeated task writes its rows in a new transaction. If the
  checksum shows the same rows as before, the task aborts the transaction. Otherwise it commits the new rows.
  The old rows remain in the topic, so each row is written at least once.

- A task without rows neither reads nor writes a note about its batch. Therefore, if the first run of a batch
  wrote rows and the second run has none, the second run does not detect the difference.

- Each task of a batch commits its own transaction, so a consumer can see one task's rows before another task's
  rows. A consumer with the isolation level read_uncommitted also sees rows of aborted transactions.

- A note is the committed offset of a group without members, so brokers delete it after
  offsets.retention.minutes (7 days by default). For example, task 0 commits batch 7, but the query stops
  before task 1 commits. If the query starts again after 8 days, task 0 finds no note, and writes its rows of
  batch 7 a second time.

- If a transaction takes longer than kafka.transaction.timeout.ms, the broker aborts it, and the task fails. The
  default of the Spark sink is 15 minutes, the longest time that brokers allow by default.

Source: KIP-98 (transactions).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING
from zlib import crc32

import pyarrow as pa

from hmb.client.admin import Admin
from hmb.client.group.interface import OffsetAndMetadata
from hmb.client.metadata import Cluster
from hmb.client.producing.producer import Producer
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from hmb.protocol.topics import TopicPartition
from hmb.spark.option_names import DEFAULT_NAME
from hmb.spark.options import OptionError
from hmb.spark.writing.sending import RowSender, patiently

if TYPE_CHECKING:
    from hmb.spark.options import SinkOptions

WAYS_OUT = (
    "The query is not deterministic: a second run of a batch must have the same rows in the same tasks. Remove rand(), "
    "uuid(), current_timestamp() and repartition() without columns, and start with a new checkpoint; or set the option "
    "failOnChangedRows=false, and the query continues at least once (see hmb.spark.writing.once)"
)
TRANSACTION_TIMEOUT = 900.0  # seconds: the default of the broker's transaction.max.timeout.ms
LOGGER = logging.getLogger(__name__)
NEEDED = (InitProducerIdRequest, AddPartitionsToTxnRequest, TxnOffsetCommitRequest)


class ReplayError(Exception):
    """A repeated batch has other rows than before, or a batch is older than the newest written batch."""


class _SameRowsError(Exception):
    """Raised to abort a task's transaction, because an earlier run of the task has written the same rows."""


@dataclass
class BatchNote:
    """A task's note about one batch: the batch number, the row count, and a checksum of the rows."""

    batch: int  # the number that Spark has assigned to the batch, from 0
    rows: int = 0  # the number of rows
    checksum: int = 0  # the sum of the CRC-32 checksums of all keys and values

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows of the batch to the count and to the checksum, which does not depend on the order of the rows."""
        for name in {"key", "value"} & set(rows.schema.names):
            contents = rows.column(name).cast(pa.large_binary()).to_pylist()
            self.checksum += sum(crc32(each) for each in contents if each is not None)
        self.rows += rows.num_rows

    def to_offset(self) -> OffsetAndMetadata:
        """Return the offset to commit when the task writes the batch: the number of the batch plus 1.

        The metadata of this offset is JSON text with the number of rows and a checksum of the rows.
        """
        return OffsetAndMetadata(self.batch + 1, json.dumps({"rows": self.rows, "checksum": self.checksum}))

    @classmethod
    def from_offset(cls, noted: OffsetAndMetadata) -> BatchNote:
        return cls(noted.offset - 1, **json.loads(noted.metadata))


def check_transactions(options: SinkOptions) -> None:
    """Raise OptionError if the brokers do not support transactions (Kafka before 0.11)."""
    with closing(Cluster(options.bootstrap_servers, DEFAULT_NAME, security=options.security)) as cluster:
        missing = [request.__name__ for request in NEEDED if not cluster.supports(request)]
    if missing:
        problem = f"the broker at {options.bootstrap_servers} has no transactions (no {missing[0]})"
        fix = "Use Kafka 0.11 or newer, or remove the option: rows are then written at least once"
        raise OptionError(f"exactlyOnce=true: {problem}. {fix}")


def deliver_once(options: SinkOptions, job: str, batch_id: int, task: int, batches: Iterator[pa.RecordBatch]) -> int:
    """Write the rows of a task in one transaction, unless an earlier run has written the same rows.

    Return the number of rows. `job` identifies the query: for a streaming query, it is the query id. `batch_id` is
    the number of the batch in this query.

    Raises ReplayError in two cases:

    - The task has already written a batch with a number greater than `batch_id`.
    - An earlier run of the task has written other rows for the batch `batch_id`. With `failOnChangedRows=false`,
      the function instead adds the new rows to the topic.

    Also raises UndeliveredError, KafkaError.
    """
    first = next(batches, None)
    if first is None:
        return 0
    name = f"{options.transactional_id_prefix}-{job}-{task}"
    settings = {"transaction_timeout": TRANSACTION_TIMEOUT, **options.producer, "security": options.security}
    with Producer(options.bootstrap_servers, transactional_id=name, **settings) as producer:
        producer.init_transactions()
        before, note, rows = _last_note(options, name), BatchNote(batch_id), chain([first], batches)
        if before is None or before.batch < batch_id:
            _write(RowSender(producer, options, task), producer, name, note, rows)
        elif before.batch > batch_id:
            problem = f"{name}: the query writes batch {batch_id}, but batch {before.batch} was written already"
            raise ReplayError(f"{problem}: the checkpoint is older than the output; start with a new checkpoint")
        elif options.fail_on_changed_rows:
            for batch in rows:
                note.add(batch)
            if note != before:
                raise ReplayError(f"{_changed(name, before, note)}. {WAYS_OUT}")
        else:
            with suppress(_SameRowsError):
                _write(RowSender(producer, options, task), producer, name, note, rows, before)
                LOGGER.warning("%s; the topic now contains the old and the new rows", _changed(name, before, note))
    return note.rows


def _write(
    sender: RowSender,
    producer: Producer,
    name: str,
    note: BatchNote,
    batches: Iterator[pa.RecordBatch],
    before: BatchNote | None = None,
) -> None:
    """Write a task's rows and a note about them in one transaction.

    The note contains the batch number, the number of rows and a checksum of the rows. `before` is the note from an
    earlier write of this batch, or None.

    If the new note equals `before`, the topic already contains these rows. The function then aborts the transaction
    and raises _SameRowsError.
    """
    with producer.transaction():
        for batch in batches:
            note.add(batch)
            sender.send(batch)
        if note == before:
            raise _SameRowsError
        sender.finish()
        if sender.topic is not None:
            producer.send_offsets_to_transaction({TopicPartition(sender.topic, 0): note.to_offset()}, name)


def _last_note(options: SinkOptions, name: str) -> BatchNote | None:
    """Return the note (batch number, row count, checksum) of the task's newest written batch, or None."""
    with Admin(options.bootstrap_servers, security=options.security) as admin:
        noted = patiently(options, lambda: admin.list_group_offsets(name, require_stable=True))
    return BatchNote.from_offset(max(noted.values())) if noted else None


def _changed(name: str, before: BatchNote, note: BatchNote) -> str:
    problem = f"batch {note.batch} was written with {before.rows} rows, and now has {note.rows} rows"
    return f"{name}: {problem}{' with different contents' if before.rows == note.rows else ''}"
