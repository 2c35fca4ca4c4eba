"""A program that runs one client library: it produces or consumes records, and prints how long this took.

These two commands are examples:
    python library_client.py produce "hmb send" --bootstrap-server HOST:PORT --topic t --num-records 1000000
    python library_client.py consume aiokafka --bootstrap-server HOST:PORT --topic t --num-records 1000000

For a fair comparison, all client libraries use the same acks, linger and batch size, and a topic with one partition.
Compression, idempotent producers and consumer groups are not used. The producers of HMB and librdkafka have a buffer of
32 MB. The buffers of aiokafka and kafka-python are different, because these libraries have no setting for the size.

For two settings, each library uses its own default: the largest number of requests in flight, and the size of a fetch.
For example, kafka-python has at most 5 requests in flight on a connection, but librdkafka allows many more.

librdkafka fetches records in the background, and puts them into a queue. When the queue contains enough records,
librdkafka waits for one second before its next fetch (fetch.queue.backoff.ms). The client "confluent-kafka consume at
once" measures librdkafka without this wait: it sets fetch.queue.backoff.ms to 0, and uses a longer queue.

The time that a library needs to start is not measured. For a producer, the program measures the time from the
acknowledgment of the first record to the acknowledgment of the last record. For a consumer, it measures the time from
the first batch to the last record, and does not count the records of the first batch. The consumer reads each value, as
a real program does.

`hmb bench clients --versus` compares two installations of HMB. It runs this file with the Python interpreter of the
other installation. That installation may be older and lack newer functions. So this file imports only one function from
the package `hmb.bench`: `cpu_seconds`.
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

from hmb.bench.peers import cpu_seconds  # type: ignore[import-not-found]

TIMEOUT = 30.0  # A consumer gives up if no record arrives for this time (seconds).
BUFFER_MEMORY = 32 * 1024 * 1024
RECORDS_PER_CALL = 10_000  # the largest number of records in one call, if the library has calls for many records
DISTINCT_VALUES = 1_000
FIRST = b"first"
CHILDREN: list[int] = []  # the process ids of the commands that this program has started


@dataclass(frozen=True)
class Task:
    """The task of a client library: the broker, the topic, the number and size of the records, and the settings."""

    bootstrap: str
    topic: str
    records: int
    size: int  # bytes of a value
    acks: int
    linger_ms: int
    batch_size: int
    librdkafka: dict[str, str]  # further settings of librdkafka, for example for TLS

    def values(self) -> list[bytes]:
        """Return the values to send. They contain no line breaks, so `hmb consume` prints each value on one line."""
        some = [os.urandom(self.size // 2 + 1).hex()[: self.size].encode() for _ in range(DISTINCT_VALUES)]
        return [some[number % DISTINCT_VALUES] for number in range(self.records)]


class Elapsed(NamedTuple):
    """How long a run takes, in seconds: wall-clock time, and CPU time of this process and its child processes."""

    seconds: float
    cpu_seconds: float


class Stopwatch:
    """A clock that measures wall-clock time and CPU time since its creation."""

    def __init__(self) -> None:
        self._started = self._now()

    def read(self) -> Elapsed:
        now = self._now()
        return Elapsed(now.seconds - self._started.seconds, now.cpu_seconds - self._started.cpu_seconds)

    def _now(self) -> Elapsed:
        return Elapsed(time.perf_counter(), time.process_time() + sum(map(cpu_seconds, CHILDREN)))


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


def hmb_send(task: Task, values: list[bytes]) -> Elapsed:
    topic = task.topic
    with hmb_producer(task) as producer:
        producer.send(topic, FIRST).result()
        clock = Stopwatch()
        for value in values:
            producer.send(topic, value)
        producer.flush()
        return clock.read()


def hmb_send_many(task: Task, values: list[bytes]) -> Elapsed:
    with hmb_producer(task) as producer:
        producer.send(task.topic, FIRST).result()
        clock = Stopwatch()
        for at in range(0, len(values), RECORDS_PER_CALL):
            producer.send_many(task.topic, values[at : at + RECORDS_PER_CALL])
        producer.flush()
        return clock.read()


def hmb_send_many_arrow(task: Task, values: list[bytes]) -> Elapsed:
    import pyarrow

    calls = range(0, len(values), RECORDS_PER_CALL)
    columns = [pyarrow.array(values[at : at + RECORDS_PER_CALL], pyarrow.binary()) for at in calls]
    with hmb_producer(task) as producer:
        producer.send(task.topic, FIRST).result()
        clock = Stopwatch()
        for column in columns:
            producer.send_many(task.topic, column)
        producer.flush()
        return clock.read()


def confluent_produce(task: Task, values: list[bytes]) -> Elapsed:
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
            **task.librdkafka,
        }
    )
    topic = task.topic
    producer.produce(topic, FIRST)
    producer.flush()
    clock = Stopwatch()
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


def kafka_python_send(task: Task, values: list[bytes]) -> Elapsed:
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
    clock = Stopwatch()
    for value in values:
        producer.send(topic, value)
    producer.flush()
    elapsed = clock.read()
    producer.close()
    return elapsed


def aiokafka_send(task: Task, values: list[bytes]) -> Elapsed:
    from aiokafka import AIOKafkaProducer

    async def produce() -> Elapsed:
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
        clock = Stopwatch()
        for value in values:
            await producer.send(topic, value)
        await producer.flush()
        elapsed = clock.read()
        await producer.stop()
        return elapsed

    return asyncio.run(produce())


def hmb_records(task: Task) -> Iterator[tuple[int, int]]:
    import hmb

    with hmb.Consumer(task.bootstrap, task.topic) as consumer:
        while records := consumer.poll(TIMEOUT):
            yield len(records), sum([len(record.value) for record in records if record.value is not None])


def hmb_arrow(task: Task) -> Iterator[tuple[int, int]]:
    import hmb

    with hmb.Consumer(task.bootstrap, task.topic) as consumer:
        while (batch := consumer.poll_arrow(TIMEOUT)) is not None:
            yield batch.num_rows, batch.column("value").nbytes


def confluent_consumer(task: Task, **settings: int) -> Any:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": task.bootstrap,
            "group.id": "unused",  # librdkafka requires a group, although assign() does not use it.
            "enable.auto.commit": False,
            **task.librdkafka,
            **settings,
        }
    )
    consumer.assign([TopicPartition(task.topic, 0, OFFSET_BEGINNING)])
    return consumer


def confluent_consume(task: Task, **settings: int) -> Iterator[tuple[int, int]]:
    consumer = confluent_consumer(task, **settings)
    while messages := consumer.consume(RECORDS_PER_CALL, TIMEOUT):
        yield len(messages), sum([len(message.value()) for message in messages])


def confluent_consume_at_once(task: Task) -> Iterator[tuple[int, int]]:
    return confluent_consume(task, **{"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 0})


def confluent_poll(task: Task) -> Iterator[tuple[int, int]]:
    consumer = confluent_consumer(task)
    while (message := consumer.poll(TIMEOUT)) is not None:
        yield 1, len(message.value())


def kafka_python_poll(task: Task) -> Iterator[tuple[int, int]]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=task.bootstrap, group_id=None, enable_auto_commit=False)
    partition = TopicPartition(task.topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    while fetched := consumer.poll(timeout_ms=int(TIMEOUT * 1000), max_records=RECORDS_PER_CALL):
        for records in fetched.values():
            yield len(records), sum([len(record.value) for record in records])


def aiokafka_getmany(task: Task) -> Iterator[tuple[int, int]]:
    """Consume with aiokafka's `getmany`.

    All calls of `getmany` run in the same event loop. If each call started its own event loop, the start would
    take longer than the call.
    """
    from aiokafka import AIOKafkaConsumer, TopicPartition

    with asyncio.Runner() as runner:

        async def start() -> Any:
            consumer = AIOKafkaConsumer(bootstrap_servers=task.bootstrap, group_id=None, enable_auto_commit=False)
            await consumer.start()
            consumer.assign([TopicPartition(task.topic, 0)])
            await consumer.seek_to_beginning()
            return consumer

        consumer = runner.run(start())
        while fetched := runner.run(consumer.getmany(timeout_ms=int(TIMEOUT * 1000), max_records=RECORDS_PER_CALL)):
            for records in fetched.values():
                yield len(records), sum([len(record.value) for record in records])
        runner.run(consumer.stop())


def hmb_consume(task: Task) -> Iterator[tuple[int, int]]:
    """Run the command `hmb consume`, and yield (number of lines, number of bytes) for each block of its output."""
    hmb = Path(sys.executable).with_name("hmb")
    command = [str(hmb), "consume", task.topic, "-b", task.bootstrap, "--from-beginning", "--exit", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        CHILDREN.append(process.pid)
        while block := os.read(process.stdout.fileno(), 1 << 20):
            yield block.count(b"\n"), len(block)


PRODUCERS: dict[str, Callable[[Task, list[bytes]], Elapsed]] = {
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


def consume(task: Task, read: Callable[[Task], Iterator[tuple[int, int]]]) -> tuple[int, Elapsed]:
    """Read all records of a topic. Return how many records were measured, and how long it took to read them.

    The function `read` yields (number of records, number of bytes) for each batch that a client library returns.
    The clock starts only after the first batch, so the start of the library is not measured. The records of the
    first batch are therefore not counted.

    If records or bytes are missing, end the program with an error.
    """
    batches = read(task)
    first, size = next(batches, (0, 0))
    records = first
    clock = Stopwatch()
    for count, some in batches:
        records, size = records + count, size + some
        if records >= task.records:
            elapsed = clock.read()
            break
    else:
        sys.exit(f"read {records} records with {size} bytes, {first} in the first batch; expected {task.records}")
    # The check allows one short record, because a producer sends FIRST (5 bytes) before its measurement starts.
    if size < (task.records - 1) * task.size:
        sys.exit(f"read {records} records with {size} bytes; expected {task.size} bytes each")
    return records - first, elapsed


def main() -> int:
    parser = argparse.ArgumentParser(description="Produce or consume with one library and print how long it took.")
    parser.add_argument("action", choices=["produce", "consume"])
    parser.add_argument("client", choices=[*PRODUCERS, *CONSUMERS])
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--num-records", type=int, required=True)
    parser.add_argument("--record-size", type=int, default=100)
    parser.add_argument("--acks", type=int, default=1)
    parser.add_argument("--linger-ms", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=262_144)
    parser.add_argument("--librdkafka", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    sizes = options.num_records, options.record_size
    librdkafka = dict(each.split("=", 1) for each in options.librdkafka)
    batches = options.acks, options.linger_ms, options.batch_size
    task = Task(options.bootstrap_server, options.topic, *sizes, *batches, librdkafka)
    if options.action == "produce":
        records, elapsed = task.records, PRODUCERS[options.client](task, task.values())
    else:
        records, elapsed = consume(task, CONSUMERS[options.client])
    print(json.dumps({"records": records, **elapsed._asdict()}), flush=True)
    os._exit(0)  # Do not close the library, because some libraries take a long time to close.


if __name__ == "__main__":
    sys.exit(main())
