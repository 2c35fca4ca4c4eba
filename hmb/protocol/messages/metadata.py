"""Metadata (3): return the addresses of the brokers, and the leader of each partition.

A client can send a Metadata request to any broker. The client then connects to the addresses in the response, and sends
every Produce and Fetch request to the leader of the partition. If `allow_auto_topic_creation` is set, the broker
creates the topics that do not exist.
"""

from typing import ClassVar
from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class MetadataRequest(Request, api_key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    """The topics to describe.

    In version 0 an empty list stands for all topics. From version 1 on, null stands for all topics, and an empty list
    stands for no topic.

    Version 4 adds `allow_auto_topic_creation`, a flag that allows the broker to create missing topics. Version 8 adds
    two flags. With `include_topic_authorized_operations`, the client asks which operations it may perform on the
    topics. `include_cluster_authorized_operations` asks the same for the cluster, and version 11 removes this flag.

    Version 9 uses the flexible encoding (KIP-482). Version 10 adds topic ids, but the client must still send each
    topic's name. From version 12 on, the client can send only the id, with a null name. Versions 2, 3, 5 to 7 and 13
    change only the response.
    """

    FIRST_VERSION_OF_IDS_ALONE: ClassVar[int] = 12

    class MetadataRequestTopic(Struct):
        topic_id: UUID       = t.uuid("10+", ignorable=True)
        name:     str | None = t.string(nullable="10+")

    topics: list[MetadataRequestTopic] | None = t.array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation:             bool = t.boolean("4+", default=True)
    include_cluster_authorized_operations: bool = t.boolean("8-10")
    include_topic_authorized_operations:   bool = t.boolean("8+")

    def is_for_all_topics(self, version: int) -> bool:
        """Return whether this request, in this version, asks for all topics of the broker."""
        return self.topics is None or (version == 0 and not self.topics)

    def has_ids_too_early(self, version: int) -> bool:
        """Return whether a topic of this request has an id or no name, although `version` permits only names."""
        takes_ids = version >= self.FIRST_VERSION_OF_IDS_ALONE
        return not takes_ids and any(topic.name is None or topic.topic_id.int for topic in self.topics or ())


class MetadataResponse(Response, api_key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    """The brokers of the cluster, and the topics with the leader of each partition.

    Version 1 adds racks, the id of the controller, and a flag that marks internal topics. Version 2 adds the cluster
    id. Version 3 adds the throttle time. Version 5 adds offline replicas. Version 6 has the same layout as version 5.
    But from version 6 on, the broker sends the response at once, and the client waits for the throttle time (KIP-219).

    Version 7 adds leader epochs. Version 8 adds the operations that the client is authorized for, one bit for each
    operation. If the client did not ask for the operations, this field has the smallest int32. Version 9 uses the
    flexible encoding (KIP-482). Version 10 adds topic ids. From version 11 on, the response no longer contains the
    operations on the cluster. From version 12 on, a topic's name is null if the broker does not know the requested
    topic id. Version 13 adds an error code for the whole response (REBOOTSTRAP_REQUIRED).
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
