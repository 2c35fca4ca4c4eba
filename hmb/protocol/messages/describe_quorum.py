"""DescribeQuorum (55): describe the controllers of the cluster, which replicate the metadata log (KIP-595)."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeQuorumRequest(Request, api_key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+"):
    """The partitions whose leader and replicas the client wants to know.

    Only the partition `__cluster_metadata-0` is allowed, because the controllers replicate no other partition. Versions
    1 and 2 have the same layout as version 0.
    """

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int = t.int32()

        topic_name: str                 = t.string()
        partitions: list[PartitionData] = t.array(PartitionData)

    topics: list[TopicData] = t.array(TopicData)


class ReplicaState(Struct):
    """One replica of the metadata log, and how far this replica has read. All times are in ms since 1970."""

    replica_id:               int  = t.int32()
    replica_directory_id:     UUID = t.uuid("2+")
    log_end_offset:           int  = t.int64()
    last_fetch_timestamp:     int  = t.int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int  = t.int64("1+", default=-1, ignorable=True)


class DescribeQuorumResponse(Response, api_key=ApiKey.DESCRIBE_QUORUM, versions="0-2", flexible="0+"):
    """The leader, the voters and the observers of each partition.

    Version 1 adds two timestamps for each replica: when it last fetched records, and when it was last up to date
    (KIP-836). Version 2 adds error messages, the directory ids of the replicas, and the addresses of the
    controllers (KIP-853).
    """

    class TopicData(Struct):
        class PartitionData(Struct):
            partition_index: int                = t.int32()
            error_code:      int                = t.int16()
            error_message:   str | None         = t.string("2+", nullable="2+", ignorable=True)
            leader_id:       int                = t.int32()
            leader_epoch:    int                = t.int32()
            high_watermark:  int                = t.int64()
            current_voters:  list[ReplicaState] = t.array(ReplicaState)
            observers:       list[ReplicaState] = t.array(ReplicaState)

        topic_name: str                 = t.string()
        partitions: list[PartitionData] = t.array(PartitionData)

    class Node(Struct):
        class Listener(Struct):
            name: str = t.string("2+")
            host: str = t.string("2+")
            port: int = t.uint16("2+")

        node_id:   int            = t.int32("2+")
        listeners: list[Listener] = t.array(Listener, "2+")

    error_code:    int             = t.int16()
    error_message: str | None      = t.string("2+", nullable="2+", ignorable=True)
    topics:        list[TopicData] = t.array(TopicData)
    nodes:         list[Node]      = t.array(Node, "2+")


FIRST_VERSION_OF_NODES = DescribeQuorumResponse.first_version("nodes")
