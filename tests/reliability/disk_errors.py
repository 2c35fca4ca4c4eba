"""Injects disk errors into the files of a broker, then simulates a power failure and checks the data.

Each case injects one error (faulty_disk.py) into the same sequence of requests. The sequence creates topics and
produces records with acks=all until segments roll. It commits and aborts transactions, commits offsets, compacts a log,
writes checkpoints, and deletes records and a topic.

The test remembers each request that the broker answered without an error. Then the power fails, and a new broker starts
with the bytes that are on the disk. Its data must agree with the responses of the first broker:

- After the restart, each acknowledged record has the same offset and the same value as before.
- A read_committed consumer reads all records of committed transactions, and no records of aborted transactions.
- The group's committed offset is the last acknowledged offset, or a later offset whose request got an error.
- Each key of the compacted topic has its last acknowledged value, or a later value whose request got an error.
- Each created topic exists. Deleted topics and deleted records no longer exist.

If a request got an error, the test accepts the old data and the changed data, because the error can occur before or
after the change is on disk.

No request may end in an internal error. After a failed sync, no file may be synced again.

`python -m tests.reliability.disk_errors --cases 1000 --seed 7` runs many cases. `--case 33` runs one of them and prints
the broker's log. test_disk_errors.py runs some cases.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_records import DeleteRecordsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.end_txn import EndTxnRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.records import Record, encode_batch, iter_batches, read_records
from hmb.storage.compaction.cleaner import Cleaner
from hmb.storage.log import Log
from tests.broker.calls import outcome, produce
from tests.broker.conftest import Asker, open_asker
from tests.reliability.faulty_disk import KINDS, Fault, FaultyDisk
from tests.storage.transactions import committed_offsets

SETTINGS = {
    "log.segment.bytes": "700",
    "log.index.interval.bytes": "100",
    "log.flush.acks.all": "true",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "1000",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.retention.ms": "-1",
}
GROUP, TRANSACTIONAL_ID = "group", "transactions"
PATIENCE = 20.0  # seconds; after a restart, the broker must load offsets and complete transactions within this time
TIMESTAMPS = count(time.time_ns() // 1_000_000)
ALL_STEPS = 77  # the number of steps in `Course.steps`
# A case needs thousands of syncs, which are slow on a real disk.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


class Broken(AssertionError):
    """Raised if the broker has broken one of the rules in the docstring of the module `disk_errors`."""


@dataclass
class Answered:
    """The data that the broker must have after the restart, according to its responses.

    A request that got an error has perhaps changed the data. The fields `uncertain_topics`, `uncertain_start`,
    `offsets` and `table` therefore also contain the possible results of requests with errors.
    """

    topics: dict[str, int] = field(default_factory=dict)  # topic name -> number of partitions
    uncertain_topics: set[str] = field(default_factory=set)  # topics whose creation or deletion got an error
    deleted_topics: set[str] = field(default_factory=set)
    records: dict[int, bytes] = field(default_factory=dict)  # the records of topic `plain`: offset -> value
    start: int = 0  # the log start offset of topic `plain`: records below it were deleted
    uncertain_start: int = 0
    # value of a record in a transaction -> True if committed, False if aborted
    committed: dict[bytes, bool] = field(default_factory=dict)
    offsets: list[int] = field(default_factory=lambda: [-1])  # possible committed offsets of the group; -1: no offset
    # the possible last values of each key of topic `table`
    table: dict[bytes, list[bytes | None]] = field(default_factory=dict)


class Course:
    """The sequence of requests that each case sends."""

    def __init__(self, ask: Asker, random_: random.Random) -> None:
        self.ask = ask
        self.answered = Answered()
        self._random = random_
        self._numbers = count()
        self._cleaner = Cleaner(ask.logs, max_memory=1 << 20, rate=float("inf"), stop=threading.Event())

    def steps(self) -> Iterator[None]:
        yield self.create("plain", 2)
        yield self.create("table", 1, **{"cleanup.policy": "compact"})
        yield self.create("gone", 3)
        for number in range(3):
            for _ in range(8):
                yield self.produce()
                yield self.change_table()
            yield self.transaction(commit=number != 1)
            yield self.commit_offset()
            yield self.housekeeping()
        yield self.delete_records()
        yield self.delete_topic("gone")
        yield self.create("gone", 1)
        for _ in range(6):
            yield self.produce()
            yield self.change_table()
        yield self.transaction(commit=True)
        yield self.commit_offset()

    def create(self, name: str, partitions: int, **configs: str) -> None:
        topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        topic.configs = [topic.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
        (answer,) = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1_000), 5).topics
        if answer.error_code:
            self.answered.uncertain_topics.add(name)
        else:
            self.answered.topics[name] = partitions
            self.answered.deleted_topics.discard(name)

    def delete_topic(self, name: str) -> None:
        if self.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=1_000), 3).responses[0].error_code:
            self.answered.uncertain_topics.add(name)
        else:
            self.answered.deleted_topics.add(name)
        self.answered.topics.pop(name, None)

    def produce(self) -> None:
        value = self._value(self._random.randrange(20, 150))
        answer = self.ask(produce(encode_batch([record(value)]), topic="plain", acks=-1), 9)
        if not outcome(answer):
            self.answered.records[answer.responses[0].partition_responses[0].base_offset] = value

    def change_table(self) -> None:
        key, value = b"key %d" % self._random.randrange(4), self._value(60)
        may_be = self.answered.table.setdefault(key, [None])
        if not outcome(self.ask(produce(encode_batch([record(value, key)]), topic="table", acks=-1), 9)):
            may_be.clear()
        may_be.append(value)

    def transaction(self, *, commit: bool) -> None:
        """Write two records in a transaction, and end it. After an error, do not end the transaction."""
        self.ask(FindCoordinatorRequest(key=TRANSACTIONAL_ID, key_type=1), 3)
        init = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000)
        producer = self.ask(init, 4)
        if producer.error_code:
            return
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic(name="plain")
        topic.partitions = [1]
        ids = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        old_ids = {f"v3_and_below_{name}": value for name, value in ids.items()}
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTIONAL_ID, v3_and_below_topics=[topic], **old_ids
        )
        (result,) = self.ask(add, 3).results_by_topic_v3_and_below
        if result.results_by_partition[0].partition_error_code:
            return
        values = [self._value(80), self._value(80)]
        for sequence, value in enumerate(values):
            data = encode_batch([record(value)], transactional=True, base_sequence=sequence, **ids)
            request = produce(data, topic="plain", partition=1, acks=-1)
            request.transactional_id = TRANSACTIONAL_ID
            if outcome(self.ask(request, 9)):
                return
        end = EndTxnRequest(transactional_id=TRANSACTIONAL_ID, committed=commit, **ids)
        if not self.ask(end, 4).error_code:
            self.answered.committed |= dict.fromkeys(values, commit)

    def commit_offset(self) -> None:
        self.ask(FindCoordinatorRequest(key=GROUP), 3)
        offset = next(self._numbers)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="plain")
        topic.partitions = [topic.OffsetCommitRequestPartition(committed_offset=offset, committed_metadata="")]
        request = OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, topics=[topic])
        if not self.ask(request, 8).topics[0].partitions[0].error_code:
            self.answered.offsets.clear()
        self.answered.offsets.append(offset)

    def delete_records(self) -> None:
        offset = len(self.answered.records) // 2
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name="plain")
        topic.partitions = [topic.DeleteRecordsPartition(partition_index=0, offset=offset)]
        (answer,) = self.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1_000), 2).topics[0].partitions
        self.answered.uncertain_start = offset
        if not answer.error_code:
            self.answered.start = offset

    def housekeeping(self) -> None:
        """Run the tasks that a broker runs at regular intervals."""
        logs = self.ask.logs
        for task in (logs.expire, logs.flush_if_due, self._cleaner.run, logs.watch_disk):
            try:
                task()
            except (KafkaError, OSError) as error:  # The class `Housekeeper` catches the same exceptions.
                logging.getLogger(__name__).info("%s: %s", task.__name__, error)

    def _value(self, size: int) -> bytes:
        return (b"%d " % next(self._numbers)).ljust(size, b".")


def record(value: bytes, key: bytes | None = None) -> Record:
    """Return a record whose timestamp is one millisecond after that of the previous record.

    Each such record needs an entry in the time index.
    """
    return Record(0, next(TIMESTAMPS), key, value)


def check(ask: Asker, answered: Answered) -> None:
    """Raise Broken if the data after the power failure does not agree with the responses in `answered`."""
    existing = {topic.name: len(topic.partitions) for topic in ask.broker.topics.all()}
    for name, partitions in answered.topics.items():
        if name not in answered.uncertain_topics and existing.get(name) != partitions:
            raise Broken(f"topic {name} has {existing.get(name)} partitions, not {partitions}")
    if wrong := (answered.deleted_topics - answered.uncertain_topics) & existing.keys():
        raise Broken(f"topics {wrong} were deleted")
    if "plain" in answered.topics:
        check_plain(log_of(ask, "plain", 0), answered)
        check_transactions(log_of(ask, "plain", 1), answered)
        check_offset(ask, answered)
    if "table" in answered.topics:
        check_table(log_of(ask, "table", 0), answered)


def log_of(ask: Asker, name: str, partition: int) -> Log:
    topic = ask.broker.topics.get(name)
    if topic is None:
        raise Broken(f"topic {name} is gone")
    return topic.log(partition)


def check_plain(log: Log, answered: Answered) -> None:
    found = {record.offset: record.value for record in records_of(log)}
    if not answered.start <= log.log_start_offset <= max(answered.start, answered.uncertain_start):
        raise Broken(f"the log starts at {log.log_start_offset}, not at {answered.start}")
    for offset, value in answered.records.items():
        if offset >= log.log_start_offset and found.get(offset) != value:
            raise Broken(f"offset {offset}: {found.get(offset)!r} in place of {value!r}")


def check_transactions(log: Log, answered: Answered) -> None:
    committed = {value for value, is_committed in answered.committed.items() if is_committed}
    deadline = time.monotonic() + PATIENCE
    while not committed <= (found := set(committed_values(log))):
        if time.monotonic() > deadline:
            raise Broken(f"committed, and not there: {committed - found}")
        time.sleep(0.001)
    if wrong := found & (answered.committed.keys() - committed):
        raise Broken(f"aborted, and there: {wrong}")


def check_offset(ask: Asker, answered: Answered) -> None:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="plain", partition_indexes=[0])
    request = OffsetFetchRequest(group_id=GROUP, topics=[topic])
    deadline = time.monotonic() + PATIENCE
    while (answer := ask(request, 7)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        if time.monotonic() > deadline:
            raise Broken("the group's offsets are not loaded")
        time.sleep(0.001)
    found = answer.topics[0].partitions[0].committed_offset if answer.topics else -1
    if found not in answered.offsets:
        raise Broken(f"the group has committed {found} (error {answer.error_code}), not one of {answered.offsets}")


def check_table(log: Log, answered: Answered) -> None:
    found = {record.key: record.value for record in records_of(log)}
    for key, values in answered.table.items():
        if found.get(key) not in values:
            raise Broken(f"{key!r} has the value {found.get(key)!r}, not one of {values}")


def records_of(log: Log) -> Iterator[Record]:
    offset = log.log_start_offset
    while region := log.read(offset, 1 << 20).records:
        data = region.read()
        yield from (each for each in read_records(data) if each.offset >= offset)
        offset = list(iter_batches(data))[-1].last_offset + 1


def committed_values(log: Log) -> Iterator[bytes]:
    """Yield the values of the records that a consumer with read_committed reads."""
    values = {record.offset: record.value for record in records_of(log)}
    for offset in committed_offsets(log):
        value = values[offset]
        assert value is not None
        yield value


class Case(NamedTuple):
    """One disk error, and the number of steps that run before the power fails."""

    fault: Fault
    steps: int = ALL_STEPS

    def __str__(self) -> str:
        return f"{self.fault}, power cut after step {self.steps}"


def run(case: Case, seed: int) -> FaultyDisk:
    """Run one case. Raises Broken, and any exception that a request causes."""
    with tempfile.TemporaryDirectory(prefix="hmb-faults-", dir=MEMORY) as name:
        directory, left = Path(name) / "data", Path(name) / "left"
        disk = FaultyDisk(directory, case.fault)
        with disk.attached():
            ask = open_asker(directory, SETTINGS, sync=True)
        try:
            course = Course(ask, random.Random(seed))
            with disk.attached(), disk.failing():
                for _ in islice(course.steps(), case.steps):
                    pass
                disk.power_cut(left)
        finally:
            ask.close()
        if disk.synced_again:
            raise Broken(f"synced again after a failed sync: {disk.synced_again}")
        ask = open_asker(left, SETTINGS, sync=True)
        try:
            check(ask, course.answered)
        finally:
            ask.close()
        return disk


def count_calls(kind: str) -> int:
    """Run a case without errors. Return the number of calls in which an error of this kind could happen."""
    return run(Case(Fault(kind, sys.maxsize)), 0).count


def cases(seed: int, counts: dict[str, int]) -> Iterator[Case]:
    """Yield cases without end. Each case has a different kind of error from the previous one."""
    choose = random.Random(seed)
    while True:
        for kind in KINDS:
            first, length = choose.randrange(1, counts[kind] + 1), choose.choice((1, 1, 1, 2, 5, 25))
            # The power failure comes after the error. Between the two, later requests may have repaired the damage.
            yield Case(Fault(kind, first, length), choose.randrange(first * ALL_STEPS // counts[kind], ALL_STEPS + 1))


def main() -> int:
    parser = argparse.ArgumentParser(description="Inject disk errors, simulate a power failure, and check the data.")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run only the case with this number, and print the broker's log")
    options = parser.parse_args()
    if options.case is None:
        logging.disable(logging.CRITICAL)
    calls = {kind: count_calls(kind) for kind in KINDS}
    print(", ".join(f"{number} calls for '{kind}'" for kind, number in calls.items()))
    broken = 0
    for number, case in zip(range(options.cases), cases(options.seed, calls), strict=False):
        if options.case not in (None, number):
            continue
        try:
            disk = run(case, options.seed)
            if options.case is not None:
                print(*disk.hit, sep="\n")
        except Exception as error:
            broken += 1
            print(f"case {number} ({case}): {type(error).__name__}: {error}")
            if options.case is not None:
                raise
    print(f"{options.cases} cases, {broken} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
