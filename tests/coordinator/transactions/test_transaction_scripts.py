"""Tests of transactions. Each goldenscript (a file in tests/scripts/transactions) lists commands and their output.

    init PRODUCER [timeout=MS]             send InitProducerId
    init PRODUCER knows=yes                send InitProducerId with the producer's last producer id and epoch
    add PRODUCER PARTITION ...             add partitions to the transaction
    write PRODUCER PARTITION VALUE         append a record in the transaction
    offsets PRODUCER GROUP OFFSET          commit an offset of the group in the transaction
    commit | abort PRODUCER                end the transaction by the rules of transaction version 1
    commit | abort PRODUCER version=2      end the transaction by the rules of transaction version 2
    wait MS                                let time pass, and abort late transactions
    full | freed                           fill or free the disk to which markers are written
    restart                                restart the broker, which restores its state from the logs
    log PARTITION                          print all batches and the last stable offset
    read PARTITION                         print the records that a read_committed consumer receives
    committed GROUP                        print the committed offset

All producers of a script have the transactional id `tx`. Each producer uses the producer id and the epoch of the last
InitProducerId or EndTxn response that it has received.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hmb.coordinator.group import Commit
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.offsets import CommittedOffset
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.coordinator.transactions.markers import MarkerWriter
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TRANSACTIONS_TOPIC, TopicPartition
from hmb.records import Record, RecordBatch, control_type, encode_batch, iter_batches
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.storage.log import Log
from hmb.storage.state.manifest import Manifest
from hmb.units import now_ms
from tests.coordinator.conftest import Topic
from tests.coordinator.settings import consumer_group_settings, group_settings
from tests.coordinator.test_groups import Topics
from tests.scripts import goldenscript
from tests.storage.transactions import committed_offsets

SCRIPTS = Path(__file__).parents[2] / "scripts" / "transactions"
ID = "tx"


class Session:
    """The broker of one script: its logs and its coordinators."""

    def __init__(self, directory: Path) -> None:
        self.now = 0
        self.is_full = False
        self.producers: dict[str, ProducerIdAndEpoch] = {}
        self.sequences: dict[tuple[ProducerIdAndEpoch, str], int] = {}
        self.directory = directory
        self.topics = {name: Topic(directory, 1) for name in ("__consumer_offsets", TRANSACTIONS_TOPIC, "t", "u")}
        for name, topic in self.topics.items():
            topic.directory = directory / name
            topic.directory.mkdir()
            topic.name = name
            topic.make()
        self._start()

    def _start(self) -> None:
        journals = [Journal(self.topics[name], must_sync=lambda: False) for name in list(self.topics)[:2]]
        consumer_settings = consumer_group_settings()
        self.groups = GroupCoordinator(journals[0], group_settings(), Topics(), lambda group_id: consumer_settings)
        markers = MarkerWriter(self._log, lambda: (), self.groups, lambda: False)
        ids = ProducerIds(self.directory / "ids", Manifest(self.directory))
        self.transactions = TransactionCoordinator(journals[1], ids, markers, lambda: 10**6, clock=lambda: self.now)
        self.groups.start()
        self.transactions.start()
        assert self.transactions.loaded.wait(30)

    def _log(self, partition: TopicPartition) -> Log:
        if self.is_full:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
        return self.topics[partition.topic].opened[0]

    def close(self) -> None:
        self.transactions.stop(0)
        self.groups.stop(0)

    def execute(self, command: str, words: list[str], options: dict[str, str]) -> Iterator[str]:
        before = self._state()
        try:
            yield from getattr(self, command)(*words, **options)
        except KafkaError as error:
            yield error.code.name
        if (after := self._state()) != before:
            yield f"{before} -> {after}"

    def _state(self) -> str:
        with suppress(KafkaError):
            return self.transactions.describe(ID).state.label
        return "unknown"

    def init(self, name: str, timeout: str = "1000", knows: str = "") -> Iterator[str]:
        known = self.producers[name] if knows else None
        self.producers[name] = self.transactions.init_producer(ID, int(timeout), known)
        yield f"{name}: producer %d, epoch %d" % self.producers[name]

    def add(self, name: str, *partitions: str) -> Iterator[str]:
        self.transactions.add_partitions(ID, self.producers[name], {_partition(p) for p in partitions}, 0)
        yield from ()

    def write(self, name: str, where: str, value: str) -> Iterator[str]:
        producer, partition = self.producers[name], _partition(where)
        sequence = self.sequences.get((producer, where), 0)
        record = Record(timestamp=now_ms(), key=b"k", value=value.encode())
        numbers = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, "base_sequence": sequence}
        batch = RecordBatch.parse(encode_batch([record], transactional=True, **numbers))  # type: ignore[arg-type]
        with self.transactions.writing(ID, producer, partition):
            offset = self.topics[partition.topic].opened[0].append(batch).base_offset
        self.sequences[producer, where] = sequence + 1
        yield f"offset {offset}"

    def offsets(self, name: str, group: str, offset: str) -> Iterator[str]:
        producer, partition = self.producers[name], self.groups.offsets.partition_for(group)
        self.transactions.add_partitions(ID, producer, {partition}, 0)
        offsets = {TopicPartition("t", 0): CommittedOffset(int(offset), -1, "", 0)}
        with self.transactions.writing(ID, producer, partition):
            commit = self.groups.offsets.begin_commit(group, Commit("", -1, None, 3, offsets, producer))
        self.groups.offsets.finish(commit)
        yield from ()

    def commit(self, name: str, version: str = "1") -> Iterator[str]:
        yield from self._end(name, int(version), committed=True)

    def abort(self, name: str, version: str = "1") -> Iterator[str]:
        yield from self._end(name, int(version), committed=False)

    def _end(self, name: str, version: int, *, committed: bool) -> Iterator[str]:
        after = self.transactions.end(ID, self.producers[name], version, committed=committed)
        if after != self.producers[name]:
            self.producers[name] = after
            yield f"{name}: producer %d, epoch %d" % after

    def wait(self, ms: str) -> Iterator[str]:
        self.now += int(ms)
        self.transactions.abort_timed_out()
        yield from ()

    def full(self) -> Iterator[str]:
        self.is_full = True
        yield from ()

    def freed(self) -> Iterator[str]:
        self.is_full = False
        yield from ()

    def restart(self) -> Iterator[str]:
        self.close()
        for topic in self.topics.values():
            topic.reopen()
        self._start()
        yield from ()

    def log(self, where: str) -> Iterator[str]:
        log = self._log(_partition(where))
        region = log.read(0, 1 << 20).records
        for batch in iter_batches(region.read()) if region is not None else ():
            assert isinstance(batch, RecordBatch)
            (record,) = batch.records()
            what = control_type(record).name if batch.is_control else (record.value or b"").decode()
            yield f"{batch.base_offset}: {what}, producer {batch.producer_id}, epoch {batch.producer_epoch}"
        yield f"decided up to {log.last_stable_offset} of {log.log_end_offset}"

    def read(self, where: str) -> Iterator[str]:
        log = self._log(_partition(where))
        wanted = set(committed_offsets(log))
        region = log.read(0, 1 << 20).records
        for batch in iter_batches(region.read()) if region is not None else ():
            yield from ((r.value or b"").decode() for r in batch.records() if r.offset in wanted)

    def committed(self, group: str) -> Iterator[str]:
        found = self.groups.offsets.fetch(group, None)
        held = " (a transaction holds another)" if self.groups.offsets.pending(group) else ""
        yield f"{[each.offset for each in found.values()]}{held}"


def _partition(name: str) -> TopicPartition:
    return TopicPartition(name, 0)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_script_prints_its_expected_output(path: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    try:
        assert goldenscript.run(path, session.execute) == path.read_text(encoding="utf-8")
    finally:
        session.close()


def test_there_are_scripts() -> None:
    assert list(SCRIPTS.glob("*.txt"))
