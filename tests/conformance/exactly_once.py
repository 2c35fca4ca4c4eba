"""Through a network that cuts, delays, loses and copies: is each record written once, and in its order?

    python -m tests.conformance.exactly_once --records 1000000
    python -m tests.conformance.exactly_once --records 1000000 --against kafka43 --seed 7
    python -m tests.conformance.exactly_once --records 100000 --transactions

HMB's producer writes 0, 1, 2, ... to each of some partitions through an `Unreliable` network.  Then each partition's
log, as librdkafka reads it from the broker itself, must be just that: nothing lost, nothing twice, nothing out of
order; and each record at the offset that its delivery named.  HMB's consumer must read the same through the network.

With transactions every third one is aborted; who reads what is committed must find 0, 1, 2, ... too.  There no request
comes late: an EndTxn that arrives when the next transaction has begun ends that one, and the client's kind of
transactions cannot tell (which is why KIP-890 gives every transaction an epoch of its own).
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
from tests.conformance.unreliable import Chances, Fate, Unreliable
from tests.conformance.whole_log import read_log

TOPIC = "numbers"
PARTITIONS = 3
BATCH_SIZE, REQUEST_SIZE = 2_048, 4_096  # small ones, so that there are many
REQUEST_SECONDS = 2.0  # until a lost connection counts as one
DELIVERY_SECONDS = 600.0
IN_TRANSACTION = 30  # records for each partition
UNKNOWN = -1  # the offset of what an earlier try had written, too long ago for the broker to say where


def produce(network: Unreliable, records: int) -> ProducerMetrics:
    """Write them; what is wrong with their deliveries is an AssertionError."""
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
                deliveries[0][0].result()  # the first contact is tried once, so it has to work
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
    """Write them in transactions, of which every third is aborted; how many records are committed, and what failed.

    Kafka 4.3.0 refuses a transaction now and then when the copy of a batch comes after its transaction has ended.
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
    """Read them through the network."""
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
    """What happened; what must not is an AssertionError."""
    with broker:
        topics.create(broker.bootstrap, TOPIC, partitions=PARTITIONS)
        started = time.monotonic()
        with Unreliable(broker.bootstrap, seed) as network:
            metrics = produce(network, records)
        told = [
            f"{broker.name}: {records} records produced in {time.monotonic() - started:.1f} s, "
            f"{metrics.batches_retried} batches tried again",
            f"  {network}",
        ]
        check_log(broker.bootstrap, records)
        started = time.monotonic()
        with Unreliable(broker.bootstrap, seed) as network:
            consume(network, records)
        told += [f"  each written once, in order; and so read in {time.monotonic() - started:.1f} s", f"  {network}"]
    return "\n".join(told)


def run_transactions(broker: peers.Peer, records: int, seed: int) -> str:
    """The same for transactions."""
    chances = Chances()
    del chances.requests[Fate.LATE]
    with broker:
        topics.create(broker.bootstrap, TOPIC, partitions=PARTITIONS)
        started = time.monotonic()
        with Unreliable(broker.bootstrap, seed, chances) as network:
            committed, failed = produce_in_transactions(network, records)
        seconds = time.monotonic() - started
        check_log(broker.bootstrap, committed)
    told = f"{broker.name}: {committed} of {records} records committed in {seconds:.1f} s, {failed} transactions failed"
    return f"{told}\n  {network}\n  each committed one once, in order, and no other"


def main() -> int:
    parser = argparse.ArgumentParser(description="Exactly once and in order through an unreliable network.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1, help="of the network's trouble")
    parser.add_argument("--against", choices=["hmb", "kafka43"], default="hmb")
    parser.add_argument("--transactions", action="store_true", help="of which every third is aborted")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    attempt = run_transactions if options.transactions else run
    print(attempt(BROKERS[options.against](), options.records, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
