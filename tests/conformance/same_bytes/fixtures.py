"""Starts HMB and Kafka with the same topics. Some topics contain the same records in both brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from hmb.bench import peers
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request
from hmb.records import Record, encode_batch
from hmb.records.compression import Codec

from .brokers import PATIENCE_SECONDS, PAUSE_SECONDS, NotReady, Side
from .case import Comparison, Topic

CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "log.flush.acks.all": "false",
    "log.segment.delete.delay.ms": "1000",
    "group.consumer.assignment.interval.ms": "0",  # A new member gets its assignment immediately.
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "transaction.state.log.num.partitions": "1",
}
TIME = 1_700_000_000_000  # the timestamp of the oldest record, in ms
# The records have old timestamps, so retention is off in every topic that contains records.
TOPICS = {
    "empty": Topic(),  # No comparison writes to this topic.
    "two": Topic(partitions=2),
    "three": Topic(partitions=3),
    "filled": Topic(configs={"retention.ms": "-1"}),
    "all-versions": Topic(configs={"retention.ms": "-1"}),
    "all-codecs": Topic(configs={"retention.ms": "-1"}),
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
def both_brokers(comparisons: Sequence[Comparison]) -> Iterator[tuple[Side, Side, peers.Peer]]:
    """Start HMB and Kafka 4.3.0 with equal topics and records. Yield both brokers, and HMB's process for its log."""
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
        _until(side, produce("filled", batch), lambda answer: not answer.responses[0].partition_responses[0].error_code)
    # Kafka creates its internal topics when the first group needs them, loads them, and allocates producer ids in the
    # background.
    _until(side, FindCoordinatorRequest(key="any"), is_known)
    _until(side, FindCoordinatorRequest(key="any", key_type=1), is_known)
    _until(side, ListGroupsRequest(), lambda answer: not answer.error_code)
    _until(side, InitProducerIdRequest(transactional_id=None), lambda answer: not answer.error_code)
    transactional = InitProducerIdRequest(transactional_id="any", transaction_timeout_ms=60_000)
    _until(side, transactional, lambda answer: not answer.error_code)
    side.await_topics({*TOPICS})


def is_known(answer: FindCoordinatorResponse) -> bool:
    return answer.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE


def _until(side: Side, request: Request, is_done: Callable[[Any], bool]) -> None:
    """Repeat the request in version 3 until `is_done` accepts its response."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_done(answer := side.ask(request, 3)):
        if time.monotonic() > deadline:
            raise NotReady(f"{side.name} is not ready: {answer}")
        time.sleep(PAUSE_SECONDS)
