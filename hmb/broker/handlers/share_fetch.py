"""ShareFetch: acquire records for a member of a share group, and acknowledge records (KIP-932).

Versions: 1-2; all use the flexible encoding (KIP-482).
Permissions: READ on the group; READ on each topic.
Behavior: the broker first handles the acknowledgements in the request, and writes the changes to disk. Then it
    acquires records for the member (broker/share/) by these rules:
    - *Number.* The member asks for up to `max_records` records. If no record is Available, the broker waits for
      up to `max_wait_ms`. If the request contains acknowledgements, the broker does not wait.
    - *Batches.* The response contains whole record batches from the log. `acquired_records` lists the offsets
      that the member has acquired, and the client skips all other records of these batches. In the acquire mode
      BATCH_OPTIMIZED, the member acquires whole batches, so it can get more than `max_records` records.
    - *Lock.* When a member acquires a record, it gets a lock on the record. The member must acknowledge the
      record before the lock times out (`share.record.lock.duration.ms`).
    - *End.* A request with epoch -1 closes the share session, and the broker releases all records that the
      member has acquired. The same happens when the connection ends.
Version notes: version 2 adds the acquire mode RECORD_LIMIT, in which the member never gets more than
    `max_records` records. It also adds acknowledgements that renew a lock. A request that renews locks does not
    fetch records.
Left out: `min_bytes`, and smaller deliveries after failures:
    - *min_bytes.* The broker ignores `min_bytes`, and responds as soon as the member has acquired a record. The
      client gets its response earlier, but with fewer records.
    - *Smaller deliveries.* If records were already delivered several times, Kafka delivers fewer of them at
      once. HMB does not. For example, a member fails at each delivery because of one bad record in a batch. At
      each new delivery, HMB delivers the whole batch.
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
