"""ShareAcknowledge: acknowledge records that a member of a share group has acquired (KIP-932).

Versions: 1-2; all use the flexible encoding (KIP-482).
Permissions: READ on the group; READ on each topic.
Behavior: each acknowledgement changes the delivery states of a range of records (coordinator/share/states.py). The
    broker sends the response after the changes are on disk. A member can acknowledge a record only while it holds the
    record's lock. For example, if the lock of one record has timed out, the partition of this record gets the error
    INVALID_RECORD_STATE. The broker then leaves the states of all records in this partition unchanged. A request with
    the epoch -1 closes the share session, and releases all records that the member has acquired.
Version notes: version 2 adds the type Renew, which extends the acquisition lock.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import put_error
from hmb.broker.share.acknowledging import acknowledge, acknowledgements_in, release
from hmb.broker.share.sessions import SessionId
from hmb.coordinator.modern.partitions import by_topic
from hmb.protocol.enums import FINAL_SESSION_EPOCH, INITIAL_SESSION_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from hmb.protocol.topics import PartitionId

TopicResponse = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
PartitionData = TopicResponse.PartitionData


def handle(request: ShareAcknowledgeRequest, context: RequestContext) -> ShareAcknowledgeResponse:
    response, broker = ShareAcknowledgeResponse(), context.broker
    try:
        if not request.group_id or not request.member_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A ShareAcknowledge request needs a group id and a member id.")
        if request.share_session_epoch == INITIAL_SESSION_EPOCH:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "ShareAcknowledge cannot open a share session.")
        session = broker.share_sessions.next(
            SessionId(request.group_id, request.member_id), request.share_session_epoch
        )
    except KafkaError as error:
        put_error(response, error)
        return response
    errors = acknowledge(broker, session.id, acknowledgements_in(request.topics), renews=request.is_renew_ack)
    if request.share_session_epoch == FINAL_SESSION_EPOCH:
        release(broker, session)
    response.acquisition_lock_timeout_ms = broker.share_settings(request.group_id).lock_duration
    for topic_id, numbers in by_topic(errors).items():
        topic = TopicResponse(topic_id=topic_id)
        for number in numbers:
            topic.partitions.append(PartitionData(partition_index=number))
            put_error(topic.partitions[-1], errors[PartitionId(topic_id, number)])
        response.responses.append(topic)
    return response
