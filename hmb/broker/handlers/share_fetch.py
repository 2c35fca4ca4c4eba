"""ShareFetch: acquire records for a member of a share group, and acknowledge records (KIP-932).

Versions: 1-2; all use the flexible encoding (KIP-482).
Permissions: READ on the group; READ on each topic.
Behavior: the broker first handles the acknowledgements in the request, and stores their changes. Then the broker
    acquires records for the member (broker/share/) by these rules:
    - *Number.* The member acquires up to `max_records` records. If no record is Available, the broker waits at most
      `max_wait_ms`.
    - *Batches.* The response contains whole record batches from the log, and `acquired_records` lists the offsets that
      the member has acquired. Other offsets of these batches belong to other members, and the client skips them. In the
      acquire mode BATCH_OPTIMIZED, the member acquires whole batches, which can contain more than `max_records`
      records.
    - *Lock.* A member must acknowledge an acquired record before its lock times out (`share.record.lock.duration.ms`).
    - *End.* The epoch -1 closes the share session, and releases all records of the member. When the connection ends,
      the broker does the same.
Version notes: version 2 adds the acquire mode RECORD_LIMIT, and acknowledgements that renew a lock. A request that
    renews a lock does not fetch.
Left out: `min_bytes`, and smaller deliveries after failures:
    - *min_bytes.* The broker responds when the member has acquired one record, so a client gets smaller responses, but
      earlier.
    - *Smaller deliveries.* If records were already delivered several times, Kafka delivers fewer of them at once. HMB
      does not. So if one bad record makes a member fail again and again, the other records of its batch are also
      delivered again.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import put_error
from hmb.broker.long_poll import NO_RECORDS, long_poll
from hmb.broker.share.acknowledging import Errors, acknowledge, acknowledgements_in, release, release_at_end
from hmb.broker.share.fetching import PartitionData, ShareFetching, check_fetch
from hmb.broker.share.sessions import SessionId, ShareSession
from hmb.coordinator.modern.partitions import by_topic
from hmb.protocol.enums import FINAL_SESSION_EPOCH, INITIAL_SESSION_EPOCH
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from hmb.protocol.topics import PartitionId

TopicResponse = ShareFetchResponse.ShareFetchableTopicResponse


def handle(request: ShareFetchRequest, context: RequestContext) -> ShareFetchResponse:
    response = ShareFetchResponse()
    try:
        check_fetch(request)
        session = _session(request, context)
    except KafkaError as error:
        put_error(response, error)
        return response
    errors = acknowledge(context.broker, session.id, acknowledgements_in(request.topics), renews=request.is_renew_ack)
    if request.share_session_epoch == FINAL_SESSION_EPOCH:
        release(context.broker, session)
        return _respond(response, {}, errors)
    fetch = ShareFetching(request, session, context)
    context.account.close()  # Free the request's memory, because the request may wait long.
    long_poll(fetch, 0 if errors else request.max_wait_ms, context)
    response.acquisition_lock_timeout_ms = context.broker.share_settings(session.id.group_id).lock_duration
    return _respond(response, fetch.responses, errors)


def _session(request: ShareFetchRequest, context: RequestContext) -> ShareSession:
    assert request.group_id is not None
    id = SessionId(request.group_id, request.member_id or "")
    sessions = context.broker.share_sessions
    named = [PartitionId(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    if request.share_session_epoch == INITIAL_SESSION_EPOCH:
        if acknowledgements_in(request.topics):
            why = "the first request of a share session cannot acknowledge records"
            raise KafkaError(ErrorCode.INVALID_REQUEST, why)
        session = sessions.open(id)
        release_at_end(context, session)
    else:
        session = sessions.next(id, request.share_session_epoch)
    forgotten = [
        PartitionId(topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions
    ]
    session.change(named, forgotten)
    return session


def _respond(
    response: ShareFetchResponse, fetched: dict[PartitionId, PartitionData], errors: Errors
) -> ShareFetchResponse:
    """Put the fetched records and the errors of acknowledgements into the response, grouped by topic."""
    for partition, error in errors.items():
        data = fetched.setdefault(partition, PartitionData(partition_index=partition.partition))
        if error is not None:
            data.acknowledge_error_code, data.acknowledge_error_message = error.code, error.message
    for data in fetched.values():
        if data.records is None:
            data.records = NO_RECORDS
    for topic_id, numbers in by_topic(fetched).items():
        partitions = [fetched[PartitionId(topic_id, number)] for number in numbers]
        response.responses.append(TopicResponse(topic_id=topic_id, partitions=partitions))
    return response
