"""Tests of the transaction coordinator with several threads, a full disk and a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.coordinator.transactions.hanging import OpenTransaction
from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TRANSACTIONS_TOPIC, TopicPartition
from hmb.records import ControlType, EndTransactionMarker, Record, RecordBatch, encode_batch
from hmb.records.producer_numbers import ProducerIdAndEpoch
from hmb.storage.log import Log
from hmb.storage.producer_state import ActiveProducer, ProducerStateEntry
from hmb.storage.state.manifest import Manifest
from tests.coordinator.conftest import Topic

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FULL = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")


class Groups:
    """A replacement of GroupCoordinator. It always reports that its groups are loaded."""

    def __init__(self) -> None:
        self.loaded = threading.Event()
        self.loaded.set()


class Markers:
    """A replacement of MarkerWriter that only stores the requested markers in a list."""

    def __init__(self) -> None:
        self.groups = Groups()
        self.written: list[tuple[ControlType, ProducerIdAndEpoch, frozenset[TopicPartition]]] = []
        self.before: Callable[[], None] = lambda: None
        self.open: list[OpenTransaction] = []  # the open transactions in the logs

    def open_transactions(self) -> list[OpenTransaction]:
        return self.open

    def begin_one(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partition: TopicPartition, version: int
    ) -> Callable[[], None]:
        self.write(marker, producer, [partition])
        return lambda: None

    def write(
        self, marker: EndTransactionMarker, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> None:
        self.before()
        self.written.append((marker.control_type, producer, frozenset(partitions)))


class Clock:
    now = 1_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def markers() -> Markers:
    return Markers()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state_topic(tmp_path: Path) -> Topic:
    topic = Topic(tmp_path, 2)
    topic.name = TRANSACTIONS_TOPIC
    topic.make()
    return topic


Start = Callable[[], TransactionCoordinator]


@pytest.fixture
def start(state_topic: Topic, markers: Markers, clock: Clock, tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a coordinator.

    Each new coordinator loads the records that the previous one has written.
    """
    started: list[TransactionCoordinator] = []

    def start() -> TransactionCoordinator:
        journal = Journal(state_topic, must_sync=lambda: True, clock=clock)
        ids = ProducerIds(tmp_path / "ids", Manifest(tmp_path))
        started.append(TransactionCoordinator(journal, ids, markers, lambda: 10_000, clock=clock))  # type: ignore[arg-type]
        started[-1].start()
        assert started[-1].loaded.wait(30)
        return started[-1]

    yield start
    for coordinator in started:
        coordinator.stop(0)


@pytest.fixture
def transactions(start: Start) -> TransactionCoordinator:
    return start()


def begun(transactions: TransactionCoordinator, name: str = "tx", timeout: int = 5_000) -> ProducerIdAndEpoch:
    producer = transactions.init_producer(name, timeout, None)
    transactions.add_partitions(name, producer, {T0}, version=0)
    return producer


def refused(step: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        step()
    return caught.value.code


def fail() -> None:
    raise FULL


def test_a_transaction_change_that_cannot_be_written_has_no_effect(
    transactions: TransactionCoordinator, markers: Markers, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = begun(transactions)
    with monkeypatch.context() as patched:
        patched.setattr(Log, "append_from_coordinator", lambda *arguments, **options: fail())
        assert refused(lambda: transactions.end("tx", producer, 0, committed=True)) is ErrorCode.NOT_COORDINATOR
        assert transactions.describe("tx").state is TransactionState.ONGOING
        assert refused(lambda: transactions.init_producer("new", 5_000, None)) is ErrorCode.NOT_COORDINATOR
    assert markers.written == []
    transactions.end("tx", producer, 0, committed=True)
    assert markers.written == [(ControlType.COMMIT, producer, {T0})]
    assert transactions.init_producer("new", 5_000, None).epoch == 0


def test_a_decided_transaction_gets_its_markers_as_soon_as_possible(
    transactions: TransactionCoordinator, markers: Markers
) -> None:
    producer = begun(transactions)
    markers.before = fail
    transactions.end("tx", producer, 0, committed=False)
    assert transactions.describe("tx").state is TransactionState.PREPARE_ABORT
    assert refused(lambda: transactions.end("tx", producer, 0, committed=False)) is ErrorCode.CONCURRENT_TRANSACTIONS
    transactions.abort_timed_out()
    assert transactions.describe("tx").state is TransactionState.PREPARE_ABORT
    markers.before = lambda: None
    transactions.abort_timed_out()
    assert transactions.describe("tx").state is TransactionState.COMPLETE_ABORT
    assert markers.written == [(ControlType.ABORT, producer, {T0})]


def test_a_decided_transaction_gets_its_markers_at_the_next_start(
    transactions: TransactionCoordinator, markers: Markers, start: Start, state_topic: Topic
) -> None:
    producer = begun(transactions)
    open_one = begun(transactions, "open")
    markers.before = fail
    transactions.end("tx", producer, 0, committed=True)
    markers.before = lambda: None
    state_topic.reopen()
    again = start()
    assert markers.written == [(ControlType.COMMIT, producer, {T0})]
    assert again.describe("tx").state is TransactionState.COMPLETE_COMMIT
    assert again.describe("open").state is TransactionState.ONGOING
    again.end("open", open_one, 0, committed=False)
    assert again.end("tx", producer, 0, committed=True) == producer, "a repetition over the restart"


def test_other_requests_wait_while_a_transaction_ends(transactions: TransactionCoordinator, markers: Markers) -> None:
    producer = begun(transactions)
    seen: list[ErrorCode] = []

    def requests_during_the_end() -> None:
        markers.before = lambda: None
        for step in (
            lambda: transactions.end("tx", producer, 0, committed=True),
            lambda: transactions.add_partitions("tx", producer, {T0}, version=0),
            lambda: transactions.init_producer("tx", 5_000, None),
            lambda: transactions.writing("tx", producer, T0).__enter__(),
        ):
            seen.append(refused(step))
        transactions.complete_prepared()  # This call skips the transaction, because another thread completes it.

    markers.before = requests_during_the_end
    transactions.end("tx", producer, 0, committed=True)
    assert seen == [ErrorCode.CONCURRENT_TRANSACTIONS] * 4
    assert len(markers.written) == 1


def test_a_record_is_written_before_the_decision_or_refused(
    transactions: TransactionCoordinator, markers: Markers
) -> None:
    producer = begun(transactions)
    events: list[str] = []
    markers.before = lambda: events.append("marker")
    ending = threading.Thread(target=lambda: transactions.end("tx", producer, 0, committed=True))
    with transactions.writing("tx", producer, T0):
        ending.start()
        events.append("record")
    ending.join(30)
    assert events == ["record", "marker"]
    assert refused(lambda: transactions.writing("tx", producer, T0).__enter__()) is ErrorCode.TRANSACTION_ABORTABLE


def test_time_limits(transactions: TransactionCoordinator, markers: Markers, clock: Clock) -> None:
    begun(transactions, "late", timeout=100)
    punctual = begun(transactions, "punctual", timeout=101)
    clock.now += 101
    transactions.abort_timed_out()
    assert [(how, producer.epoch) for how, producer, _ in markers.written] == [(ControlType.ABORT, 1)]
    transactions.end("punctual", punctual, 0, committed=True)
    clock.now += 500
    transactions.expire(501)
    assert {each.transactional_id for each in transactions.list()} == {"late", "punctual"}
    transactions.expire(500)
    assert transactions.list() == []


def test_expired_ids_do_not_return_after_a_restart(
    transactions: TransactionCoordinator, start: Start, state_topic: Topic
) -> None:
    transactions.init_producer("idle", 5_000, None)
    transactions.expire(0)
    state_topic.reopen()
    assert start().list() == []


@pytest.mark.parametrize("timeout", [0, -1, 10_001])
def test_a_timeout_has_its_limits(transactions: TransactionCoordinator, timeout: int) -> None:
    step = lambda: transactions.init_producer("tx", timeout, None)  # noqa: E731
    assert refused(step) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_a_transaction_that_cannot_end_does_not_block_the_others(
    transactions: TransactionCoordinator, markers: Markers, start: Start, state_topic: Topic
) -> None:
    producers = {name: begun(transactions, name) for name in ("bad", "good")}
    markers.before = fail
    for name, producer in producers.items():
        transactions.end(name, producer, 0, committed=True)

    def fault_of_ours() -> None:
        markers.before = lambda: None
        raise ZeroDivisionError

    markers.before = fault_of_ours
    state_topic.reopen()
    states = {each.transactional_id: each.state for each in start().list()}
    assert sorted(states.values()) == [TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT]


def test_an_error_in_one_abort_does_not_block_the_others(
    transactions: TransactionCoordinator, markers: Markers, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """If one abort fails, the coordinator still aborts the other transactions that have exceeded their timeout.

    The coordinator regularly searches for these transactions. Before a bug was fixed, an internal error in one abort
    prevented the other aborts, in this search and in each later search.
    """
    for name in ("bad", "good"):
        begun(transactions, name, timeout=100)
    clock.now += 101

    def internal_error() -> None:
        markers.before = lambda: None
        raise ZeroDivisionError("planted")

    markers.before = internal_error
    transactions.abort_timed_out()
    states = sorted(each.state for each in transactions.list())
    assert states == [TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT]
    assert "'bad': the transaction is not aborted" in caplog.text and "planted" in caplog.text
    transactions.abort_timed_out()
    assert {each.state for each in transactions.list()} == {TransactionState.COMPLETE_ABORT}


def test_an_id_that_fails_to_expire_does_not_block_the_others(
    transactions: TransactionCoordinator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("bad", "good"):
        transactions.init_producer(name, 5_000, None)
    append = Log.append_from_coordinator
    refusals = [FULL, ZeroDivisionError("planted")]

    def failing(*arguments: object, **options: object) -> object:
        if refusals:
            raise refusals.pop()
        return append(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Log, "append_from_coordinator", failing)
    for left in (2, 0):
        transactions.expire(0)
        assert len(transactions.list()) == left
    assert caplog.text.count(": the transactional id does not expire") == 2


# -- markers that are lost


def open_in(partition: TopicPartition, producer: ProducerIdAndEpoch) -> OpenTransaction:
    return OpenTransaction(partition, ActiveProducer(producer.producer_id, ProducerStateEntry(producer.epoch), 3))


def test_a_start_writes_the_missing_markers_of_ended_transactions(start: Start, markers: Markers) -> None:
    """After a start, the coordinator writes the missing markers of ended transactions.

    Before a bug was fixed, it did not write them. A lost marker then blocked consumers with read_committed forever.
    """
    first = start()
    ended = {}
    for name, committed in (("committed", True), ("aborted", False)):
        ended[name] = begun(first, name)
        first.end(name, ended[name], 0, committed=committed)
    ongoing = begun(first, "ongoing")
    first.stop(0)
    unknown = ProducerIdAndEpoch(9_000, 3)
    markers.open = [open_in(T0, producer) for producer in (*ended.values(), ongoing, unknown)]
    markers.open.append(open_in(T1, ongoing))
    markers.written.clear()
    start()
    assert markers.written == [
        (ControlType.COMMIT, ended["committed"], frozenset({T0})),
        (ControlType.ABORT, ended["aborted"], frozenset({T0})),
        (ControlType.ABORT, unknown, frozenset({T0})),
        (ControlType.ABORT, ongoing, frozenset({T1})),
    ]


def test_an_open_transaction_is_left_alone_while_a_part_of_the_journal_cannot_be_read(
    start: Start, markers: Markers, state_topic: Topic
) -> None:
    start().stop(0)
    log = state_topic.logs()[1]
    log.append_from_coordinator(RecordBatch.parse(encode_batch([Record(0, 0, None, b"no key")])))
    markers.open = [open_in(T0, ProducerIdAndEpoch(9_000, 3))]
    start()
    assert markers.written == []


def test_an_addition_of_version_2_waits_for_the_end_of_the_previous_transaction(
    transactions: TransactionCoordinator, markers: Markers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hmb.coordinator.transactions.coordinator.ADD_PATIENCE", 60.0)
    producer = begun(transactions)
    added = threading.Event()

    def add() -> None:
        """Add a partition with the next epoch. This request must wait until the markers are written."""
        transactions.add_partitions("tx", producer._replace(epoch=producer.epoch + 1), {T0}, VERSION_2)
        added.set()

    adding = threading.Thread(target=add)

    def while_the_markers_are_written() -> None:
        adding.start()
        assert not added.wait(0.02)

    markers.before = while_the_markers_are_written
    transactions.end("tx", producer, VERSION_2, committed=True)
    adding.join(60)
    assert added.is_set()
    assert transactions.describe("tx").partitions == {T0}
