"""ShareGroupHeartbeat (76): join a share group, stay in it, or leave it (KIP-932).

A share group is a queue: several of its members may read one partition, and each record goes to one of them. A member
sends ShareGroupHeartbeat at regular intervals, and the broker assigns the partitions.

In a consumer group, a new owner of a partition must wait until the old owner has given up the partition. In a share
group, a new owner reads the partition at once, because several members may read the same partition.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ShareGroupHeartbeatRequest(Request, api_key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="1", flexible="0+"):
    """The topics that a member subscribes to.

    The member chooses its own id. It sends the epoch 0 to join the group, and the epoch -1 to leave it. The rack id
    and the list of topics may be null if they have not changed since the member's last heartbeat.

    HMB does not support version 0. Kafka used this version only in the early access of Kafka 4.0.
    """

    group_id:               str              = t.string()
    member_id:              str              = t.string()
    member_epoch:           int              = t.int32()
    rack_id:                str | None       = t.string(nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = t.array(t.string, nullable="0+", default=None)


class ShareGroupHeartbeatResponse(Response, api_key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="1", flexible="0+"):
    """The member's epoch, and the member's assignment if the assignment has changed."""

    class Assignment(Struct):
        class TopicPartitions(Struct):
            topic_id:   UUID      = t.uuid()
            partitions: list[int] = t.array(t.int32)

        topic_partitions: list[TopicPartitions] = t.array(TopicPartitions)

    throttle_time_ms:      int               = t.int32()
    error_code:            int               = t.int16()
    error_message:         str | None        = t.string(nullable="0+", default=None)
    member_id:             str | None        = t.string(nullable="0+", default=None)
    member_epoch:          int               = t.int32()
    heartbeat_interval_ms: int               = t.int32()
    assignment:            Assignment | None = t.struct(Assignment, nullable="0+", default=None)
