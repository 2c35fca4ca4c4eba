"""The records of `__share_group_state`, from which the broker restores its share-partitions after a restart.

The key of a record in `__share_group_state` names a share group and a partition. Two types of records have this key:
    type 0  ShareSnapshot   the complete state of the share-partition
    type 1  ShareUpdate     a change after the last snapshot: the new start offset, and the batches with a new state

A ShareSnapshot record can be long, and a ShareUpdate record is short. The broker usually writes 500 updates
between two snapshots. The setting `share.coordinator.snapshot.update.records.per.snapshot` changes this number.
Each update has the same `snapshot_epoch` as the last snapshot before it.

To restore a share-partition, the broker needs its newest snapshot and all later updates. Compaction would keep only
the last update, so the topic is not compacted. Instead, the broker sometimes writes a new snapshot of each
share-partition, and then deletes all records before these snapshots.

For example, a snapshot contains the start offset 100 and no batches. Member A acquires record 104, and the
broker writes nothing. Member B acquires and accepts records 105 to 109, and the broker writes one update:
records 105 to 109 are Acknowledged.

The broker never stores the state Acquired. At a restart, Acquired records such as record 104 become Available.

Source: KIP-932, KIP-1226; the JSON definitions in the jar of kafka-share-coordinator 4.3.0.
"""

from __future__ import annotations

from uuid import UUID

from hmb.coordinator.journal.records import Key, Keys, Value
from hmb.protocol import fields as t
from hmb.protocol.schema import Struct

NO_START_OFFSET = -1  # the share-partition has no start offset yet


class ShareSnapshotValue(Value, flexible="0+"):
    """The complete state of a share-partition. The timestamps are in ms."""

    class StateBatch(Struct):
        first_offset:   int = t.int64()
        last_offset:    int = t.int64()
        delivery_state: int = t.int8()
        delivery_count: int = t.int16()

    snapshot_epoch:          int              = t.int32()
    state_epoch:             int              = t.int32()
    leader_epoch:            int              = t.int32()
    start_offset:            int              = t.int64()
    delivery_complete_count: int              = t.int32(tag=0, default=-1)
    create_timestamp:        int              = t.int64()
    write_timestamp:         int              = t.int64()
    state_batches:           list[StateBatch] = t.array(StateBatch)


class ShareSnapshotKey(Key, record_type=0, value=ShareSnapshotValue):
    """The key of the snapshot of one share-partition."""

    group_id:  str  = t.string()
    topic_id:  UUID = t.uuid()
    partition: int  = t.int32()


class ShareUpdateValue(Value, flexible="0+"):
    """A change of a share-partition. A `start_offset` of -1 means that the start offset has not changed."""

    snapshot_epoch:          int                                 = t.int32()
    leader_epoch:            int                                 = t.int32()
    start_offset:            int                                 = t.int64()
    delivery_complete_count: int                                 = t.int32(tag=0, default=-1)
    state_batches:           list[ShareSnapshotValue.StateBatch] = t.array(ShareSnapshotValue.StateBatch)


class ShareUpdateKey(Key, record_type=1, value=ShareUpdateValue):
    """The key of a record that changes the state of one share-partition."""

    group_id:  str  = t.string()
    topic_id:  UUID = t.uuid()
    partition: int  = t.int32()


STATE_KEYS: Keys = {key.record_type: key for key in (ShareSnapshotKey, ShareUpdateKey)}
