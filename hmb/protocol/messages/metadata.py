"""Metadata (3): where the brokers are, and which of them leads each partition.

A client asks any broker, connects to the addresses of the answer, and sends every produce and fetch to the leader of
its partition.  A request can also bring a topic into being (`allow_auto_topic_creation`).
"""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class MetadataRequest(Request, api_key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    """Describe these topics, and the brokers.

    v0: no topics means all topics.  v1: null means all topics, none means none.  v4: auto creation can be turned off.
    v8: ask for authorized operations (the cluster's only until v10).  v9: flexible.  v10: topic ids, but a topic is
    asked for by name all the same; v12: by id (name null).  v2, v3, v5-v7, v11, v13 change the response only.
    """

    class MetadataRequestTopic(Struct):
        topic_id: UUID       = t.uuid("10+", ignorable=True)
        name:     str | None = t.string(nullable="10+")

    topics: list[MetadataRequestTopic] | None = t.array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation:             bool = t.boolean("4+", default=True)
    include_cluster_authorized_operations: bool = t.boolean("8-10")
    include_topic_authorized_operations:   bool = t.boolean("8+")


class MetadataResponse(Response, api_key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    """The brokers and the topics.

    v1: racks, controller, internal topics.  v2: cluster id.  v3: throttle time.  v5: offline replicas.  v7: leader
    epochs.  v8: authorized operations (a bit set; the lowest int32 means "not asked").  v9: flexible.  v10: topic ids.
    v12: the name is null for an id that nobody knows.  v13: an error for the answer as a whole (REBOOTSTRAP_REQUIRED).
    v6 is v5, but a throttled client gets its answer at once and waits by itself (KIP-219).
    """

    class MetadataResponseBroker(Struct):
        node_id: int        = t.int32()
        host:    str        = t.string()
        port:    int        = t.int32()
        rack:    str | None = t.string("1+", nullable="1+", default=None, ignorable=True)

    class MetadataResponseTopic(Struct):
        class MetadataResponsePartition(Struct):
            error_code:       int       = t.int16()
            partition_index:  int       = t.int32()
            leader_id:        int       = t.int32()
            leader_epoch:     int       = t.int32("7+", default=-1, ignorable=True)
            replica_nodes:    list[int] = t.array(t.int32)
            isr_nodes:        list[int] = t.array(t.int32)
            offline_replicas: list[int] = t.array(t.int32, "5+", ignorable=True)

        error_code:                  int        = t.int16()
        name:                        str | None = t.string(nullable="12+")
        topic_id:                    UUID       = t.uuid("10+", ignorable=True)
        is_internal:                 bool       = t.boolean("1+", ignorable=True)
        partitions:                  list[MetadataResponsePartition] = t.array(MetadataResponsePartition)
        topic_authorized_operations: int        = t.int32("8+", default=-(2**31))

    throttle_time_ms:              int        = t.int32("3+", ignorable=True)
    brokers:                       list[MetadataResponseBroker] = t.array(MetadataResponseBroker)
    cluster_id:                    str | None = t.string("2+", nullable="2+", default=None, ignorable=True)
    controller_id:                 int        = t.int32("1+", default=-1, ignorable=True)
    topics:                        list[MetadataResponseTopic]  = t.array(MetadataResponseTopic)
    cluster_authorized_operations: int        = t.int32("8-10", default=-(2**31))
    error_code:                    int        = t.int16("13+", ignorable=True)
