"""CreatePartitions (37): add partitions to topics (KIP-195)."""

from typing import ClassVar

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class CreatePartitionsRequest(Request, api_key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+"):
    """The new total number of partitions of each topic.

    Version 2 uses the flexible encoding (KIP-482). Version 1 has the same layout as version 0, and version 3 has the
    same layout as version 2.
    """

    class CreatePartitionsTopic(Struct):
        class CreatePartitionsAssignment(Struct):
            broker_ids: list[int] = t.array(t.int32)

        name:        str                                     = t.string()
        count:       int                                     = t.int32()
        assignments: list[CreatePartitionsAssignment] | None = t.array(CreatePartitionsAssignment, nullable="0+")

    topics:        list[CreatePartitionsTopic] = t.array(CreatePartitionsTopic)
    timeout_ms:    int                         = t.int32()
    validate_only: bool                        = t.boolean()


class CreatePartitionsResponse(Response, api_key=ApiKey.CREATE_PARTITIONS, versions="0-3", flexible="2+"):
    """An error code for each topic.

    Version 2 uses the flexible encoding (KIP-482). From version 3 on, the response can contain the error
    THROTTLING_QUOTA_EXCEEDED (KIP-599).
    """

    FIRST_VERSION_OF_THROTTLING: ClassVar[int] = 3

    class CreatePartitionsTopicResult(Struct):
        name:          str        = t.string()
        error_code:    int        = t.int16()
        error_message: str | None = t.string(nullable="0+", default=None)

    throttle_time_ms: int                               = t.int32()
    results:          list[CreatePartitionsTopicResult] = t.array(CreatePartitionsTopicResult)
