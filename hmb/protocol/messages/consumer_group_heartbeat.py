"""ConsumerGroupHeartbeat (68): join a group, stay in it, or leave it, with the consumer protocol (KIP-848).

In the consumer protocol, a member needs only this request to take part in the group, and sends it at regular
intervals. The broker assigns the partitions, and sends a member's assignment in the response. During a rebalance, each
member gives up only the partitions that it loses, and continues to read the others. In a request, a field may be null
if its value has not changed since the member's last heartbeat.
"""

from typing import ClassVar
from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ConsumerGroupHeartbeatRequest(Request, api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"):
    """The topics that a member subscribes to, and the partitions that the member owns.

    - To join the group, a member sends the epoch 0.
    - To leave the group, it sends the epoch -1. A static member that will soon return sends -2 instead.
    - Version 1 adds subscriptions by regular expression. In version 1, the member must choose its own member id
      (KIP-1082).
    """

    FIRST_VERSION_OF_OWN_IDS: ClassVar[int] = 1

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
    """The member's epoch, and the member's assignment if the assignment has changed.

    Version 1 has the same layout as version 0.
    """

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
