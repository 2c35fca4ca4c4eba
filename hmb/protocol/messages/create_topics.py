"""CreateTopics (19): create topics, with a number of partitions, or with a list of brokers for each partition (KIP-4)."""

from typing import ClassVar
from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class CreateTopicsRequest(Request, api_key=ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+"):
    """The topics to create.

    - Version 1 adds `validate_only`. If this flag is set, the broker checks the request, but creates no topic.
    - From version 4 on, the number of partitions or replicas of a topic without `assignments` may be -1. This value
      means the broker's default (KIP-464).
    - Version 5 uses the flexible encoding (KIP-482).
    - Versions 2, 3, 6 and 7 change only the response.
    """

    FIRST_VERSION_OF_DEFAULTS: ClassVar[int] = 4

    class CreatableTopic(Struct):
        class CreatableReplicaAssignment(Struct):
            partition_index: int       = t.int32()
            broker_ids:      list[int] = t.array(t.int32)

        class CreatableTopicConfig(Struct):
            name:  str        = t.string()
            value: str | None = t.string(nullable="0+")

        name:               str                              = t.string()
        # -1 means one partition for each item in `assignments`. If there are no items, -1 means the broker's default.
        num_partitions:     int                              = t.int32()
        replication_factor: int                              = t.int16()
        assignments:        list[CreatableReplicaAssignment] = t.array(CreatableReplicaAssignment)
        configs:            list[CreatableTopicConfig]       = t.array(CreatableTopicConfig)

    topics:        list[CreatableTopic] = t.array(CreatableTopic)
    timeout_ms:    int                  = t.int32(default=60000)
    validate_only: bool                 = t.boolean("1+")


class CreateTopicsResponse(Response, api_key=ApiKey.CREATE_TOPICS, versions="0-7", flexible="5+"):
    """An error code for each topic.

    - Version 1 adds error messages.
    - Version 2 adds the throttle time. Versions 3 and 4 have the same layout.
    - Version 5 uses the flexible encoding (KIP-482). It adds the settings of the new topic, and its numbers of
      partitions and replicas (KIP-525).
    - From version 6 on, the response can contain the error THROTTLING_QUOTA_EXCEEDED (KIP-599).
    - Version 7 adds topic ids.
    """

    FIRST_VERSION_OF_THROTTLING: ClassVar[int] = 6

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
        configs: list[CreatableTopicConfigs] | None = t.array(CreatableTopicConfigs, "5+", nullable="5+", ignorable=True)

    throttle_time_ms: int                        = t.int32("2+", ignorable=True)
    topics:           list[CreatableTopicResult] = t.array(CreatableTopicResult)
