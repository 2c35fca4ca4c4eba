"""ConsumerGroupHeartbeat (68): the one request of KIP-848's members: join, live, rebalance, leave.

There is no barrier: the broker assigns the partitions, and each member gives up and takes over its own, step by step.
Fields that have not changed since the last heartbeat may be left null.
"""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ConsumerGroupHeartbeatRequest(Request, api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"):
    """What the member is, wants and owns.  Epoch 0 joins, -1 leaves, -2 leaves for a while as a static member does.

    v1: subscription by a regular expression; the member chooses its id itself (KIP-1082).
    """

    class TopicPartitions(Struct):
        topic_id:   UUID      = t.uuid()
        partitions: list[int] = t.array(t.int32)

    group_id:               str                          = t.string()
    member_id:              str                          = t.string()
    member_epoch:           int                          = t.int32()
    instance_id:            str | None                   = t.string(nullable="0+", default=None)
    rack_id:                str | None                   = t.string(nullable="0+", default=None)
    rebalance_timeout_ms:   int                          = t.int32(default=-1)
    subscribed_topic_names: list[str] | None             = t.array(t.string, nullable="0+", default=None)
    subscribed_topic_regex: str | None                   = t.string("1+", nullable="1+", default=None)
    server_assignor:        str | None                   = t.string(nullable="0+", default=None)
    topic_partitions:       list[TopicPartitions] | None = t.array(TopicPartitions, nullable="0+", default=None)


class ConsumerGroupHeartbeatResponse(Response, api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"):
    """The member's epoch, and its assignment where that has changed.  v1: no change."""

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
