"""AlterReplicaLogDirs (34): move replicas to another data directory of the same broker (KIP-113)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class AlterReplicaLogDirsRequest(Request, api_key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+"):
    """A request to move replicas to other data directories (absolute paths).

    Version 1 has the same layout as version 0. Version 2 uses the flexible encoding (KIP-482).
    """

    class AlterReplicaLogDir(Struct):
        class AlterReplicaLogDirTopic(Struct):
            name:       str       = t.string()
            partitions: list[int] = t.array(t.int32)

        path:   str                           = t.string()
        topics: list[AlterReplicaLogDirTopic] = t.array(AlterReplicaLogDirTopic)

    dirs: list[AlterReplicaLogDir] = t.array(AlterReplicaLogDir)


class AlterReplicaLogDirsResponse(Response, api_key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+"):
    """An error code for each partition. The code 0 means that the move of the partition has started.

    Version 1 has the same layout as version 0. Version 2 uses the flexible encoding (KIP-482).
    """

    class AlterReplicaLogDirTopicResult(Struct):
        class AlterReplicaLogDirPartitionResult(Struct):
            partition_index: int = t.int32()
            error_code:      int = t.int16()

        topic_name: str                                     = t.string()
        partitions: list[AlterReplicaLogDirPartitionResult] = t.array(AlterReplicaLogDirPartitionResult)

    throttle_time_ms: int                                 = t.int32()
    results:          list[AlterReplicaLogDirTopicResult] = t.array(AlterReplicaLogDirTopicResult)
