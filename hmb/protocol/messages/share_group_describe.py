"""ShareGroupDescribe (77): return the state and the members of share groups (KIP-932)."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ShareGroupDescribeRequest(Request, api_key=ApiKey.SHARE_GROUP_DESCRIBE, versions="1", flexible="0+"):
    """A request to describe share groups."""

    group_ids:                     list[str] = t.array(t.string)
    include_authorized_operations: bool      = t.boolean()


class ShareGroupDescribeResponse(Response, api_key=ApiKey.SHARE_GROUP_DESCRIBE, versions="1", flexible="0+"):
    """The state of each group, and the assignment of each of its members."""

    class DescribedGroup(Struct):
        class Member(Struct):
            class Assignment(Struct):
                class TopicPartitions(Struct):
                    topic_id:   UUID      = t.uuid()
                    topic_name: str       = t.string()
                    partitions: list[int] = t.array(t.int32)

                topic_partitions: list[TopicPartitions] = t.array(TopicPartitions)

            member_id:              str        = t.string()
            rack_id:                str | None = t.string(nullable="0+", default=None)
            member_epoch:           int        = t.int32()
            client_id:              str        = t.string()
            client_host:            str        = t.string()
            subscribed_topic_names: list[str]  = t.array(t.string)
            assignment:             Assignment = t.struct(Assignment)

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
