"""TxnOffsetCommit: commit offsets of a group as part of a transaction.

Versions: 0-5; versions 3 and later use the flexible encoding (KIP-482).
Permissions: WRITE on the transactional id; READ on the group; READ on each topic.
Behavior: the broker immediately stores the offsets that the request contains. They become the group's committed
    offsets when the transaction is committed. While the transaction is open, an OffsetFetch request with
    `require_stable` gets UNSTABLE_OFFSET_COMMIT for the partitions of these offsets. The broker checks the
    consumer's member id and generation. A consumer that is no longer a member of the group therefore cannot
    commit offsets (KIP-447).
Version notes: these versions differ:
    - *Versions 0 and 1.* Clients of these versions do not know COORDINATOR_LOAD_IN_PROGRESS. The broker returns
      COORDINATOR_NOT_AVAILABLE instead.
    - *Versions 0 to 2.* The request contains no member id and no generation, so the broker cannot check them.
    - *Versions 0 to 4.* The producer must first send AddOffsetsToTxn for the group. Otherwise the error is
      INVALID_TXN_STATE in versions 0 to 3, and TRANSACTION_ABORTABLE in version 4.
    - *Version 5.* The broker itself adds the group to the transaction.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from functools import partial

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.shared_responses import committed, metadata_length
from hmb.broker.transactional import code_for_producer
from hmb.coordinator.group import Commit
from hmb.coordinator.group_table import check_group_id
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.offsets import CommittedOffset
from hmb.coordinator.transactions.transactional_id import VERSION_2
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from hmb.protocol.topics import TopicPartition
from hmb.records.producer_numbers import ProducerIdAndEpoch

TopicResponse = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
PartitionResponse = TopicResponse.TxnOffsetCommitResponsePartition
Offsets = dict[TopicPartition, CommittedOffset]
# A group can refuse a commit with one of these errors, but transactional producers do not know these errors. The
# producer therefore gets ILLEGAL_GENERATION instead.
ILLEGAL = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.STALE_MEMBER_EPOCH)


def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    response, offsets, accepted = TxnOffsetCommitResponse(), Offsets(), list[PartitionResponse]()
    now, longest = context.broker.clock.now_ms(), context.broker.config.offset_metadata_max
    for wanted in request.topics:
        topic, topic_response = context.broker.topics.get(wanted.name), TopicResponse(name=wanted.name)
        response.topics.append(topic_response)
        for each in wanted.partitions:
            result = PartitionResponse(partition_index=each.partition_index)
            topic_response.partitions.append(result)
            if topic is None or each.partition_index not in topic.partitions:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            accepted.append(result)
            if metadata_length(each.committed_metadata) > longest:
                result.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            offsets[TopicPartition(wanted.name, each.partition_index)] = CommittedOffset(
                *(each.committed_offset, each.committed_leader_epoch, each.committed_metadata or "", now),
                topic_id=topic.id,
            )
    if not accepted:
        return response

    def fail(error: KafkaError) -> None:
        for each in accepted:
            each.error_code = _code(error, context.header)

    return committed(context.broker.groups, partial(_begin, request, offsets, context), response, fail)


def _begin(request: TxnOffsetCommitRequest, offsets: Offsets, context: RequestContext) -> QueuedRecords:
    """Put the offsets into the queue of records that are written to `__consumer_offsets`. Raises KafkaError.

    While the function adds the offsets to the queue, it holds the lock of the transactional id
    (`transactions.writing`). No other thread can commit or abort the transaction during this time.
    """
    groups, transactions, id = context.broker.groups, context.broker.transactions, request.transactional_id
    check_group_id(request.group_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    partition = groups.offsets.partition_for(request.group_id)
    member = request.member_id, request.generation_id, request.group_instance_id
    if context.version >= TxnOffsetCommitRequest.FIRST_VERSION_OF_ADDING:
        transactions.add_partitions(id, producer, {partition}, VERSION_2)
    with transactions.writing(id, producer, partition):
        return groups.offsets.begin_commit(request.group_id, Commit(*member, context.version, offsets, producer))


def _code(error: KafkaError, header: RequestHeader) -> ErrorCode:
    if error.code in ILLEGAL:
        return ErrorCode.ILLEGAL_GENERATION
    knows_loading = header.api_version >= TxnOffsetCommitRequest.FIRST_VERSION_OF_LOADING
    if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and not knows_loading:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code_for_producer(error.code, header)
