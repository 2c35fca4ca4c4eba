"""Builds a data directory with every kind of file, and reads all data that a broker serves from it.

`build` sends requests to a broker. They create topics with all record formats and a compacted topic. They also write
transactions, commit offsets of groups, delete records and change settings. `build` returns a copy of the directory
after a normal stop, a copy after a kill, and a list of the batches in each log file.

A `State` contains all data that clients can read from a broker: records, offsets, committed offsets of groups,
transactions, topics and settings. The tests compare the states of two brokers.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hmb import records
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.records import Codec, Record, encode_message_set, iter_batches
from hmb.storage.log import Log
from hmb.storage.transaction_index import AbortedTransaction
from tests.broker.calls import produce
from tests.broker.conftest import Asker, open_asker
from tests.reliability.disk_errors import Course

SETTINGS = {
    "log.segment.bytes": "700",
    "log.index.interval.bytes": "100",
    "log.flush.acks.all": "true",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "1000",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "0",
}
GROUPS = ("group", "second", "third")
STOP = threading.Event()  # This event is never set.
PATIENCE = 20.0  # seconds; both coordinators must load their journals within this time
TRIES = 12  # After this number of failed attempts to read the same offset, a reader raises Stuck.
READ_BYTES = 1_000
SEARCHES = 6  # the number of searches by timestamp in each partition

KeyAndValue = tuple[bytes | None, bytes | None]


class Stuck(AssertionError):
    """Raised if a coordinator loads its journal too slowly, or if TRIES attempts to read the same offset fail."""


class Batch(NamedTuple):
    """A batch in a log file. It begins at the byte `position`, and `end` is the position of the first byte after it."""

    position: int
    end: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True)
class Served:
    """The data that clients can read from one partition. `records` maps each offset to (key, value)."""

    start: int
    end: int
    records: dict[int, KeyAndValue]
    committed: frozenset[int]  # the offsets that a read_committed consumer gets
    times: tuple[int, ...]  # for each timestamp that the test searches for, the offset that the broker returns


@dataclass(frozen=True)
class State:
    """All data that clients can read from a broker."""

    partitions: dict[str, Served]
    groups: dict[str, int]
    transactions: dict[str, str]
    topics: dict[str, tuple[str, int, tuple[tuple[str, str], ...]]]  # topic -> (id, number of partitions, settings)


@dataclass
class DataSet:
    """Two copies of one data directory, and the data that clients must read from each of them.

    The copy `clean` has the files after a normal stop of the broker. The copy `killed` has the files after a kill.
    """

    clean: Path
    killed: Path
    expected: State
    batches: dict[str, list[Batch]] = field(default_factory=dict)  # path of the log file -> its batches
    timestamps: dict[str, list[int]] = field(default_factory=dict)  # partition -> timestamps to search for
    deleted: dict[str, dict[int, KeyAndValue]] = field(default_factory=dict)


def build(directory: Path, seed: int) -> DataSet:
    """Create the data directories below `directory`.

    The same `seed` creates the same data, except for timestamps and ids.
    """
    clean, killed = directory / "clean", directory / "killed"
    ask = open_asker(clean, SETTINGS, sync=True)
    course = Course(ask, random.Random(seed))
    for _ in course.steps():
        pass
    ask.broker.topics.create("old", 1)
    for magic, codec in ((0, Codec.NONE), (0, Codec.GZIP), (1, Codec.NONE), (1, Codec.GZIP)) * 3:
        sent = [Record(0, time.time_ns() // 1_000_000, b"k", b"%d" % number) for number in range(3)]
        ask(produce(encode_message_set(sent, magic, codec), topic="old", acks=-1), 2)
    for number, group in enumerate(GROUPS):
        commit(ask, group, 3 + number)
    ask.broker.configs.alter("", {"log.retention.ms": "86400000000"})
    course.housekeeping()
    assert ask.broker.producer_ids.allocate() >= 0
    shutil.copytree(clean, killed)
    ask.close()
    data = DataSet(clean, killed, State({}, {}, {}, {}))
    for path in sorted(killed.rglob("*.log")):
        data.batches[path.relative_to(killed).as_posix()] = list(batches_of(path))
    copy = directory / "first"
    shutil.copytree(clean, copy)
    ask = open_asker(copy, SETTINGS, sync=True)
    data.timestamps = {name: some_timestamps(log) for name, log in logs_of(ask)}
    data.expected = state_of(ask, data.timestamps)
    data.deleted = {name: records_before_start(log) for name, log in logs_of(ask)}
    ask.close()
    shutil.rmtree(copy)
    return data


def commit(ask: Asker, group: str, offset: int) -> int:
    """Commit `offset` for the group. Return the error code of the response."""
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="plain")
    topic.partitions = [topic.OffsetCommitRequestPartition(committed_offset=offset, committed_metadata="")]
    request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])
    return int(ask(request, 8).topics[0].partitions[0].error_code)


def batches_of(path: Path) -> Iterator[Batch]:
    position = 0
    for each in iter_batches(path.read_bytes()):
        yield Batch(position, position + each.size, each.base_offset, each.last_offset)
        position += each.size


def logs_of(ask: Asker) -> list[tuple[str, Log]]:
    return [(str(name), log) for name, log in ask.logs.items()]


def records_before_start(log: Log) -> dict[int, KeyAndValue]:
    """Return the deleted records that are still in the segment files.

    The offsets of these records are below the log start offset.
    """
    found = {}
    for path in sorted(log.directory.glob("*.log")):
        for each in iter_batches(path.read_bytes()):
            if not each.is_control:
                found |= {r.offset: (r.key, r.value) for r in each.records() if r.offset < log.log_start_offset}
    return found


def state_of(ask: Asker, timestamps: Mapping[str, Sequence[int]]) -> State:
    """Return all data that clients can read from the broker.

    The mapping `timestamps` contains the timestamps to search for in each partition. Raises Stuck if the coordinators
    have not loaded their journals after 20 s (PATIENCE), or if TRIES attempts to read the same offset fail.
    """
    wait_for_coordinators(ask)
    topics = {
        topic.name: (str(topic.id), len(topic.partitions), tuple(sorted(topic.configs.items())))
        for topic in ask.broker.topics.all()
    }
    settings = tuple(sorted(ask.broker.configs.altered("").items()))
    return State(
        {name: served(log, timestamps[name]) for name, log in logs_of(ask)},
        {group: position_of(ask, group) for group in GROUPS},
        {each.transactional_id: each.state.label for each in ask.broker.transactions.list()},
        topics | {"settings of all brokers": ("", 0, settings)},
    )


def wait_for_coordinators(ask: Asker) -> None:
    deadline = time.monotonic() + PATIENCE
    for loaded in (ask.broker.groups.loaded, ask.broker.transactions.loaded):
        if not loaded.wait(max(0.0, deadline - time.monotonic())):
            raise Stuck("a coordinator does not load its journal")


def served(log: Log, timestamps: Sequence[int]) -> Served:
    """Read the whole partition, and search it for each timestamp."""
    found = dict(read(log))
    committed = frozenset(offset for offset, _ in read(log, committed=True))
    results = [log.offset_for_timestamp(timestamp) for timestamp in timestamps]
    times = tuple(-1 if result is None else result.offset for result in results)
    return Served(log.log_start_offset, log.log_end_offset, found, committed, times)


def some_timestamps(log: Log) -> list[int]:
    """Return the newest timestamps of some segments of the log, one timestamp for each of these segments."""
    timestamps = sorted({segment.max_timestamp for segment in log.segments if segment.max_timestamp > 0})
    return timestamps[:: max(1, len(timestamps) // SEARCHES)]


def position_of(ask: Asker, group: str) -> int:
    """Return the group's committed offset.

    Return -1 if the group has none, and -2 if the coordinator reports an error.
    """
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="plain", partition_indexes=[0])
    answer = ask(OffsetFetchRequest(group_id=group, topics=[topic]), 7)
    if answer.error_code:
        return -2
    return answer.topics[0].partitions[0].committed_offset if answer.topics else -1


def read(log: Log, *, committed: bool = False) -> Iterator[tuple[int, KeyAndValue]]:
    """Read a partition as a client does.

    After an error or a wrong CRC, the function reads from the same offset again. Raises Stuck if TRIES attempts to
    read the same offset fail.
    """
    offset, tries, why = log.log_start_offset, 0, ""
    while offset < (log.last_stable_offset if committed else log.log_end_offset):
        if tries == TRIES:
            raise Stuck(f"{log.directory.name}, offset {offset}, {committed=}: {why}")
        tries += 1
        try:
            found = log.read(offset, READ_BYTES, committed=committed)
            if found.records is None:
                why = "nothing is there"
                continue
            left_out = LeftOut(found.aborted)
            for each in iter_batches(found.records.read()):
                each.check()
                is_hidden = left_out.hides(each) if committed else each.is_control
                if not is_hidden:
                    yield from ((r.offset, (r.key, r.value)) for r in each.records() if r.offset >= offset)
                offset, tries = each.last_offset + 1, 0
        except (KafkaError, OSError) as error:
            why = str(error)


class LeftOut:
    """Decides, for each batch of one Fetch response, whether a read_committed consumer skips the batch."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._coming = sorted(((each.first_offset, each.producer_id) for each in aborted), reverse=True)
        self._producers: set[int] = set()

    def hides(self, batch: records.Batch) -> bool:
        while self._coming and self._coming[-1][0] <= batch.last_offset:
            self._producers.add(self._coming.pop()[1])
        if batch.is_control:
            self._producers.discard(batch.producer_id)
            return True
        return batch.is_transactional and batch.producer_id in self._producers
