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
    """A request for the brokers of the cluster, and for the partitions of some topics or of all topics.

    In version 0, an empty list of topics means all topics. From version 1 on, null means all topics, and an empty
    list means no topics. These later versions change the request:

    - Version 4 adds `allow_auto_topic_creation`. If it is true, the broker may create topics that do not exist.
    - Version 8 adds two flags. They ask which operations the client is allowed to perform: on each topic
      (`include_topic_authorized_operations`), and on the cluster (`include_cluster_authorized_operations`).
    - Version 9 uses the flexible encoding (KIP-482).
    - Version 10 adds a field for the topic id, but a client must not use it before version 12.
    - Version 11 removes `include_cluster_authorized_operations`.
    - From version 12 on, the client can send the id of a topic, with null as its name.
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
        """Return whether a topic in this request needs version 12, but `version` is lower.

        In versions below 12, each topic must have a name, and must not have an id.
        """
        takes_ids = version >= self.FIRST_VERSION_OF_IDS_ALONE
        return not takes_ids and any(topic.name is None or topic.topic_id.int for topic in self.topics or ())


class MetadataResponse(Response, api_key=ApiKey.METADATA, versions="0-13", flexible="9+"):
    """The brokers of the cluster, and the topics with the leader of each partition.

    These versions change the response:

    - Version 1 adds racks, the id of the controller, and a flag that marks internal topics.
    - Version 2 adds the cluster id.
    - Version 3 adds the throttle time.
    - Version 5 adds offline replicas.
    - Version 6 changes no field. From this version on, the broker sends a throttled client its response at once.
      The client then waits for the throttle time before its next request (KIP-219).
    - Version 7 adds leader epochs.
    - Version 8 adds the operations that the client is allowed to perform on each topic and on the cluster. Each
      operation is one bit. If the client did not ask for the operations, the field is -2^31.
    - Version 9 uses the flexible encoding (KIP-482).
    - Version 10 adds topic ids.
    - Version 11 removes the operations on the cluster.
    - From version 12 on, a topic has the name null if the broker does not know the requested topic id.
    - Version 13 adds an error code for the whole response (REBOOTSTRAP_REQUIRED).
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
