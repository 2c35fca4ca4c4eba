"""CreateTopics (19): make topics, with so many partitions or with an assignment given by hand.  KIP-4."""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class CreateTopicsRequest(Request, api_key=ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+"):
    """Create these topics.

    v1: `validate_only`, a rehearsal.  v4: -1 partitions or replicas mean the broker's default (KIP-464).  v5: flexible.
    v2, v3, v6 and v7 change the response only.
    """

    class CreatableTopic(Struct):
        class CreatableReplicaAssignment(Struct):
            partition_index: int       = t.int32()
            broker_ids:      list[int] = t.array(t.int32)

        class CreatableTopicConfig(Struct):
            name:  str        = t.string()
            value: str | None = t.string(nullable="0+")

        name:               str                              = t.string()
        num_partitions:     int                              = t.int32()  # -1 with assignments, or for the default
        replication_factor: int                              = t.int16()
        assignments:        list[CreatableReplicaAssignment] = t.array(CreatableReplicaAssignment)
        configs:            list[CreatableTopicConfig]       = t.array(CreatableTopicConfig)

    topics:        list[CreatableTopic] = t.array(CreatableTopic)
    timeout_ms:    int                  = t.int32(default=60000)
    validate_only: bool                 = t.boolean("1+")


class CreateTopicsResponse(Response, api_key=ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+"):
    """Each topic's success or error.

    v1: error messages.  v2: throttle time.  v5: flexible; the new topic's partitions, replicas and configs (KIP-525).
    v6: THROTTLING_QUOTA_EXCEEDED is possible (KIP-599).  v7: topic ids.  v3 and v4 are like v2.
    """

    class CreatableTopicResult(Struct):
        class CreatableTopicConfigs(Struct):
            name:          str        = t.string()
            value:         str | None = t.string(nullable="0+")
            read_only:     bool       = t.boolean()
            config_source: int        = t.int8(default=-1, ignorable=True)
            is_sensitive:  bool       = t.boolean()

        name:                    str        = t.string()
        topic_id:                UUID       = t.uuid("7+", ignorable=True)
        error_code:              int        = t.int16()
        error_message:           str | None = t.string("1+", nullable="0+", ignorable=True)
        topic_config_error_code: int        = t.int16("5+", tag=0, ignorable=True)
        num_partitions:          int        = t.int32("5+", default=-1, ignorable=True)
        replication_factor:      int        = t.int16("5+", default=-1, ignorable=True)
        configs:                 list[CreatableTopicConfigs] | None = t.array(
            CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
        )

    throttle_time_ms: int                        = t.int32("2+", ignorable=True)
    topics:           list[CreatableTopicResult] = t.array(CreatableTopicResult)
