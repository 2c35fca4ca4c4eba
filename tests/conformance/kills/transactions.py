"""Kills a broker with SIGKILL many times during transactions. Checks that readers see only whole transactions.

    python -m tests.conformance.kills.transactions --kills 20
    python -m tests.conformance.kills.transactions --kills 20 --against kafka43

A client reads numbers from one topic and writes them to two partitions of another topic. Each transaction contains
several numbers and the offset up to which they were read. About every third transaction is aborted, and its numbers are
read again.

The kill happens at a random time. After the restart, the client that copies the numbers continues, or a new client
with the same transactional id starts at the committed offset.

Each record contains the number of its transaction. In the end, consumers with read_committed must read every number
exactly once. They see all records of a committed transaction and none of an aborted one. If a commit got no response,
they see all records of its transaction or none.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter, defaultdict

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from hmb.bench import peers
from tests.conformance.kills.records import options
from tests.conformance.matrix import BROKERS

SOURCE, COPY, GROUP = "numbers", "copy", "copiers"
PARTITIONS = 2  # the number of partitions of the copied topic
AT_ONCE = 50  # the maximum number of values in one transaction
SECONDS = 30.0
QUICKLY: dict[str, str | int | float | bool] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    # By default, librdkafka 2.16 keeps asking a coordinator that it has removed from its metadata.
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}


class Copier(threading.Thread):
    """A thread that copies all numbers in transactions. After each restart of the broker, it continues."""

    def __init__(self, bootstrap: str, count: int, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self.settings = {**QUICKLY, "bootstrap.servers": bootstrap}
        self.count, self.chance = count, chance
        self.transaction = 0
        self.written: dict[int, Counter[int]] = defaultdict(Counter)  # transaction -> numbers written in it
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.position = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        deadline = time.monotonic() + SECONDS
        try:
            while self.position < self.count:
                try:
                    self.copy()
                    deadline = time.monotonic() + SECONDS
                except KafkaException:  # The broker was killed. Start with a new client.
                    if time.monotonic() > deadline:
                        raise
        except Exception as error:
            self.failure = error
            raise

    def copy(self) -> None:
        producer = confluent_kafka.Producer({**self.settings, "transactional.id": "copier", "linger.ms": 0})
        producer.init_transactions(SECONDS)
        consumer = confluent_kafka.Consumer(
            {**self.settings, "group.id": GROUP, "isolation.level": "read_committed", "enable.auto.commit": False}
        )
        try:
            self.position = self.committed_position(consumer)
            while self.position < self.count:
                self.copy_some(producer, consumer)
        finally:
            consumer.close()

    def committed_position(self, consumer: confluent_kafka.Consumer) -> int:
        (found,) = consumer.committed([TopicPartition(SOURCE, 0)], SECONDS)
        position = max(0, found.offset)
        consumer.assign([TopicPartition(SOURCE, 0, position)])
        return position

    def copy_some(self, producer: confluent_kafka.Producer, consumer: confluent_kafka.Consumer) -> None:
        messages = consumer.consume(self.chance.randint(1, AT_ONCE), 5.0)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        if not messages:
            raise KafkaException(confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT))
        self.transaction += 1
        producer.begin_transaction()
        for message in messages:
            number = int(message.value() or b"-1")
            self.written[self.transaction][number] += 1
            producer.produce(COPY, b"%d %d" % (self.transaction, number), partition=number % PARTITIONS)
        last = messages[-1].offset()
        assert last is not None
        offsets = [TopicPartition(SOURCE, 0, last + 1)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
        if self.chance.random() < 0.3:
            producer.flush(SECONDS)
            producer.abort_transaction(SECONDS)
            self.aborted.add(self.transaction)
            self.committed_position(consumer)
        else:
            producer.commit_transaction(SECONDS)
            self.committed.add(self.transaction)
            self.position = last + 1

    def check(self, bootstrap: str, *, is_over: bool) -> int:
        """Check the records that a consumer with read_committed sees, and return the number of these records.

        Each transaction must be complete. If `is_over` is False, this thread continues to copy during the check. The
        consumer can then see only a part of a new transaction, because it reads one partition after the other. So the
        check requires only that the transactions before the newest one at the start of the check are complete.
        """
        present = self.transaction + 1 if is_over else self.transaction
        committed = {transaction for transaction in self.committed.copy() if transaction < present}
        seen: dict[int, Counter[int]] = defaultdict(Counter)
        for transaction, number in read_committed(bootstrap):
            seen[transaction][number] += 1
        for transaction in committed:
            assert seen[transaction] == self.written[transaction], f"transaction {transaction} is not whole"
        for transaction, numbers in seen.items():
            assert transaction not in self.aborted, f"transaction {transaction} was aborted and is seen"
            if transaction < present:
                assert numbers == self.written[transaction], f"transaction {transaction} is seen in part"
        every = Counter[int]()
        for numbers in seen.values():
            every += numbers
        twice = [number for number, times in every.items() if times > 1]
        assert not twice, f"{len(twice)} numbers were copied twice, the first: {twice[0]}"
        assert not is_over or every.keys() == set(range(self.count)), "numbers are missing"
        return every.total()


def read_committed(bootstrap: str) -> list[tuple[int, int]]:
    """Return `(transaction, number)` of each record that a consumer with read_committed can read now."""
    consumer = confluent_kafka.Consumer(
        {**QUICKLY, "bootstrap.servers": bootstrap, "group.id": "checker", "isolation.level": "read_committed"}
        | {"enable.partition.eof": True}
    )
    found, ended = [], set[int]()
    try:
        consumer.assign([TopicPartition(COPY, partition, 0) for partition in range(PARTITIONS)])
        deadline = time.monotonic() + SECONDS
        while len(ended) < PARTITIONS:
            assert time.monotonic() < deadline, f"not read within {SECONDS} s"
            for message in consumer.consume(1_000, 0.2):
                error = message.error()
                if error is None:
                    transaction, number = (message.value() or b"").split()
                    found.append((int(transaction), int(number)))
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended.add(message.partition() or 0)
    finally:
        consumer.close()
    return found


def prepare(bootstrap: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(SOURCE, 1, 1), NewTopic(COPY, PARTITIONS, 1)]
    for made in admin.create_topics(topics).values():
        made.result(SECONDS)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(SOURCE, b"%d" % number)
        producer.poll(0)
    assert not producer.flush(SECONDS)


def run(broker: peers.Peer, kills: int, chance: random.Random) -> int:
    """Kill the broker `kills` times while a `Copier` copies numbers. Return the number of transactions.

    Raises AssertionError if the copied numbers are wrong or incomplete, or if the `Copier` fails.
    """
    count = kills * 800
    with broker:
        prepare(broker.bootstrap, count)
        copier = Copier(broker.bootstrap, count, chance)
        copier.start()
        for kill in range(kills):
            goal = copier.transaction + chance.randint(5, 60)
            while copier.transaction < goal and copier.is_alive():
                time.sleep(chance.random() / 100)
            broker.kill()
            broker.start()
            length = copier.check(broker.bootstrap, is_over=False)
            print(f"kill {kill + 1}: {copier.transaction} transactions, {length} numbers copied")
        copier.join(count / 100 + SECONDS)
        assert copier.failure is None, f"the copier failed: {copier.failure!r}"
        assert not copier.is_alive(), "the copier does not come to its end"
        length = copier.check(broker.bootstrap, is_over=True)
        outcomes = f"{len(copier.committed)} committed, {len(copier.aborted)} aborted"
        print(f"{kills} kills: {copier.transaction} transactions, {outcomes}; {length} numbers copied once each")
    return copier.transaction


def main() -> int:
    chosen = options("kill -9 a broker in the middle of transactions, and look for all or nothing of each.")
    run(BROKERS[chosen.against](), chosen.kills, random.Random(chosen.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
