"""Writes records through an unreliable network, and checks that the log contains each record exactly once and in order.

    python -m tests.conformance.exactly_once --records 1000000
    python -m tests.conformance.exactly_once --records 1000000 --against kafka43 --seed 7
    python -m tests.conformance.exactly_once --records 100000 --transactions

The class `Unreliable` simulates the network. It cuts connections, loses responses, repeats Produce requests, and delays
requests and responses. Through this network, HMB's producer writes the numbers 0, 1, 2, ... to each of several
partitions.

After all writes, librdkafka reads each partition's log directly from the broker. The log must contain every number that
the producer wrote, once and in order. Each record must have the offset that its acknowledgment contained. HMB's
consumer must read the same records through the network.

With `--transactions`, the producer aborts every third transaction. In each partition, a consumer with read_committed
must find the committed numbers 0, 1, 2, ... in order, and no other records.

The network can delay a request of one transaction until the next transaction has begun. The broker recognizes the late
request by its old epoch, because each transaction has its own epoch (KIP-890).
"""

from __future__ import annotations

import argparse
import sys
import time

import hmb
from hmb.bench import peers
from hmb.bench.peers import topics
from hmb.client.producing.delivery import Delivery
from hmb.client.producing.metrics import ProducerMetrics
from hmb.protocol.errors import KafkaError
from tests.conformance.matrix import BROKERS
from tests.conformance.unreliable import Unreliable
from tests.conformance.whole_log import read_log

TOPIC = "numbers"
PARTITIONS = 3
BATCH_SIZE, REQUEST_SIZE = 2_048, 4_096  # bytes; small, so that there are many batches and requests
REQUEST_SECONDS = 2.0  # the time after which a request without a response fails
DELIVERY_SECONDS = 600.0
IN_TRANSACTION = 30  # records for each partition in one transaction
UNKNOWN = -1  # The producer reports this offset if the broker no longer knows the offset of a repeated batch.


def produce(network: Unreliable, records: int) -> ProducerMetrics:
    """Produce the records. Raises AssertionError if a record is not delivered correctly."""
    deliveries: list[list[Delivery]] = [[] for _ in range(PARTITIONS)]
    with hmb.Producer(
        network.address,
        linger_ms=1,
        batch_size=BATCH_SIZE,
        max_request_size=REQUEST_SIZE,
        request_timeout=REQUEST_SECONDS,
        delivery_timeout=DELIVERY_SECONDS,
        retry_backoff=0.01,
    ) as producer:
        for number in range(records):
            partition = number % PARTITIONS
            value = b"%d" % (number // PARTITIONS)
            deliveries[partition].append(producer.send(TOPIC, value, partition=partition))
            if number == 0:
                # Wait for the first delivery, because the producer does not retry its first connection.
                deliveries[0][0].result()
                network.calm = False
        producer.flush()
        metrics = producer.metrics()
    network.calm = True
    for partition, of_partition in enumerate(deliveries):
        for number, delivery in enumerate(of_partition):
            offset = delivery.result().offset
            assert offset in (number, UNKNOWN), f"{number} of partition {partition} was delivered to offset {offset}"
    return metrics


def produce_in_transactions(network: Unreliable, records: int) -> tuple[int, int]:
    """Write the records in transactions, and abort every third transaction.

    Return the number of committed records, and the number of failed transactions.

    On Kafka 4.3.0, a transaction sometimes fails because the network has repeated a batch of an earlier transaction.
    """
    committed = failed = 0
    with hmb.Producer(
        network.address,
        transactional_id="writer",
        linger_ms=1,
        batch_size=BATCH_SIZE,
        max_request_size=REQUEST_SIZE,
        request_timeout=REQUEST_SECONDS,
        delivery_timeout=DELIVERY_SECONDS,
        max_block=DELIVERY_SECONDS,
        retry_backoff=0.01,
    ) as producer:
        producer.init_transactions()
        network.calm = False
        for number in range(records // (IN_TRANSACTION * PARTITIONS)):
            producer.begin_transaction()
            try:
                for value in range(committed, committed + IN_TRANSACTION):
                    for partition in range(PARTITIONS):
                        producer.send(TOPIC, b"%d" % value, partition=partition)
                if number % 3 != 2:
                    producer.commit_transaction()
                    committed += IN_TRANSACTION
                    continue
            except KafkaError:
                failed += 1
            producer.abort_transaction()
        network.calm = True
    return committed * PARTITIONS, failed


def check_log(bootstrap: str, records: int) -> None:
    for partition in range(PARTITIONS):
        log = read_log(bootstrap, TOPIC, "read_committed", partition)
        values = [int(record.value or b"-1") for record in log]
        expected = len(range(partition, records, PARTITIONS))
        wrong = next((n for n, value in enumerate(values) if value != n), None)
        assert wrong is None, f"offset {wrong} of partition {partition} holds {values[wrong]}: twice, lost or moved"
        assert len(values) == expected, f"partition {partition} has {len(values)} records, not {expected}"


def consume(network: Unreliable, records: int) -> None:
    """Read the records through the network. Raises AssertionError if their values are not 0, 1, 2, ... in order."""
    found = [0] * PARTITIONS
    with hmb.Consumer(
        network.address,
        TOPIC,
        until="end",
        max_partition_bytes=4 * REQUEST_SIZE,
        request_timeout=REQUEST_SECONDS,
        retry_for=DELIVERY_SECONDS,
    ) as consumer:
        network.calm = False
        for record in consumer:
            assert int(record.value or b"-1") == record.offset == found[record.partition], record
            found[record.partition] += 1
    network.calm = True
    assert sum(found) == records, f"{sum(found)} records were read, not {records}"


def run(broker: peers.Peer, records: int, seed: int) -> str:
    """Write and read without transactions, and return a report.

    Raises AssertionError if a record is lost, repeated or reordered.
    """
    with broker:
        topics.create(broker.bootstrap, TOPIC, partitions=PARTITIONS)
        started = time.monotonic()
        with Unreliable(broker.bootstrap, seed) as network:
            metrics = produce(network, records)
        report = [
            f"{broker.name}: {records} records produced in {time.monotonic() - started:.1f} s, "
            f"{metrics.batches_retried} batches tried again",
            f"  {network}",
        ]
        check_log(broker.bootstrap, records)
        started = time.monotonic()
        with Unreliable(broker.bootstrap, seed) as network:
            consume(network, records)
        seconds = time.monotonic() - started
        report += [f"  each record written once and in order; all read in order in {seconds:.1f} s", f"  {network}"]
    return "\n".join(report)


def run_transactions(broker: peers.Peer, records: int, seed: int) -> str:
    """Write and read in transactions, and return a report.

    Raises AssertionError if a record is lost, repeated or reordered.
    """
    with broker:
        topics.create(broker.bootstrap, TOPIC, partitions=PARTITIONS)
        started = time.monotonic()
        with Unreliable(broker.bootstrap, seed) as network:
            committed, failed = produce_in_transactions(network, records)
        seconds = time.monotonic() - started
        check_log(broker.bootstrap, committed)
    counts = f"{committed} of {records} records committed in {seconds:.1f} s, {failed} transactions failed"
    return f"{broker.name}: {counts}\n  {network}\n  each committed record read once, in order, and no other record"


def main() -> int:
    parser = argparse.ArgumentParser(description="Exactly once and in order through an unreliable network.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1, help="the seed of the random failures of the network")
    parser.add_argument("--against", choices=["hmb", "kafka43"], default="hmb")
    parser.add_argument("--transactions", action="store_true", help="use transactions, and abort every third one")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    attempt = run_transactions if options.transactions else run
    print(attempt(BROKERS[options.against](), options.records, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
