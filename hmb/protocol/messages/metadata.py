"""Metadata (3): the addresses of the brokers, and the leader of each partition.

A client asks any broker. It then connects to the addresses in the response, and sends every Produce and Fetch to the
leader of the partition. The request can also create a topic (`allow_auto_topic_creation`).
"""

from uuid import UUID

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class MetadataRequest(Request, api_key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    """The topics to describe.

    In version 0 an empty list stands for all topics. From version 1 on null stands for all topics, and an empty list
    for none. Version 4 can switch off the creation of topics. Version 8 can ask for authorized operations. Since
    version 11 a client can no longer ask for the operations of the cluster. Version 9 is flexible. Version 10 has topic
    ids, but the client still names each topic. Version 12 can ask by id, with a null name. Versions 2, 3, 5 to 7, 11
    and 13 change only the response.
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

    Version 1 adds racks, the controller, and which topics are internal. Version 2 adds the cluster id. Version 3 adds
    the throttle time. Version 5 adds offline replicas. Version 6 equals version 5, but a throttled client gets its
    response at once and then waits on its own side (KIP-219). Version 7 adds leader epochs. Version 8 adds authorized
    operations as a set of bits. The smallest int32 means that the client did not ask for them. Version 9 is flexible.
    Version 10 adds topic ids. In version 12 the name is null for an unknown id. Version 13 adds an error code for the
    whole response (REBOOTSTRAP_REQUIRED).
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
