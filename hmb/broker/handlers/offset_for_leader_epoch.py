"""OffsetForLeaderEpoch: return the end offset of a leader epoch, so that a consumer detects lost records (KIP-320).

Versions: 0-4; version 4 uses the flexible encoding (KIP-482).
Permissions: DESCRIBE on each topic.
Behavior: the broker looks in the log for the leader epoch that the request contains:
    - *Older epochs.* If the log does not contain the requested epoch, the broker uses the next smaller epoch. For
      example, for epoch 5 in a log with the epochs 2, 3 and 7, the broker uses epoch 3.
    - *Response.* The response contains the epoch that was found, and the offset after the last record of this epoch.
      For the newest epoch, this offset is the end of the log.
    - *Unknown epochs.* If the requested epoch is greater than the newest epoch or is -1, the response contains the
      epoch -1 and the offset -1.
Version notes: from version 2 on, a request contains the leader epoch that the client believes to be current. If this
    epoch is wrong, the error is FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
Left out: requests from followers. HMB has no followers, so it treats each client as a consumer. A Kafka broker cannot
    copy HMB's logs as a follower.
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
