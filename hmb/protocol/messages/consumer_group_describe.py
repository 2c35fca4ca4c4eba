"""ConsumerGroupDescribe (69): return the state and the members of groups that use the consumer protocol (KIP-848)."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ConsumerGroupDescribeRequest(Request, api_key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+"):
    """A request to describe groups."""

    group_ids:                     list[str] = t.array(t.string)
    include_authorized_operations: bool      = t.boolean()


class ConsumerGroupDescribeResponse(Response, api_key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+"):
    """Each group's state, and the current and the target assignment of each of its members.

    Version 1 adds the type of each member: a member uses the classic or the consumer protocol (KIP-1099).
    """

    class DescribedGroup(Struct):
        class Member(Struct):
            class Assignment(Struct):
                class TopicPartitions(Struct):
                    topic_id:   UUID      = t.uuid()
                    topic_name: str       = t.string()
                    partitions: list[int] = t.array(t.int32)

                topic_partitions: list[TopicPartitions] = t.array(TopicPartitions)

            member_id:              str        = t.string()
            instance_id:            str | None = t.string(nullable="0+", default=None)
            rack_id:                str | None = t.string(nullable="0+", default=None)
            member_epoch:           int        = t.int32()
            client_id:              str        = t.string()
            client_host:            str        = t.string()
            subscribed_topic_names: list[str]  = t.array(t.string)
            subscribed_topic_regex: str | None = t.string(nullable="0+", default=None)
            assignment:             Assignment = t.struct(Assignment)
            target_assignment:      Assignment = t.struct(Assignment)
            member_type:            int        = t.int8("1+", default=-1, ignorable=True)

        error_code:            int          = t.int16()
        error_message:         str | None   = t.string(nullable="0+", default=None)
        group_id:              str          = t.string()
        group_state:           str          = t.string()
        group_epoch:           int          = t.int32()
        assignment_epoch:      int          = t.int32()
        assignor_name:         str          = t.string()
        members:               list[Member] = t.array(Member)
        authorized_operations: int          = t.int32(default=-2147483648)

    throttle_time_ms: int                  = t.int32()
    groups:           list[DescribedGroup] = t.array(DescribedGroup)
