"""Starts HMB and Kafka with the same topics. Some topics contain the same records in both brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from hmb.bench import peers
from hmb.protocol.enums import AclOperation, AclPatternType, AclPermission, AclResourceType, CoordinatorType
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.create_acls import CreateAclsRequest
from hmb.protocol.messages.describe_acls import DescribeAclsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from hmb.protocol.schema import Request
from hmb.records import Record, encode_batch
from hmb.records.compression import Codec
from hmb.uuids import encode_uuid

from .brokers import PATIENCE_SECONDS, PAUSE_SECONDS, NotReady, Side
from .case import Comparison, Topic
from .permissions import USERS

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "log.flush.acks.all": "false",
    "log.segment.delete.delay.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",  # A new member gets its assignment immediately.
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "transaction.state.log.num.partitions": "1",
}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
PASSWORDS = " ".join(f'user_{name}="{name}"' for name in dict.fromkeys(user.name for user in USERS))
SECURITY = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{PLAIN} required {PASSWORDS};",
    "delegation.token.secret.key": "secret",
    "client.telemetry.enable": "true",  # a setting of HMB; Kafka always offers telemetry
}
EVERY_ACL = DescribeAclsRequest(
    resource_type_filter=AclResourceType.ANY,
    resource_name_filter=None,
    pattern_type_filter=AclPatternType.ANY,
    principal_filter=None,
    host_filter=None,
    operation=AclOperation.ANY,
    permission_type=AclPermission.ANY,
)
TIME = 1_700_000_000_000  # the timestamp of the oldest record, in ms
# The records have old timestamps, so retention is off in every topic that contains records.
OLD_RECORDS = Topic(configs={"retention.ms": "-1"})
TOPICS = {
    "empty": Topic(),  # No comparison writes to this topic.
    "two": Topic(partitions=2),
    "three": Topic(partitions=3),
    "filled": OLD_RECORDS,
    "all-versions": OLD_RECORDS,
    "all-codecs": OLD_RECORDS,
    "compacted": Topic(configs={"cleanup.policy": "compact"}),
    "append-time": Topic(configs={"message.timestamp.type": "LogAppendTime"}),
    "small": Topic(configs={"max.message.bytes": "1000"}),
}


def records(*values: str, key: bytes | None = b"k", timestamp: int = TIME) -> list[Record]:
    """Return records whose timestamps are one second apart."""
    return [Record(0, timestamp + 1000 * n, key, value.encode(), ()) for n, value in enumerate(values)]


# Four batches with the offsets 0-1, 2-4, 5 and 6. Their timestamps are 0-1, 10-12, 5 and 12 seconds after TIME.
FILLING = [
    encode_batch(records("zero", "one")),
    encode_batch(records("two", "three", "four", timestamp=TIME + 10_000), codec=Codec.GZIP),
    encode_batch(records("five", timestamp=TIME + 5_000)),
    encode_batch(records("six", timestamp=TIME + 12_000)),
]


def produce(
    topic: str, data: bytes | None, *, partition: int = 0, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[
                    ProduceRequest.TopicProduceData.PartitionProduceData(
                        index=partition, records=None if data is None else memoryview(data)
                    )
                ],
            )
        ],
    )


@contextmanager
def both_secured_brokers(comparisons: Sequence[Comparison]) -> Iterator[tuple[Side, Side, peers.Peer]]:
    """Start HMB and Kafka 4.3.0 with equal topics, groups, users and ACLs.

    The function yields both brokers, and the process that runs HMB.

    `prepare_secured` creates the topics, groups and ACLs through the listener PLAINTEXT. Every client of this
    listener is the user ANONYMOUS, who is a super user.
    """
    with ExitStack() as stack:
        sides, processes = [], []
        for kind in (peers.Hmb, peers.Kafka43):
            port, login_port = peers.free_ports(2)
            listeners = f"PLAINTEXT://{peers.HOST}:{port},SASL_PLAINTEXT://{peers.HOST}:{login_port}"
            config = {**CONFIG, **SECURITY, "listeners": listeners}
            processes.append(stack.enter_context(kind(port=port, config=config)))
            sides.append(Side(kind.name, port, login_port))
            prepare_secured(sides[-1], comparisons)
        yield sides[0], sides[1], processes[0]


def prepare_secured(side: Side, comparisons: Iterable[Comparison]) -> None:
    """Create the topics, groups and ACLs for the comparisons that test authorization."""
    own = {"open": OLD_RECORDS, "secret": OLD_RECORDS}
    side.create_topics(own | {name: topic for each in comparisons for name, topic in each.topics.items()})
    for name in own:
        _until(side, produce(name, FILLING[0]), is_produced)
        _until(side, FindCoordinatorRequest(key=name), is_known)
        _until(side, FindCoordinatorRequest(key=name, key_type=CoordinatorType.TRANSACTION), is_known)
        _until(side, commit(name, name), lambda answer: not answer.topics[0].partitions[0].error_code)
        transactional = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        _until(side, transactional, lambda answer: not answer.error_code)
    _await_share_coordinator(side)
    acls = [acl for user in USERS for acl in user.acls()]
    if failed := [each for each in side.ask(CreateAclsRequest(creations=acls)).results if each.error_code]:
        raise NotReady(f"{side.name} refuses an ACL: {failed[0]}")
    # Kafka has created internal topics for the groups and the transactions. Wait until these topics are also ready.
    side.await_topics({*own})
    _until(side, EVERY_ACL, lambda answer: sum(len(each.acls) for each in answer.resources) == len(acls))


def _await_share_coordinator(side: Side) -> None:
    """Wait until the broker has created and loaded the topic with the states of share-partitions."""
    id = side.topic_ids["open"]
    find = FindCoordinatorRequest(key_type=CoordinatorType.SHARE, coordinator_keys=[f"open:{encode_uuid(id)}:0"])
    _until(side, find, lambda answer: not answer.coordinators[0].error_code, version=6)
    kind = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
    topics = [kind(topic_id=id, partitions=[kind.PartitionData(partition=0)])]
    read = ReadShareGroupStateSummaryRequest(group_id="open", topics=topics)
    _until(side, read, lambda answer: not answer.results[0].partitions[0].error_code, version=0)


def commit(group: str, topic: str) -> OffsetCommitRequest:
    """Return an OffsetCommit request of a client that has not joined the group. The request creates the group."""
    kind = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(group_id=group, topics=[kind(name=topic, partitions=[partition])])


@contextmanager
def both_brokers(comparisons: Sequence[Comparison]) -> Iterator[tuple[Side, Side, peers.Peer]]:
    """Start HMB and Kafka 4.3.0 with equal topics and records. Yield both brokers, and the process that runs HMB."""
    with ExitStack() as stack:
        hmb = stack.enter_context(peers.Hmb(config=CONFIG))
        kafka = stack.enter_context(peers.Kafka43(config=CONFIG))
        ours, theirs = Side("HMB", hmb.port), Side("Kafka 4.3.0", kafka.port)
        for side in (ours, theirs):
            prepare(side, comparisons)
        yield ours, theirs, hmb


def prepare(side: Side, comparisons: Iterable[Comparison]) -> None:
    side.create_topics(TOPICS | {name: topic for each in comparisons for name, topic in each.topics.items()})
    for batch in FILLING:
        _until(side, produce("filled", batch), is_produced)
    # Kafka creates its internal topics when the first group needs them, loads them, and allocates producer ids in the
    # background.
    _until(side, FindCoordinatorRequest(key="any"), is_known)
    _until(side, FindCoordinatorRequest(key="any", key_type=1), is_known)
    _until(side, ListGroupsRequest(), lambda answer: not answer.error_code)
    _until(side, InitProducerIdRequest(transactional_id=None), lambda answer: not answer.error_code)
    transactional = InitProducerIdRequest(transactional_id="any", transaction_timeout_ms=60_000)
    _until(side, transactional, lambda answer: not answer.error_code)
    side.await_topics({*TOPICS})


def is_produced(answer: ProduceResponse) -> bool:
    return not answer.responses[0].partition_responses[0].error_code


def is_known(answer: FindCoordinatorResponse) -> bool:
    return answer.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE


def _until(side: Side, request: Request, is_done: Callable[[Any], bool], version: int = 3) -> None:
    """Repeat the request until `is_done` accepts its response."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_done(answer := side.ask(request, version)):
        if time.monotonic() > deadline:
            raise NotReady(f"{side.name} is not ready: {answer}")
        time.sleep(PAUSE_SECONDS)
