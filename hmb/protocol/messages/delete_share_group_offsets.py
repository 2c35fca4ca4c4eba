"""DeleteShareGroupOffsets (92): delete a share group's offsets in some topics (KIP-932).

The group must have no members.
"""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DeleteShareGroupOffsetsRequest(Request, api_key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+"):
    """A request to delete the offsets of a share group in some topics."""

    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = t.string()

    group_id: str                                       = t.string()
    topics:   list[DeleteShareGroupOffsetsRequestTopic] = t.array(DeleteShareGroupOffsetsRequestTopic)


class DeleteShareGroupOffsetsResponse(Response, api_key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+"):
    """The result for each topic."""

    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name:    str        = t.string()
        topic_id:      UUID       = t.uuid()
        error_code:    int        = t.int16()
        error_message: str | None = t.string(nullable="0+", default=None)

    throttle_time_ms: int                                        = t.int32()
    error_code:       int                                        = t.int16()
    error_message:    str | None                                 = t.string(nullable="0+", default=None)
    responses:        list[DeleteShareGroupOffsetsResponseTopic] = t.array(DeleteShareGroupOffsetsResponseTopic)
