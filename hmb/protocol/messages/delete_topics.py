"""DeleteTopics (20): delete topics with all their records (KIP-4)."""

from typing import ClassVar
from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DeleteTopicsRequest(Request, api_key=ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+"):
    """The topics to delete.

    Versions 0 to 5 list the topics in `topic_names`. Version 4 uses the flexible encoding (KIP-482). Version 6 lists
    the topics in `topics`, each with its name or its id. Versions 1 to 3 and version 5 change only the response.
    """

    class DeleteTopicState(Struct):
        name:     str | None = t.string(nullable="0+", default=None)
        topic_id: UUID       = t.uuid()

    topics:      list[DeleteTopicState] = t.array(DeleteTopicState, "6+")
    topic_names: list[str]              = t.array(t.string, "0-5", ignorable=True)
    timeout_ms:  int                    = t.int32()


class DeleteTopicsResponse(Response, api_key=ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+"):
    """An error code for each topic.

    - Version 1 adds the throttle time. Version 2 has the same layout.
    - From version 3 on, the response can contain the error TOPIC_DELETION_DISABLED.
    - Version 4 uses the flexible encoding (KIP-482).
    - Version 5 adds error messages. From version 5 on, the response can contain the error THROTTLING_QUOTA_EXCEEDED
      (KIP-599).
    - Version 6 adds topic ids. If the broker does not know a requested id, the topic's name is null.
    """

    FIRST_VERSION_OF_THROTTLING: ClassVar[int] = 5

    class DeletableTopicResult(Struct):
        name:          str | None = t.string(nullable="6+")
        topic_id:      UUID       = t.uuid("6+", ignorable=True)
        error_code:    int        = t.int16()
        error_message: str | None = t.string("5+", nullable="5+", default=None, ignorable=True)

    throttle_time_ms: int                        = t.int32("1+", ignorable=True)
    responses:        list[DeletableTopicResult] = t.array(DeletableTopicResult)
