"""ConsumerGroupHeartbeat (68): the single request of members with the consumer protocol (KIP-848).

Members join, stay alive, rebalance and leave with this one request. The broker assigns the partitions. Each member
gives up partitions and takes over others, step by step, so a rebalance never stops all members at once. A field that
has not changed since the last heartbeat may be null.
"""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ConsumerGroupHeartbeatRequest(Request, api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"):
    """The subscription of a member, and the partitions that it owns.

    Member epoch 0 joins the group, -1 leaves it, and -2 leaves it for a short time (only for static members). Version 1
    adds subscriptions by regular expression, and the member chooses its own id (KIP-1082).
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
    """The member's epoch, and its assignment if that has changed. Version 1 equals version 0."""

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
