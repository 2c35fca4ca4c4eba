"""Tests of the stored state of share-partitions: updates, snapshots, and the decoder of `hmb dump-log`."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from hmb.coordinator.journal.records import decode_key, decode_value
from hmb.coordinator.journal_decoder import decode_offsets, decode_share_state
from hmb.coordinator.share.coordinator import SharePartitionId, check_share_key
from hmb.coordinator.share.group_state import ShareGroupState
from hmb.coordinator.share.in_flight import StateBatch, Update
from hmb.coordinator.share.member import ShareMember
from hmb.coordinator.share.state_records import STATE_KEYS
from hmb.coordinator.share.states import DeliveryState
from hmb.coordinator.share.stored_state import (
    ShareState,
    combined,
    replayed,
    snapshot_record,
    tombstone,
    update_record,
)
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import PartitionId
from hmb.records import Record

AVAILABLE, ACKNOWLEDGED = DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED
PARTITION = PartitionId(UUID(int=1), 3)


def test_a_new_batch_replaces_the_overlapping_part_of_old_batches() -> None:
    old = [StateBatch(0, 9, AVAILABLE, 1), StateBatch(10, 12, ACKNOWLEDGED, 1)]
    new = [StateBatch(3, 5, ACKNOWLEDGED, 2)]
    assert combined(old, new, 2) == [
        StateBatch(2, 2, AVAILABLE, 1),
        StateBatch(3, 5, ACKNOWLEDGED, 2),
        StateBatch(6, 9, AVAILABLE, 1),
        StateBatch(10, 12, ACKNOWLEDGED, 1),
    ]


def test_a_snapshot_and_its_updates_restore_the_state() -> None:
    state = ShareState(state_epoch=2, start_offset=100, snapshot_epoch=1, created=5, written=5)
    update = Update(103, 1, [StateBatch(105, 105, ACKNOWLEDGED, 1)])
    changed = state.updated(update, 0, 5)
    records = [snapshot_record("g", PARTITION, state), update_record("g", PARTITION, changed, update)]
    restored: ShareState | None = None
    for key, value in records:
        assert value is not None
        restored = replayed(restored, decode_value(decode_key(key, STATE_KEYS), value))
    assert restored == changed
    assert replayed(restored, None) is None
    assert tombstone("g", PARTITION)[1] is None


def test_the_records_are_shown_as_json() -> None:
    key, value = snapshot_record("g", PARTITION, ShareState(2, 100))
    shown = decode_share_state(Record(0, 0, key, value))
    assert json.loads(json.dumps(shown.key))["data"] == {
        "groupId": "g",
        "topicId": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partition": 3,
    }
    state = ShareGroupState("g", lambda now: None)
    state.put_metadata(ShareMember("m", topics=frozenset({"t"})))
    state.finish()
    ((key, value),) = state.writes[0].records
    assert value is not None
    assert json.loads(json.dumps(decode_offsets(Record(0, 0, key, value)).key))["type"] == "10"


def test_the_key_of_a_share_partition() -> None:
    check_share_key(str(SharePartitionId("group:with:colons", PARTITION)))
    for wrong in ("", "g", "g:t:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x", ":AAAAAAAAAAAAAAAAAAAAAQ:0"):
        with pytest.raises(KafkaError):
            check_share_key(wrong)
