"""DeleteTopics (20): remove topics with all their records.  KIP-4."""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DeleteTopicsRequest(Request, api_key=ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+"):
    """Delete these topics.

    v0-v5: by name, in `topic_names`.  v4: flexible.  v6: by name or by id, in `topics`.  v1-v3 and v5 change the
    response only.
    """

    class DeleteTopicState(Struct):
        name:     str | None = t.string(nullable="0+", default=None)
        topic_id: UUID       = t.uuid()

    topics:      list[DeleteTopicState] = t.array(DeleteTopicState, "6+")
    topic_names: list[str]              = t.array(t.string, "0-5", ignorable=True)
    timeout_ms:  int                    = t.int32()


class DeleteTopicsResponse(Response, api_key=ApiKey.DELETE_TOPICS, versions="0-6", flexible="4+"):
    """Each topic's success or error.

    v1: throttle time.  v3: TOPIC_DELETION_DISABLED is possible.  v4: flexible.  v5: error messages.  v6: topic ids, and
    the name is null for an id that nobody knows.  v2 is like v1.
    """

    class DeletableTopicResult(Struct):
        name:          str | None = t.string(nullable="6+")
        topic_id:      UUID       = t.uuid("6+", ignorable=True)
        error_code:    int        = t.int16()
        error_message: str | None = t.string("5+", nullable="5+", default=None, ignorable=True)

    throttle_time_ms: int                        = t.int32("1+", ignorable=True)
    responses:        list[DeletableTopicResult] = t.array(DeletableTopicResult)
