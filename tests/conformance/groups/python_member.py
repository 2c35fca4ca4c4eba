"""A group member that uses a Python client library. It prints reports in the format of Kafka's VerifiableConsumer.

    python -m tests.conformance.groups.python_member confluent 127.0.0.1:9092 TOPIC GROUP

The member prints one JSON object in each line. The `name` of an object is partitions_assigned, partitions_revoked,
records_consumed or offsets_committed. All objects except offsets_committed contain the list `partitions`. In a
records_consumed object, this list contains the first and last offset of each partition.

The member commits each batch before it polls the next batch.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SESSION_MS = 6_000
HEARTBEAT_MS = 1_000
POLL_SECONDS = 0.2
EAGER = ("range", "sticky", "roundrobin")  # Each client supports at least one of these assignors.


def emit(name: str, **fields: Any) -> None:
    print(json.dumps({"name": name, **fields}), flush=True)


def rebalanced(name: str, partitions: Iterable[tuple[str, int]]) -> None:
    emit(f"partitions_{name}", partitions=[{"topic": topic, "partition": number} for topic, number in partitions])


def consumed(ranges: Mapping[tuple[str, int], tuple[int, int]]) -> None:
    """Report the records of one poll. `ranges` maps each partition to its first and last offset."""
    partitions = [
        {"topic": topic, "partition": number, "minOffset": first, "maxOffset": last}
        for (topic, number), (first, last) in ranges.items()
    ]
    emit("records_consumed", partitions=partitions)


def ranges_of(records: Iterable[tuple[str, int, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for topic, number, offset in records:
        first, _ = found.get((topic, number), (offset, offset))
        found[topic, number] = first, offset
    return found


def listener(base: type) -> Any:
    """Return a rebalance listener. It is a subclass of `base`, which is the library's own class of listeners."""

    def assigned(self: object, given: Any) -> None:
        rebalanced("assigned", given)

    def revoked(self: object, taken: Any) -> None:
        rebalanced("revoked", taken)

    return type("Listener", (base,), {"on_partitions_assigned": assigned, "on_partitions_revoked": revoked})()


def confluent(bootstrap: str, topic: str, group: str, **more: str) -> None:
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **(more or {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}),
        }
    )
    consumer.subscribe(
        [topic],
        on_assign=lambda _, given: rebalanced("assigned", [(each.topic, each.partition) for each in given]),
        on_revoke=lambda _, taken: rebalanced("revoked", [(each.topic, each.partition) for each in taken]),
        on_lost=lambda _, taken: rebalanced("revoked", [(each.topic, each.partition) for each in taken]),
    )
    while True:
        messages = [each for each in consumer.consume(500, POLL_SECONDS) if not each.error()]
        if messages:
            consumed(ranges_of((each.topic() or "", each.partition() or 0, each.offset() or 0) for each in messages))
            try:
                consumer.commit(asynchronous=False)
            except KafkaException:
                # The group rebalances, so the commit fails. The next owner of the partition continues at the last
                # committed offset.
                continue
            emit("offsets_committed")


def confluent_cooperative(bootstrap: str, topic: str, group: str) -> None:
    session = {"session.timeout.ms": str(SESSION_MS), "heartbeat.interval.ms": str(HEARTBEAT_MS)}
    confluent(bootstrap, topic, group, **session, **{"partition.assignment.strategy": "cooperative-sticky"})


def confluent_consumer_protocol(bootstrap: str, topic: str, group: str) -> None:
    """Run a member with KIP-848's protocol, in which the broker sets session timeout and heartbeat interval."""
    confluent(bootstrap, topic, group, **{"group.protocol": "consumer"})


def kafka_python(bootstrap: str, topic: str, group: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.subscribe([topic], listener=listener(ConsumerRebalanceListener))
    while True:
        try:
            batches = consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
            if batches:
                consumed({tuple(where): (batch[0].offset, batch[-1].offset) for where, batch in batches.items()})
                consumer.commit()
                emit("offsets_committed")
        except KafkaError:  # A rebalance or a stopped broker causes this error. The member tries again.
            continue


def aiokafka(bootstrap: str, topic: str, group: str) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.abc import ConsumerRebalanceListener
    from aiokafka.errors import KafkaError

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        consumer.subscribe([topic], listener=listener(ConsumerRebalanceListener))
        await consumer.start()
        while True:
            batches = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
            batches = {where: batch for where, batch in batches.items() if batch}
            if batches:
                consumed({tuple(where): (batch[0].offset, batch[-1].offset) for where, batch in batches.items()})
                try:
                    await consumer.commit()
                except KafkaError:
                    continue
                emit("offsets_committed")

    asyncio.run(consume())


def hmb(bootstrap: str, topic: str, group: str, assignors: Sequence[str] = EAGER, **more: Any) -> None:
    from hmb import Consumer
    from hmb.client import ConnectionFailed
    from hmb.protocol.errors import KafkaError

    consumer = Consumer(
        bootstrap,
        topic,
        group=group,
        auto_commit=False,
        session_timeout=SESSION_MS / 1000,
        heartbeat_interval=HEARTBEAT_MS / 1000,
        assignors=assignors,
        on_assigned=lambda given: rebalanced("assigned", given),
        on_revoked=lambda taken: rebalanced("revoked", taken),
        **more,
    )
    while True:
        records = consumer.poll(POLL_SECONDS)
        if records:
            consumed(ranges_of((each.topic, each.partition, each.offset) for each in records))
            try:
                consumer.commit()
            except (ConnectionFailed, KafkaError):
                continue
            emit("offsets_committed")


def hmb_cooperative(bootstrap: str, topic: str, group: str) -> None:
    hmb(bootstrap, topic, group, assignors=["cooperative-sticky"])


def hmb_consumer_protocol(bootstrap: str, topic: str, group: str) -> None:
    hmb(bootstrap, topic, group, group_protocol="consumer")


MEMBERS = {
    "hmb": hmb,
    "hmb-cooperative": hmb_cooperative,
    "hmb-consumer": hmb_consumer_protocol,
    "confluent": confluent,
    "confluent-cooperative": confluent_cooperative,
    "confluent-consumer": confluent_consumer_protocol,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    kind, *arguments = sys.argv[1:]
    MEMBERS[kind](*arguments)
