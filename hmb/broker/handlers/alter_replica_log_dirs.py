"""AlterReplicaLogDirs: move replicas to another data directory of the broker.

Versions: 0-2; version 2 uses the flexible encoding (KIP-482).
Permissions: ALTER on the cluster.
Behavior: a broker of HMB has one data directory. A partition that the request moves to this directory is already
    there, so the request succeeds and changes nothing. Any other directory gets LOG_DIR_NOT_FOUND.
Version notes: none.
Left out: moves, because there is only one data directory. If the disk of this directory is full, a client cannot move a
    partition to another disk.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from hmb.protocol.topics import NO_TOPIC_ID

TopicResponse = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
PartitionResponse = TopicResponse.AlterReplicaLogDirPartitionResult


def handle(request: AlterReplicaLogDirsRequest, context: RequestContext) -> AlterReplicaLogDirsResponse:
    response, own = AlterReplicaLogDirsResponse(), str(context.broker.topics.directory.resolve())
    for directory in request.dirs:
        for topic in directory.topics:
            topic_response = TopicResponse(topic_name=topic.name)
            if topic.partitions:
                response.results.append(topic_response)
            for number in topic.partitions:
                partition_response = PartitionResponse(partition_index=number)
                topic_response.partitions.append(partition_response)
                with error_code_in(partition_response):
                    if directory.path != own:
                        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"the only data directory is {own}")
                    context.broker.topics.log(topic.name, NO_TOPIC_ID, number)
    return response
