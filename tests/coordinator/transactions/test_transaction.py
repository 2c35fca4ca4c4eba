"""Tests of the state transitions of one transactional id, without threads, clocks and disks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hmb.coordinator.journal.records import decode_key, decode_value
from hmb.coordinator.transactions.records import KEYS, TransactionLogKey, records_of, transaction_of
from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.transactional_id import Transaction
from hmb.protocol.enums import MAX_PRODUCER_EPOCH, NO_PRODUCER_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import ProducerIdAndEpoch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NEW = Transaction("tx", 7)
STATES = TransactionState
OLD, WITH_EPOCHS = 0, 2  # two transaction versions; in version 2, each transaction has its own epoch


def new_id() -> int:
    return 99


def no_id() -> int:
    raise AssertionError("the transaction must not request a new producer id")


def started(version: int = OLD) -> Transaction:
    empty = NEW.init(1000, None, 10, no_id)
    return empty.add(empty.producer, {T0}, version, 20)


def ended(committed: bool, version: int) -> Transaction:
    ongoing = started(version)
    return ongoing.end(ongoing.producer, committed, version, 30, no_id).complete(40)


def code(step: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        step()
    return caught.value.code


def test_a_transaction_from_its_beginning_to_its_end() -> None:
    empty = NEW.init(1000, None, 10, no_id)
    assert (empty.producer, empty.timeout, empty.state) == ((7, 0), 1000, STATES.EMPTY)
    one = empty.add(empty.producer, {T0}, OLD, 20)
    both = one.add(empty.producer, {T1}, OLD, 25)
    assert (both.state, both.partitions, both.started, both.updated) == (STATES.ONGOING, frozenset({T0, T1}), 20, 25)
    assert both.add(empty.producer, {T0}, OLD, 26) is both
    decided = both.end(empty.producer, True, OLD, 30, no_id)
    assert (decided.state, decided.partitions, decided.producer) == (STATES.PREPARE_COMMIT, frozenset({T0, T1}), (7, 0))
    over = decided.complete(35)
    assert (over.state, over.partitions, over.producer) == (STATES.COMPLETE_COMMIT, frozenset(), (7, 0))


def test_with_version_2_each_transaction_has_its_own_epoch() -> None:
    over = ended(True, WITH_EPOCHS)
    assert over.producer == (7, 1)
    again = over.add(over.producer, {T1}, WITH_EPOCHS, 50)
    assert (again.partitions, again.started) == (frozenset({T1}), 50)
    assert code(lambda: over.add(ProducerIdAndEpoch(7, 0), {T0}, WITH_EPOCHS, 50)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("state", [STATES.PREPARE_COMMIT, STATES.PREPARE_ABORT])
def test_no_transaction_begins_while_another_one_ends(state: TransactionState) -> None:
    ending = started().end(started().producer, state is STATES.PREPARE_COMMIT, OLD, 30, no_id)
    assert ending.state is state
    for step in (
        lambda: ending.add(ending.producer, {T1}, OLD, 40),
        lambda: ending.check(ending.producer),
        lambda: ending.init(1000, None, 40, no_id),
        lambda: ending.end(ending.producer, state is STATES.PREPARE_COMMIT, OLD, 40, no_id),
    ):
        assert code(step) is ErrorCode.CONCURRENT_TRANSACTIONS
    other = state is not STATES.PREPARE_COMMIT
    assert code(lambda: ending.end(ending.producer, other, OLD, 40, no_id)) is ErrorCode.INVALID_TXN_STATE


FENCED, INVALID, CONCURRENT = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS
SAME, BUMPED = "the answer of before", "a new epoch"
EMPTY_ONE = NEW.init(1000, None, 10, no_id)


@pytest.mark.parametrize(
    ("before", "committed", "epochs_ago", "expected"),
    [
        (EMPTY_ONE, False, 1, FENCED),
        (EMPTY_ONE, False, 0, BUMPED),
        (EMPTY_ONE, True, 1, FENCED),
        (EMPTY_ONE, True, 0, INVALID),
        (ended(False, WITH_EPOCHS), False, 1, SAME),
        (ended(False, WITH_EPOCHS), False, 0, BUMPED),
        (ended(False, WITH_EPOCHS), True, 1, INVALID),
        (ended(False, WITH_EPOCHS), True, 0, INVALID),
        (ended(True, WITH_EPOCHS), False, 1, INVALID),
        (ended(True, WITH_EPOCHS), False, 0, BUMPED),
        (ended(True, WITH_EPOCHS), True, 1, SAME),
        (ended(True, WITH_EPOCHS), True, 0, INVALID),
    ],
)
def test_the_table_of_kip_890(before: Transaction, committed: bool, epochs_ago: int, expected: object) -> None:
    """The test compares the results of EndTxn with a table from KIP-890.

    Transaction version 2 applies, and no transaction is open.
    """
    producer = ProducerIdAndEpoch(7, before.epoch - epochs_ago)

    def end() -> Transaction:
        return before.end(producer, committed, WITH_EPOCHS, 50, no_id)

    if expected == SAME:
        assert end() is before
    elif expected == BUMPED:
        assert (end().state, end().epoch, end().started) == (STATES.PREPARE_ABORT, before.epoch + 1, 50)
    else:
        assert code(end) is expected


@pytest.mark.parametrize("committed", [True, False])
def test_without_epochs_a_repeated_request_is_recognized_by_its_outcome(committed: bool) -> None:
    over = ended(committed, OLD)
    assert over.end(over.producer, committed, OLD, 50, no_id) is over
    assert code(lambda: over.end(over.producer, not committed, OLD, 50, no_id)) is INVALID
    assert code(lambda: EMPTY_ONE.end(EMPTY_ONE.producer, False, OLD, 50, no_id)) is INVALID


def test_a_repeated_request_waits_while_the_transaction_ends() -> None:
    ongoing = started(WITH_EPOCHS)
    ending = ongoing.end(ongoing.producer, True, WITH_EPOCHS, 30, no_id)
    assert code(lambda: ending.end(ongoing.producer, True, WITH_EPOCHS, 31, no_id)) is CONCURRENT
    assert code(lambda: ending.end(ending.producer, True, WITH_EPOCHS, 31, no_id)) is FENCED


def test_a_fenced_producer_gets_only_errors() -> None:
    ongoing = started()._replace(epoch=5)
    for producer, expected in (
        (ProducerIdAndEpoch(7, 4), FENCED),
        (ProducerIdAndEpoch(7, 6), FENCED),
        (ProducerIdAndEpoch(8, 5), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ):
        assert code(lambda p=producer: ongoing.add(p, {T1}, OLD, 30)) is expected  # type: ignore[misc]
        assert code(lambda p=producer: ongoing.end(p, True, OLD, 30, no_id)) is expected  # type: ignore[misc]
        assert code(lambda p=producer: ongoing.end(p, True, WITH_EPOCHS, 30, no_id)) is expected  # type: ignore[misc]


def test_a_new_producer_aborts_the_open_transaction_of_the_old_one() -> None:
    aborting = started().init(1000, None, 30, no_id)
    assert (aborting.state, aborting.epoch, aborting.partitions) == (STATES.PREPARE_ABORT, 1, frozenset({T0}))
    after = aborting.complete(35).init(2000, None, 40, no_id)
    assert (after.state, after.epoch, after.timeout, after.started) == (STATES.EMPTY, 2, 2000, -1)


def test_a_producer_continues_after_an_error_unless_it_was_fenced() -> None:
    """After an error, a producer sends InitProducerId with its id and epoch, and gets the next epoch (KIP-360).

    If the producer repeats this request because the response was lost, it gets the same epoch again. If a newer
    producer has started, the coordinator refuses the request of the old producer.
    """
    first = NEW.init(1000, None, 10, no_id)
    second = first.init(1000, first.producer, 20, no_id)
    assert (second.epoch, second.last_epoch) == (1, 0)
    assert second.init(1000, first.producer, 30, no_id).epoch == 1
    other = second.init(1000, None, 40, no_id)
    assert other.epoch == 2
    for known in (first.producer, second.producer, ProducerIdAndEpoch(8, 2)):
        assert code(lambda k=known: other.init(1000, k, 50, no_id)) is FENCED  # type: ignore[misc]
    assert NEW.init(1000, ProducerIdAndEpoch(4711, 3), 10, no_id).producer == (7, 0), "its id was forgotten"


def test_a_fence_also_forgets_the_epoch_of_a_repeated_request() -> None:
    """After the coordinator has fenced a producer, the producer cannot repeat an earlier InitProducerId request.

    1. The producer sends InitProducerId with epoch 0, and gets epoch 1.
    2. The coordinator aborts the transaction, and raises the epoch to 2. So it fences the producer.
    3. The producer repeats the request with epoch 0. The coordinator must refuse it, and not return epoch 1 again.
    """
    first = NEW.init(1000, None, 10, no_id)
    second = first.init(1000, first.producer, 20, no_id)
    fenced = second.add(second.producer, {T0}, OLD, 30).fence(40).complete(50)
    assert code(lambda: fenced.init(1000, first.producer, 60, no_id)) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("knows", [False, True])
def test_when_the_epochs_are_used_up_there_is_a_new_id(knows: bool) -> None:
    last = NEW._replace(epoch=MAX_PRODUCER_EPOCH - 1)
    known = last.producer if knows else None
    rotated = last.init(1000, known, 10, new_id)
    assert (rotated.producer, rotated.previous_producer_id) == ((99, 0), 7)
    assert rotated.last_epoch == (MAX_PRODUCER_EPOCH - 1 if knows else NO_PRODUCER_EPOCH)
    if known is not None:
        assert rotated.init(1000, known, 20, no_id).producer == (99, 0), "the producer has not received the response"


def test_when_the_epochs_are_used_up_at_an_end_the_markers_have_the_old_id() -> None:
    ongoing = started(WITH_EPOCHS)._replace(epoch=MAX_PRODUCER_EPOCH - 1)
    ending = ongoing.end(ongoing.producer, True, WITH_EPOCHS, 30, new_id)
    assert (ending.producer, ending.next_producer_id) == ((7, MAX_PRODUCER_EPOCH), 99)
    over = ending.complete(40)
    assert (over.producer, over.next_producer_id) == ((99, 0), -1)
    assert over.end(ongoing.producer, True, WITH_EPOCHS, 50, no_id) is over, "a repetition is known by the old id"
    fenced = ongoing._replace(epoch=MAX_PRODUCER_EPOCH).fence(30)
    assert (fenced.state, fenced.epoch) == (STATES.PREPARE_ABORT, MAX_PRODUCER_EPOCH)


def test_only_open_transactions_time_out() -> None:
    ongoing = started()
    assert [ongoing.is_timed_out(now) for now in (1020, 1021)] == [False, True]
    assert not ended(True, OLD).is_timed_out(10**9)
    over = ended(True, OLD)
    assert [over.is_idle(now, 100) for now in (139, 140)] == [False, True]
    assert not ongoing.is_idle(10**9, 100)
    assert over.expire(200).state is STATES.DEAD


@pytest.mark.parametrize(
    "transaction",
    [EMPTY_ONE, started(), started(WITH_EPOCHS), ended(False, WITH_EPOCHS), started().fence(30)],
    ids=lambda transaction: transaction.state.label,
)
def test_a_written_state_is_read_back_unchanged(transaction: Transaction) -> None:
    ((key, value),) = records_of(transaction)
    decoded = decode_key(key, KEYS)
    assert isinstance(decoded, TransactionLogKey)
    assert value is not None
    assert transaction_of(decoded, decode_value(decoded, value)) == transaction._replace(last_epoch=NO_PRODUCER_EPOCH)


def test_a_dead_transactional_id_is_a_tombstone() -> None:
    ((_, value),) = records_of(ended(True, OLD).expire(200))
    assert value is None
