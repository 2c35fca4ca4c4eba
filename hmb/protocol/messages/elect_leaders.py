"""ElectLeaders (43): elect the preferred replica, or any live replica, as a partition's leader (KIP-460)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class ElectLeadersRequest(Request, api_key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+"):
    """The partitions for which the cluster must elect a leader. Null means all partitions.

    Version 1 adds `election_type`: elect the preferred replica (0), or any live replica (1). Version 2 uses the
    flexible encoding (KIP-482).
    """

    class TopicPartitions(Struct):
        topic:      str       = t.string()
        partitions: list[int] = t.array(t.int32)

    election_type:    int                          = t.int8("1+")
    topic_partitions: list[TopicPartitions] | None = t.array(TopicPartitions, nullable="0+")
    timeout_ms:       int                          = t.int32(default=60000)


class ElectLeadersResponse(Response, api_key=ApiKey.ELECT_LEADERS, versions="0-2", flexible="2+"):
    """An error code for each partition.

    Version 1 adds an error code for the whole response. Version 2 uses the flexible encoding (KIP-482).
    """

    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id:  int        = t.int32()
            error_code:    int        = t.int16()
            error_message: str | None = t.string(nullable="0+")

        topic:            str                   = t.string()
        partition_result: list[PartitionResult] = t.array(PartitionResult)

    throttle_time_ms:         int                         = t.int32()
    error_code:               int                         = t.int16("1+")
    replica_election_results: list[ReplicaElectionResult] = t.array(ReplicaElectionResult)
