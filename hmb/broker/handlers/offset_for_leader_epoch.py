"""OffsetForLeaderEpoch: return where a leader epoch ended, so that a consumer notices lost records (KIP-320).

Versions: 0-4, flexible from 4.
Behavior: the response contains the greatest epoch of the log that is not above the requested one, and the offset after
    its last record. The newest epoch ends at the log's end. A future epoch and -1 get (-1, -1).
Version notes: version 1 adds the epoch to the response. Version 2 adds the client's current epoch (FENCED_LEADER_EPOCH
    or UNKNOWN_LEADER_EPOCH if it differs). Version 3 adds the id of the requesting replica.
Left out: followers. One broker has none, so the broker treats every client as a consumer.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
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
            answer = EpochEndOffset(partition=asked.partition)
            result.partitions.append(answer)
            with answering(answer):
                log = context.broker.topics.log(topic.topic, NO_TOPIC_ID, asked.partition)
                check_epoch(asked.current_leader_epoch, log)
                end = log.epochs.end_of(asked.leader_epoch, log.log_start_offset, log.log_end_offset)
                if end is not None:
                    answer.leader_epoch, answer.end_offset = end
    return response
