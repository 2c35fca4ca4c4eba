"""One client library in a process of its own: it produces or consumes so many records, and says how long that took.

    python -m hmb.bench.load.one_client produce "hmb send" --bootstrap-server HOST:PORT --topic t --num-records 1000000
    python -m hmb.bench.load.one_client consume aiokafka --bootstrap-server HOST:PORT --topic t --num-records 1000000

What is the same for all: acks, linger, the size of a batch, no compression, no idempotence, one partition, no group,
and a buffer of 32 MB where there is such a setting (aiokafka and kafka-python have none).  What is each library's own:
how many requests are in flight (many in librdkafka, 5 or 1 in the others), and how much is fetched at once.  librdkafka
waits a second before it fetches again when it has enough in hand (fetch.queue.backoff.ms); "at once" is without that.

The clock of a producer starts when a first record is acknowledged, and stops when all are; that of a consumer starts
with the first records that come, which do not count.  So no library pays for its start.  Consumers look at each value,
since a program would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .. import peers

PATIENCE = 30.0  # seconds without a record
BUFFER_MEMORY = 32 * 1024 * 1024
AT_ONCE = 10_000  # records in one call, where a call takes several
VALUES = 1_000  # that differ
FIRST = b"first"
CHILDREN: list[int] = []  # processes that do a client's work


@dataclass(frozen=True)
class Task:
    """What the libraries are told."""

    bootstrap: str
    topic: str
    records: int
    size: int
    acks: int
    linger_ms: int
    batch_size: int

    def values(self) -> list[bytes]:
        """Lines of text, as `hmb consume` prints them one by one."""
        some = [os.urandom(self.size // 2 + 1).hex()[: self.size].encode() for _ in range(VALUES)]
        return [some[number % VALUES] for number in range(self.records)]


class Took(NamedTuple):
    """Seconds, by the wall's clock and of CPU: all threads of this process, and its children."""

    seconds: float
    cpu_seconds: float


class Clock:
    def __init__(self) -> None:
        self._started = self._now()

    def read(self) -> Took:
        now = self._now()
        return Took(now.seconds - self._started.seconds, now.cpu_seconds - self._started.cpu_seconds)

    def _now(self) -> Took:
        return Took(time.perf_counter(), time.process_time() + sum(map(peers.cpu_seconds, CHILDREN)))


def hmb_producer(task: Task) -> Any:
    import hmb

    return hmb.Producer(
        task.bootstrap,
        acks=task.acks,
        idempotence=False,
        linger_ms=task.linger_ms,
        batch_size=task.batch_size,
        buffer_memory=BUFFER_MEMORY,
    )


def hmb_send(task: Task, values: list[bytes]) -> Took:
    topic = task.topic
    with hmb_producer(task) as producer:
        producer.send(topic, FIRST).result()
        clock = Clock()
        for value in values:
            producer.send(topic, value)
        producer.flush()
        return clock.read()


def hmb_send_many(task: Task, values: list[bytes]) -> Took:
    with hmb_producer(task) as producer:
        producer.send(task.topic, FIRST).result()
        clock = Clock()
        for at in range(0, len(values), AT_ONCE):
            producer.send_many(task.topic, values[at : at + AT_ONCE])
        producer.flush()
        return clock.read()


def hmb_send_many_arrow(task: Task, values: list[bytes]) -> Took:
    import pyarrow

    columns = [pyarrow.array(values[at : at + AT_ONCE], pyarrow.binary()) for at in range(0, len(values), AT_ONCE)]
    with hmb_producer(task) as producer:
        producer.send(task.topic, FIRST).result()
        clock = Clock()
        for column in columns:
            producer.send_many(task.topic, column)
        producer.flush()
        return clock.read()


def confluent_produce(task: Task, values: list[bytes]) -> Took:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": task.bootstrap,
            "acks": task.acks,
            "enable.idempotence": False,
            "linger.ms": task.linger_ms,
            "batch.size": task.batch_size,
            "batch.num.messages": 1_000_000,
            "queue.buffering.max.kbytes": BUFFER_MEMORY // 1024,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    topic = task.topic
    producer.produce(topic, FIRST)
    producer.flush()
    clock = Clock()
    for value in values:
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush()
    return clock.read()


def kafka_python_send(task: Task, values: list[bytes]) -> Took:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=task.bootstrap,
        acks=task.acks,
        enable_idempotence=False,
        linger_ms=task.linger_ms,
        batch_size=task.batch_size,
    )
    topic = task.topic
    producer.send(topic, FIRST).get()
    clock = Clock()
    for value in values:
        producer.send(topic, value)
    producer.flush()
    took = clock.read()
    producer.close()
    return took


def aiokafka_send(task: Task, values: list[bytes]) -> Took:
    from aiokafka import AIOKafkaProducer

    async def produce() -> Took:
        producer = AIOKafkaProducer(
            bootstrap_servers=task.bootstrap,
            acks=task.acks,
            enable_idempotence=False,
            linger_ms=task.linger_ms,
            max_batch_size=task.batch_size,
        )
        await producer.start()
        topic = task.topic
        await producer.send_and_wait(topic, FIRST)
        clock = Clock()
        for value in values:
            await producer.send(topic, value)
        await producer.flush()
        took = clock.read()
        await producer.stop()
        return took

    return asyncio.run(produce())


def hmb_records(task: Task) -> Iterator[tuple[int, int]]:
    import hmb

    with hmb.Consumer(task.bootstrap, task.topic) as consumer:
        while records := consumer.poll(PATIENCE):
            yield len(records), sum([len(record.value) for record in records if record.value is not None])


def hmb_arrow(task: Task) -> Iterator[tuple[int, int]]:
    import hmb

    with hmb.Consumer(task.bootstrap, task.topic) as consumer:
        while (batch := consumer.poll_arrow(PATIENCE)) is not None:
            yield batch.num_rows, batch.column("value").nbytes


def confluent_consumer(task: Task, **more: int) -> Any:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": "assigned-by-hand",  # librdkafka wants one, and assign() does not use it
            "enable.auto.commit": False,
            **more,
        }
    )
    consumer.assign([TopicPartition(task.topic, 0, OFFSET_BEGINNING)])
    return consumer


def confluent_consume(task: Task, **more: int) -> Iterator[tuple[int, int]]:
    consumer = confluent_consumer(task, **more)
    while messages := consumer.consume(AT_ONCE, PATIENCE):
        yield len(messages), sum([len(message.value()) for message in messages])


def confluent_consume_at_once(task: Task) -> Iterator[tuple[int, int]]:
    return confluent_consume(task, **{"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 0})


def confluent_poll(task: Task) -> Iterator[tuple[int, int]]:
    consumer = confluent_consumer(task)
    while (message := consumer.poll(PATIENCE)) is not None:
        yield 1, len(message.value())


def kafka_python_poll(task: Task) -> Iterator[tuple[int, int]]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=task.bootstrap, group_id=None, enable_auto_commit=False)
    partition = TopicPartition(task.topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    while fetched := consumer.poll(timeout_ms=int(PATIENCE * 1000), max_records=AT_ONCE):
        for records in fetched.values():
            yield len(records), sum([len(record.value) for record in records])


def aiokafka_getmany(task: Task) -> Iterator[tuple[int, int]]:
    """A loop of its own for each call would cost more than the call: so the loop is kept."""
    from aiokafka import AIOKafkaConsumer, TopicPartition

    with asyncio.Runner() as runner:

        async def start() -> Any:
            consumer = AIOKafkaConsumer(bootstrap_servers=task.bootstrap, group_id=None, enable_auto_commit=False)
            await consumer.start()
            consumer.assign([TopicPartition(task.topic, 0)])
            await consumer.seek_to_beginning()
            return consumer

        consumer = runner.run(start())
        while fetched := runner.run(consumer.getmany(timeout_ms=int(PATIENCE * 1000), max_records=AT_ONCE)):
            for records in fetched.values():
                yield len(records), sum([len(record.value) for record in records])
        runner.run(consumer.stop())


def hmb_consume(task: Task) -> Iterator[tuple[int, int]]:
    """The command's lines, through a pipe."""
    hmb = Path(sys.executable).with_name("hmb")
    command = [str(hmb), "consume", task.topic, "-b", task.bootstrap, "--from-beginning", "--exit", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        CHILDREN.append(process.pid)
        while block := os.read(process.stdout.fileno(), 1 << 20):
            yield block.count(b"\n"), len(block)


PRODUCERS: dict[str, Callable[[Task, list[bytes]], Took]] = {
    "hmb send": hmb_send,
    "hmb send_many": hmb_send_many,
    "hmb send_many, Arrow": hmb_send_many_arrow,
    "confluent-kafka": confluent_produce,
    "aiokafka": aiokafka_send,
    "kafka-python": kafka_python_send,
}
CONSUMERS: dict[str, Callable[[Task], Iterator[tuple[int, int]]]] = {
    "hmb records": hmb_records,
    "hmb Arrow": hmb_arrow,
    "hmb consume": hmb_consume,
    "confluent-kafka consume": confluent_consume,
    "confluent-kafka consume at once": confluent_consume_at_once,
    "confluent-kafka poll": confluent_poll,
    "aiokafka": aiokafka_getmany,
    "kafka-python": kafka_python_poll,
}


def consume(task: Task, read: Callable[[Task], Iterator[tuple[int, int]]]) -> tuple[int, Took]:
    """How many records came after the first ones, and in which time; SystemExit if they are not all there."""
    batches = read(task)
    first, size = next(batches, (0, 0))
    records = first
    clock = Clock()
    for count, more in batches:
        records, size = records + count, size + more
        if records >= task.records:
            took = clock.read()
            break
    else:
        sys.exit(
            f"{records} records with {size} bytes, {first} at first; {task.records} should come, and not all at once"
        )
    if size < (task.records - 1) * task.size:  # one was there before the clock
        sys.exit(f"{records} records with {size} bytes, not {task.size} each")
    return records - first, took


def main() -> int:
    parser = argparse.ArgumentParser(description="Produce or consume with one library, and say how long it took.")
    parser.add_argument("what", choices=["produce", "consume"])
    parser.add_argument("client", choices=[*PRODUCERS, *CONSUMERS])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--num-records", type=int, required=True)
    parser.add_argument("--record-size", type=int, default=100)
    parser.add_argument("--acks", type=int, default=1)
    parser.add_argument("--linger-ms", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=262_144)
    given = parser.parse_args()
    size, batch = given.record_size, given.batch_size
    task = Task(given.bootstrap_server, given.topic, given.num_records, size, given.acks, given.linger_ms, batch)
    if given.what == "produce":
        records, took = task.records, PRODUCERS[given.client](task, task.values())
    else:
        records, took = consume(task, CONSUMERS[given.client])
    print(json.dumps({"records": records, **took._asdict()}), flush=True)
    os._exit(0)  # some libraries take their time to close, which is not measured


if __name__ == "__main__":
    sys.exit(main())
