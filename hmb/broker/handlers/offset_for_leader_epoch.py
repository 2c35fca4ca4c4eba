"""OffsetForLeaderEpoch: where a leader epoch ended, so that a consumer notices records that were lost (KIP-320).

Versions: 0-4, flexible from 4.
Behaviour: the greatest epoch that the log knows not above the one asked for, and the offset after its last record; the
    newest epoch ends at the log's end.  An epoch that is yet to come gets (-1, -1), and so does -1.
Version notes: 2 brought the epoch that the client knows to be current, FENCED_ or UNKNOWN_LEADER_EPOCH where it is not;
    1 the epoch in the answer, 3 the id of a replica that asks.
Left out: followers: one broker has none, and whoever asks is answered as a consumer.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.broker.handlers.fetch import check_epoch
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
