"""Tests of the class `InFlightRecords`, which stores the states of the records in flight of a share-partition.

The last test compares an `InFlightRecords` object with a simple model. The model stores the state of each record
separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.coordinator.share.acknowledgement import Acknowledgement, check_acknowledgements
from hmb.coordinator.share.in_flight import AcquireLimits, InFlightRecords, Run, StateBatch
from hmb.coordinator.share.states import DELIVERY_STATES, DeliveryEvent, DeliveryState
from hmb.coordinator.share.stored_state import combined
from hmb.protocol.errors import ErrorCode, KafkaError

LIMIT, LOCK = 3, 100  # the delivery count limit, and the lock duration in ms
AVAILABLE, ACQUIRED = DeliveryState.AVAILABLE, DeliveryState.ACQUIRED
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
LIMITS = AcquireLimits(records=500, locks=2000, lock_duration=LOCK)


def batches(first: int, *sizes: int) -> list[range]:
    """Return the offsets of record batches that follow each other."""
    found = []
    for size in sizes:
        found.append(range(first, first + size))
        first += size
    return found


def acquire(records: InFlightRecords, member: str, first: int, *sizes: int, now: int = 0) -> list[Run]:
    return records.acquire(member, batches(first, *sizes), LIMITS, now)


def acknowledge(records: InFlightRecords, member: str, first: int, last: int, *types: int, now: int = 0) -> None:
    batch = Acknowledgement(first, last, types)
    records.acknowledge(member, [batch], limit=LIMIT, lock_duration=LOCK, now=now)


def states(records: InFlightRecords) -> list[tuple[int, int, str, int]]:
    return [(run.first, run.last, run.state.label, run.delivery_count) for run in records]


def test_a_member_acquires_and_accepts_a_part_of_a_batch() -> None:
    records = InFlightRecords(100)
    (run,) = acquire(records, "a", 100, 10)
    assert (run.first, run.last, run.delivery_count, run.member) == (100, 109, 1, "a")
    acknowledge(records, "a", 100, 104, ACCEPT)
    acknowledge(records, "a", 107, 109, ACCEPT, REJECT, RELEASE)
    assert records.start_offset == 105
    assert states(records) == [
        (105, 106, "Acquired", 1),
        (107, 107, "Acknowledged", 1),
        (108, 108, "Archived", 1),
        (109, 109, "Available", 1),
    ]
    assert records.first_available == 109
    assert records.complete_count == 2


def test_a_released_record_is_delivered_until_the_limit_and_then_archived() -> None:
    records = InFlightRecords(0)
    for delivery in range(1, LIMIT + 1):
        (run,) = acquire(records, "a", 0, 1)
        assert run.delivery_count == delivery
        acknowledge(records, "a", 0, 0, RELEASE)
    assert records.start_offset == records.next_offset == 1
    assert states(records) == []


def test_a_lock_times_out_and_another_member_gets_the_record() -> None:
    records = InFlightRecords(0)
    acquire(records, "a", 0, 2, now=0)
    assert records.next_deadline == LOCK
    records.time_out(LOCK - 1, LIMIT)
    assert states(records) == [(0, 1, "Acquired", 1)]
    records.time_out(LOCK, LIMIT)
    assert states(records) == [(0, 1, "Available", 1)]
    (run,) = acquire(records, "b", 0, 2)
    assert (run.member, run.delivery_count) == ("b", 2)
    with pytest.raises(KafkaError) as raised:
        acknowledge(records, "a", 0, 0, ACCEPT)
    assert raised.value.code is ErrorCode.INVALID_RECORD_STATE


def test_renewing_moves_the_deadline_and_stores_nothing() -> None:
    records = InFlightRecords(0)
    acquire(records, "a", 0, 2, now=0)
    acknowledge(records, "a", 0, 0, RENEW, now=50)
    assert records.take_update() is None
    records.time_out(LOCK, LIMIT)
    assert states(records) == [(0, 0, "Acquired", 1), (1, 1, "Available", 1)]


def test_a_session_that_ends_releases_only_the_records_of_its_member() -> None:
    records = InFlightRecords(0)
    acquire(records, "a", 0, 2)
    acquire(records, "b", 2, 2)
    records.release("a", LIMIT)
    assert states(records) == [(0, 1, "Available", 1), (2, 3, "Acquired", 1)]


def test_acknowledging_all_or_nothing() -> None:
    records = InFlightRecords(0)
    acquire(records, "a", 0, 2)
    acquire(records, "b", 2, 2)
    for first, last, code in ((0, 2, ErrorCode.INVALID_RECORD_STATE), (0, 9, ErrorCode.INVALID_REQUEST)):
        with pytest.raises(KafkaError) as raised:
            acknowledge(records, "a", first, last, ACCEPT)
        assert raised.value.code is code
    assert states(records) == [(0, 1, "Acquired", 1), (2, 3, "Acquired", 1)]


def test_acknowledging_below_the_start_offset_changes_nothing() -> None:
    records = InFlightRecords(0)
    acquire(records, "a", 0, 4)
    records.move_start_offset(2)
    acknowledge(records, "a", 0, 1, ACCEPT)
    assert states(records) == [(2, 3, "Acquired", 1)]


def test_acknowledging_twice_is_an_error() -> None:
    records = InFlightRecords(0)
    acquire(records, "a", 0, 4)
    acknowledge(records, "a", 1, 1, ACCEPT)
    with pytest.raises(KafkaError) as raised:
        acknowledge(records, "a", 1, 1, ACCEPT)
    assert raised.value.code is ErrorCode.INVALID_RECORD_STATE


def test_a_strict_limit_cuts_a_batch_and_the_other_mode_takes_it_whole() -> None:
    for is_strict, last in ((True, 11), (False, 19)):
        records = InFlightRecords(0)
        limits = AcquireLimits(12, 2000, LOCK, is_strict)
        (run,) = records.acquire("a", batches(0, 10, 10, 10), limits, 0)
        assert (run.first, run.last) == (0, last)


def test_the_number_of_records_in_flight_is_limited_for_new_records_only() -> None:
    records = InFlightRecords(0)
    limits = AcquireLimits(500, 10, LOCK)
    records.acquire("a", batches(0, 10), limits, 0)
    assert not records.can_acquire(10)
    acknowledge(records, "a", 3, 3, RELEASE)
    assert records.can_acquire(10)
    (run,) = records.acquire("b", batches(0, 10), limits, 0)
    assert (run.first, run.last) == (3, 3)


def test_offsets_that_compaction_has_removed_are_archived() -> None:
    records = InFlightRecords(0)
    acquire(records, "a", 0, 3)
    acknowledge(records, "a", 0, 2, RELEASE)
    (run,) = acquire(records, "a", 5, 2)  # Compaction has removed offsets 0 to 4. The batch contains offsets 5 and 6.
    assert (run.first, run.last) == (5, 6)
    assert records.start_offset == 5


def test_records_of_an_aborted_transaction_are_not_delivered() -> None:
    records = InFlightRecords(0)
    acquired = records.acquire("a", batches(0, 2, 2, 2), LIMITS, 0, aborted=[range(2, 4)])
    assert [(run.first, run.last) for run in acquired] == [(0, 1), (4, 5)]
    acknowledge(records, "a", 0, 1, ACCEPT)
    assert records.start_offset == 4


def test_the_stored_state_forgets_only_who_has_acquired_a_record() -> None:
    records = InFlightRecords(0)
    acquire(records, "a", 0, 6)
    acknowledge(records, "a", 0, 4, ACCEPT, RELEASE, ACCEPT, REJECT, RELEASE)
    update = records.take_update()
    assert update is not None
    assert update.start_offset == 1
    restored = InFlightRecords(update.start_offset, update.batches)
    assert states(restored) == [
        (1, 1, "Available", 1),
        (2, 2, "Acknowledged", 1),
        (3, 3, "Archived", 1),
        (4, 4, "Available", 1),
    ]
    assert records.take_update() is None


@pytest.mark.parametrize(
    "wrong",
    [
        [Acknowledgement(5, 4, [ACCEPT])],
        [Acknowledgement(0, 2, [ACCEPT, ACCEPT])],
        [Acknowledgement(0, 2, [])],
        [Acknowledgement(0, 0, [5])],
        [Acknowledgement(0, 0, [RENEW])],
        [Acknowledgement(0, 5, [ACCEPT]), Acknowledgement(5, 6, [ACCEPT])],
    ],
)
def test_wrong_acknowledgements_are_refused(wrong: Sequence[Acknowledgement]) -> None:
    with pytest.raises(KafkaError) as raised:
        check_acknowledgements(wrong, renews=False)
    assert raised.value.code is ErrorCode.INVALID_REQUEST


def test_only_acquired_records_can_be_acknowledged() -> None:
    of_members = {DeliveryEvent.ACCEPT, DeliveryEvent.RELEASE, DeliveryEvent.REJECT, DeliveryEvent.RENEW}
    for event in of_members:
        assert [state for state in DeliveryState if DELIVERY_STATES.allows(state, event)] == [ACQUIRED]


def test_no_event_leaves_a_final_state() -> None:
    assert {state for state in DeliveryState if state.is_final} == {DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED}


# The model: each record in flight is an object of its own.


@dataclass
class Modeled:
    state: DeliveryState = AVAILABLE
    count: int = 0
    member: str = ""
    deadline: int = 0

    def release(self) -> None:
        self.state = DeliveryState.ARCHIVED if self.count >= LIMIT else AVAILABLE
        self.member, self.deadline = "", 0


class Model:
    """A simple model of the class `InFlightRecords`. A dict contains each record's state by the record's offset."""

    def __init__(self) -> None:
        self.records: dict[int, Modeled] = {}
        self.end = 0

    def acquire(self, member: str, size: int, now: int) -> list[int]:
        first = min((offset for offset, each in self.records.items() if each.state is AVAILABLE), default=self.end)
        got = []
        for offset in range(first, first + size):
            record = self.records.setdefault(offset, Modeled()) if offset >= self.end else self.records.get(offset)
            if record is not None and record.state is AVAILABLE:
                record.state, record.count = ACQUIRED, record.count + 1
                record.member, record.deadline = member, now + LOCK
                got.append(offset)
        self.end = max(self.end, first + size)
        return got

    def acknowledge(self, member: str, first: int, types: list[int], now: int) -> bool:
        offsets = [offset for offset in range(first, first + len(types)) if offset >= self.start]
        if any(offset not in self.records or self.records[offset].member != member for offset in offsets):
            return False
        for offset in offsets:
            record, type = self.records[offset], types[offset - first]
            if type == RENEW:
                record.deadline = now + LOCK
            elif type == RELEASE:
                record.release()
            else:
                record.state = DeliveryState.ACKNOWLEDGED if type == ACCEPT else DeliveryState.ARCHIVED
                record.member, record.deadline = "", 0
        self.finish()
        return True

    def time_out(self, now: int) -> None:
        for record in self.records.values():
            if record.member and record.deadline <= now:
                record.release()
        self.finish()

    @property
    def start(self) -> int:
        return min(self.records, default=self.end)

    def finish(self) -> None:
        while self.records and self.records[self.start].state.is_final:
            del self.records[self.start]


ACTIONS = st.one_of(
    st.tuples(st.just("acquire"), st.sampled_from("ab"), st.integers(1, 6)),
    st.tuples(
        st.just("acknowledge"),
        st.sampled_from("ab"),
        st.integers(0, 8),
        st.lists(st.integers(1, 4), min_size=1, max_size=5),
    ),
    st.tuples(st.just("wait"), st.integers(1, LOCK)),
    st.tuples(st.just("restart")),
)


@given(actions=st.lists(ACTIONS, max_size=40))
@settings(max_examples=200, deadline=None)
def test_runs_behave_like_single_records(actions: list[tuple[str, ...]]) -> None:
    records, model, now = InFlightRecords(0), Model(), 0
    stored: list[StateBatch] = []
    for name, *values in actions:
        if name == "acquire":
            member, size = values
            first = records.first_available
            acquired = records.acquire(str(member), batches(first, int(size)), LIMITS, now)
            offsets = [offset for run in acquired for offset in range(run.first, run.last + 1)]
            assert offsets == model.acquire(str(member), int(size), now)
        elif name == "acknowledge":
            member, distance, types = values
            first = model.start + int(distance)
            batch = Acknowledgement(first, first + len(types) - 1, list(map(int, types)))
            try:
                records.acknowledge(str(member), [batch], limit=LIMIT, lock_duration=LOCK, now=now)
                done = True
            except KafkaError:
                done = False
            assert done == model.acknowledge(str(member), first, list(map(int, types)), now)
        elif name == "wait":
            now += int(values[0])
            records.time_out(now, LIMIT)
            model.time_out(now)
        update = records.take_update()
        if update is not None:
            stored = list(combined(stored, update.batches, update.start_offset))
        assert_equal(records, model)
        assert_restored(records, stored)


def assert_equal(records: InFlightRecords, model: Model) -> None:
    assert (records.start_offset, records.next_offset) == (model.start, model.end)
    found = {
        offset: Modeled(run.state, run.delivery_count, run.member, run.deadline)
        for run in records
        for offset in range(run.first, run.last + 1)
    }
    assert found == model.records
    assert records.complete_count == sum(each.state.is_final for each in model.records.values())


def assert_restored(records: InFlightRecords, stored: list[StateBatch]) -> None:
    """Check that a restart makes the Acquired records Available, and keeps every other state."""
    restored = InFlightRecords(records.start_offset, stored)
    kept = {offset: run for run in restored for offset in range(run.first, run.last + 1)}
    for run in records:
        for offset in range(run.first, run.last + 1):
            expected = AVAILABLE if run.state is ACQUIRED else run.state
            assert offset >= restored.next_offset or kept[offset].state is expected
