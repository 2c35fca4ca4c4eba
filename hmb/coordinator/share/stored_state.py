"""The stored state of one share-partition, and the journal records that contain this state.

A `ShareState` is the content of the newest ShareSnapshot record, plus the changes in all later ShareUpdate records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from hmb.coordinator.journal.records import KeyAndValue, encode_key, encode_value
from hmb.coordinator.share.in_flight import StateBatch, Update, joined
from hmb.coordinator.share.state_records import (
    NO_START_OFFSET,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from hmb.coordinator.share.states import DeliveryState
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import PartitionId


class ShareState(NamedTuple):
    """The stored state of one share-partition. The times are in ms since 1970.

    `complete_count` is the number of records at or above the start offset that are Acknowledged or Archived. It is
    -1 if the number is not known.

    `updates` is the number of updates after the newest snapshot. After a failed write, the coordinator sets it to
    `updates_per_snapshot`, so that the next record is a snapshot.
    """

    state_epoch: int
    start_offset: int
    leader_epoch: int = 0
    complete_count: int = -1
    batches: Sequence[StateBatch] = ()
    snapshot_epoch: int = 0
    created: int = 0
    written: int = 0
    updates: int = 0

    def updated(self, update: Update, leader_epoch: int, now: int) -> ShareState:
        """Return a new state: this state with the changes in `update`."""
        start = self.start_offset if update.start_offset == NO_START_OFFSET else update.start_offset
        return self._replace(
            start_offset=start,
            leader_epoch=max(self.leader_epoch, leader_epoch),
            complete_count=update.complete_count,
            batches=combined(self.batches, update.batches, start),
            written=now,
            updates=self.updates + 1,
        )

    def as_snapshot(self) -> ShareState:
        """Return a copy of this state, for a new ShareSnapshot record. The snapshot epoch of the copy is greater by 1.

        The field `updates` counts the ShareUpdate records after the newest snapshot. In the copy, it is 0.
        """
        return self._replace(snapshot_epoch=self.snapshot_epoch + 1, updates=0)


def combined(old: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int) -> Sequence[StateBatch]:
    """Return the state batches after an update. Where batches overlap, `new` replaces `old`.

    For example, the old batch of the offsets 0 to 9 is Available, and the new batch 3 to 5 is Archived. The result
    is 0 to 2 Available, 3 to 5 Archived, and 6 to 9 Available. The result contains no offsets below `start_offset`.
    """
    batches = list(old)
    for batch in new:
        kept: list[StateBatch] = []
        for each in batches:
            if each.first < batch.first:
                kept.append(each._replace(last=min(each.last, batch.first - 1)))
            if each.last > batch.last:
                kept.append(each._replace(first=max(each.first, batch.last + 1)))
        batches = [*kept, batch]
    current = (each._replace(first=max(each.first, start_offset)) for each in batches if each.last >= start_offset)
    return joined(sorted(current))


def snapshot_record(group_id: str, partition: PartitionId, state: ShareState) -> KeyAndValue:
    """Return the ShareSnapshot record, which contains the complete state."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created,
        write_timestamp=state.written,
        state_batches=[_encoded(batch) for batch in state.batches],
    )
    return _snapshot_key(group_id, partition), encode_value(value)


def update_record(group_id: str, partition: PartitionId, state: ShareState, update: Update) -> KeyAndValue:
    """Return a ShareUpdate record, which contains only the change `update`. `state` is the state after this change."""
    key = ShareUpdateKey(group_id=group_id, topic_id=partition.topic_id, partition=partition.partition)
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.complete_count,
        state_batches=[_encoded(batch) for batch in update.batches],
    )
    return encode_key(key), encode_value(value)


def tombstone(group_id: str, partition: PartitionId) -> KeyAndValue:
    """Return the record that deletes the state of a share-partition."""
    return _snapshot_key(group_id, partition), None


def replayed(state: ShareState | None, value: ShareSnapshotValue | ShareUpdateValue | None) -> ShareState | None:
    """Apply the next record of the log to `state`, and return the new state. `value` is None for a tombstone."""
    if isinstance(value, ShareSnapshotValue):
        return ShareState(
            state_epoch=value.state_epoch,
            start_offset=value.start_offset,
            leader_epoch=value.leader_epoch,
            complete_count=value.delivery_complete_count,
            batches=[_decoded(batch) for batch in value.state_batches],
            snapshot_epoch=value.snapshot_epoch,
            created=value.create_timestamp,
            written=value.write_timestamp,
        )
    if value is None or state is None:
        return None
    batches = [_decoded(batch) for batch in value.state_batches]
    update = Update(value.start_offset, value.delivery_complete_count, batches)
    return state.updated(update, value.leader_epoch, state.written)


def _snapshot_key(group_id: str, partition: PartitionId) -> bytes:
    return encode_key(ShareSnapshotKey(group_id=group_id, topic_id=partition.topic_id, partition=partition.partition))


def _encoded(batch: StateBatch) -> ShareSnapshotValue.StateBatch:
    return ShareSnapshotValue.StateBatch(
        first_offset=batch.first,
        last_offset=batch.last,
        delivery_state=batch.state,
        delivery_count=batch.delivery_count,
    )


def _decoded(batch: ShareSnapshotValue.StateBatch) -> StateBatch:
    return StateBatch(batch.first_offset, batch.last_offset, delivery_state(batch), batch.delivery_count)


class WithState(Protocol):
    """A range of records whose delivery state is a number, for example 2 for Acknowledged.

    The coordinator reads such ranges from its journal and from requests. The function `delivery_state` converts the
    number to a `DeliveryState`.
    """

    delivery_state: int


def delivery_state(batch: WithState) -> DeliveryState:
    """Return the delivery state of a batch. Raises INVALID_REQUEST if the number of the state is unknown."""
    try:
        return DeliveryState(batch.delivery_state)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{batch.delivery_state} is not a delivery state") from None


def check_batches(batches: Iterable[StateBatch]) -> None:
    """Raise INVALID_REQUEST if a batch is not valid.

    A batch is not valid if its first offset is negative or greater than its last offset. It is also not valid if
    its delivery state is Acquired, because this state is never stored.
    """
    for batch in batches:
        if not 0 <= batch.first <= batch.last or batch.state is DeliveryState.ACQUIRED:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{batch} has invalid offsets or an invalid delivery state")
