"""Exactly once: a task's rows in one transaction, and in the same transaction a note of which batch they were (KIP-98).

Spark may run a task twice (a retry, a speculative copy, a zombie that was taken for dead), and may run a batch of a
streaming query again after a crash, for its own commit comes after all tasks.  So a task has a name that all its
attempts share and that outlives restarts,

    transactional id  =  group id  =  <transactionalIdPrefix>-<query id>-<task's number>

and does, in this order:

    1. init_transactions      shuts out older attempts, ends what they left
    2. ask for the group's committed offset, waiting for what is undecided: the note
    3. the note says "this batch": it was written before; leave it out
       else: one transaction of all rows, and of the offset  batch + 1  as the new note

After 1 nobody else can commit under that name, so what 2 finds holds; and since rows and note are committed by one
marker, a batch is either not there and not noted, or both.  The query id stands in the checkpoint, so a restarted query
has its old names; the note's topic is the first that was written to, its partition 0.

What this needs, and what is not covered:

- A batch that is run again must part its rows into the same tasks.  It does so when it reads the same ranges and is
  the same query; rows after a `repartition()` without columns, or with a number of tasks that was changed in between,
  may be in another task than before.  The note holds a sum over the rows (whatever their order): a batch that
  is run again with other rows is an error, not a silent loss.  (An empty task asks nobody.)
- Each task's rows appear when that task commits, not all tasks' at one moment.  Readers need read_committed.
- Notes are offsets of a group without members, which brokers forget after offsets.retention.minutes (7 days): a query
  that was killed between the commits of two tasks and is started again after that may write one batch's rows twice.
- A transaction that takes longer than kafka.transaction.timeout.ms (here 15 minutes, the most that brokers allow by
  default) is aborted, and the task fails.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
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
from hmb.spark.options import OptionError
from hmb.spark.sending import Sending

if TYPE_CHECKING:
    from hmb.spark.options import SinkOptions

TRANSACTION_TIMEOUT = 900.0  # seconds: Kafka's transaction.max.timeout.ms
NEEDED = (InitProducerIdRequest, AddPartitionsToTxnRequest, TxnOffsetCommitRequest)


class ReplayError(Exception):
    """A batch was run again, and is not what it was."""


@dataclass
class Note:
    """What a task has written: which batch, how many rows, and the sum of their checksums."""

    batch: int
    rows: int = 0
    checksum: int = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Rows of the batch; the sum does not mind their order."""
        for name in {"key", "value"} & set(rows.schema.names):
            contents = rows.column(name).cast(pa.large_binary()).to_pylist()
            self.checksum += sum(crc32(each) for each in contents if each is not None)
        self.rows += rows.num_rows

    def to_offset(self) -> OffsetAndMetadata:
        """The offset is that of the next batch."""
        return OffsetAndMetadata(self.batch + 1, json.dumps({"rows": self.rows, "checksum": self.checksum}))

    @classmethod
    def from_offset(cls, noted: OffsetAndMetadata) -> Note:
        return cls(noted.offset - 1, **json.loads(noted.metadata))


def check_transactions(options: SinkOptions) -> None:
    """OptionError where the brokers have no transactions."""
    with closing(Cluster(options.bootstrap_servers, "hmb-spark")) as cluster:
        missing = [request.__name__ for request in NEEDED if not cluster.knows(request)]
    if missing:
        why = f"the broker at {options.bootstrap_servers} has no transactions (no {missing[0]}); Kafka 0.11 has"
        raise OptionError(f"exactlyOnce=true: {why}. Without that option rows are written at least once")


def deliver_once(options: SinkOptions, job: str, batch_id: int, task: int, batches: Iterator[pa.RecordBatch]) -> int:
    """How many rows were delivered, now or before.  UndeliveredError, ReplayError, KafkaError."""
    first = next(batches, None)
    if first is None:
        return 0
    name = f"{options.transactional_id_prefix}-{job}-{task}"
    settings = {"transaction_timeout": TRANSACTION_TIMEOUT, **options.producer}
    with Producer(options.bootstrap_servers, transactional_id=name, **settings) as producer:
        producer.init_transactions()
        before, note = _last_note(options, name), Note(batch_id)
        if before is not None and before.batch >= batch_id:
            for batch in chain([first], batches):
                note.add(batch)
            _check_same(name, before, note)
            return note.rows
        sending = Sending(producer, options, task)
        with producer.transaction():
            for batch in chain([first], batches):
                note.add(batch)
                sending.send(batch)
            sending.finish()
            if sending.topic is not None:
                where = TopicPartition(sending.topic, 0)
                producer.send_offsets_to_transaction({where: note.to_offset()}, name)
    return note.rows


def _last_note(options: SinkOptions, name: str) -> Note | None:
    with Admin(options.bootstrap_servers) as admin:
        noted = admin.list_group_offsets(name, require_stable=True)
    return Note.from_offset(max(noted.values())) if noted else None


def _check_same(name: str, before: Note, note: Note) -> None:
    if before.batch > note.batch:
        what = f"batch {note.batch} is to be written, and batch {before.batch} was written already"
        raise ReplayError(f"{name}: {what}: the checkpoint is older than the output; start with a new checkpoint")
    if before != note:
        what = f"batch {note.batch} was written before with {before.rows} rows and now has {note.rows} or others"
        why = "a query that is written exactly once must part a batch's rows into the same tasks each time"
        raise ReplayError(f"{name}: {what}: {why} (see hmb.spark.once)")
