"""OffsetForLeaderEpoch: return the end offset of a leader epoch, so that a consumer detects lost records (KIP-320).

Versions: 0-4; version 4 uses the flexible encoding (KIP-482).
Permissions: DESCRIBE on each topic.
Behavior: the request contains a leader epoch for each partition. The end offset of an epoch is the offset after its
    last record. For example, a log contains the epochs 2, 3 and 7:
    - *Known epoch.* For epoch 3, the response contains epoch 3 and its end offset. For epoch 7, the newest epoch,
      the end offset is the end of the log.
    - *Missing epoch.* For epoch 5, the response contains the next smaller epoch, 3, and the end offset of epoch 3.
      For epoch 1, no smaller epoch exists. The response contains epoch 1 and the start offset of epoch 2.
    - *Unknown epoch.* For epoch 8 (greater than the newest epoch) and for -1, the response contains the epoch -1
      and the offset -1.
Version notes: from version 2 on, a request also contains the leader epoch that the client believes to be current. If
    this epoch is too old, the error is FENCED_LEADER_EPOCH. If it is too new, the error is UNKNOWN_LEADER_EPOCH.
Left out: requests from followers. HMB treats each client as a consumer. A Kafka broker cannot copy HMB's logs as a
    follower.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.leader_epochs import check_epoch
from hmb.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from hmb.protocol.topics import NO_TOPIC_ID

TopicResult = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
EpochEndOffset = TopicResult.EpochEndOffset


def handle(request: OffsetForLeaderEpochRequest, context: RequestContext) -> OffsetForLeaderEpochResponse:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        result = TopicResult(topic=topic.topic)
        response.topics.append(result)
        for asked in topic.partitions:
            epoch_end = EpochEndOffset(partition=asked.partition)
            result.partitions.append(epoch_end)
            with error_code_in(epoch_end):
                log = context.broker.topics.log(topic.topic, NO_TOPIC_ID, asked.partition)
                check_epoch(asked.current_leader_epoch, log)
                end = log.epochs.end_of(asked.leader_epoch, log.log_start_offset, log.log_end_offset)
                if end is not None:
                    epoch_end.leader_epoch, epoch_end.end_offset = end
    return response
