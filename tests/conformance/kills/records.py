"""Kills a broker under load with SIGKILL, many times. Checks that every acknowledged record survives.

    python -m tests.conformance.kills.records --kills 20
    python -m tests.conformance.kills.records --kills 20 --against kafka43

One idempotent producer writes the numbers 0, 1, 2, ... during the whole test. The kill happens at a random time, while
requests are in flight. The broker starts again with the same directory and port, and the producer sends the
unacknowledged records again.

After each restart, the log must contain 0, 1, 2, ... in order, each number once. The broker recognizes repeated
batches, because it has recovered the producer's sequence numbers. Each acknowledged number must be at the offset that
its acknowledgment contained.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import confluent_kafka

from hmb.bench import peers
from tests.conformance.matrix import BROKERS
from tests.conformance.whole_log import read_log

TOPIC = "numbers"
IN_FLIGHT = 2_000
ACK_SECONDS = 60.0


class NumberProducer:
    """Sends 0, 1, 2, ... For each number, it stores the offset that the acknowledgment contains."""

    def __init__(self, bootstrap: str) -> None:
        self.acked: dict[int, int] = {}
        self.failures: list[confluent_kafka.KafkaError] = []
        self.next_number = 0
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 100,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )

    def delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.failures.append(error)
        else:
            offset = message.offset()
            assert offset is not None
            self.acked[int(message.value() or b"-1")] = offset

    def send_until_acked(self, more: int) -> None:
        """Send new numbers until the broker has acknowledged at least `more` of them.

        When this method returns, some requests may still be in flight.
        """
        deadline = time.monotonic() + ACK_SECONDS
        count = self.next_number + more
        while len(self.acked) < count:
            if len(self.producer) < IN_FLIGHT:
                self.producer.produce(TOPIC, b"%d" % self.next_number, on_delivery=self.delivered)
                self.next_number += 1
                self.producer.poll(0)
            else:
                self.producer.poll(0.05)
            assert not self.failures, f"not delivered: {self.failures[0]}"
            assert time.monotonic() < deadline, f"{len(self.acked)} acks, and no more within {ACK_SECONDS} s"

    def finish(self) -> None:
        left = self.producer.flush(ACK_SECONDS)
        assert not self.failures, f"not delivered: {self.failures[0]}"
        assert not left, f"{left} records without an ack"


def check(bootstrap: str, acked: dict[int, int]) -> int:
    """Check that the log contains 0, 1, 2, ... and that each acknowledged number has the acknowledged offset.

    Return the number of records.
    """
    records = read_log(bootstrap, TOPIC)
    numbers = [int(record.value or b"-1") for record in records]
    lost = [number for number, offset in acked.items() if offset >= len(numbers) or numbers[offset] != number]
    assert not lost, f"{len(lost)} of {len(acked)} acked records not at their offsets, the first: {lost[0]}"
    wrong = [offset for offset, number in enumerate(numbers) if number != offset]
    assert not wrong, f"offset {wrong[0]} holds number {numbers[wrong[0]]}: lost, doubled or out of order"
    assert [record.offset for record in records] == list(range(len(records)))
    return len(records)


def run(broker: peers.Peer, kills: int, chance: random.Random) -> list[float]:
    """Kill the broker `kills` times. Return the seconds that each restart took.

    Raises AssertionError if a record is lost, repeated or out of order, or if the producer cannot deliver a record.
    """
    starts: list[float] = []
    with broker:
        producer = NumberProducer(broker.bootstrap)
        for number in range(kills):
            producer.send_until_acked(chance.randint(100, 5_000))
            broker.kill()
            acked = dict(producer.acked)
            started = time.monotonic()
            broker.start()
            starts.append(time.monotonic() - started)
            length = check(broker.bootstrap, acked)
            print(f"kill {number + 1}: {len(acked)} acked, log of {length}, started again in {starts[-1]:.2f} s")
        producer.finish()
        length = check(broker.bootstrap, producer.acked)
        assert length == producer.next_number
        print(f"{kills} kills: {length} records sent, acked and read, in order, once")
    return starts


def options(description: str) -> argparse.Namespace:
    """Parse the command line that the kill experiments share: the number of kills, the broker and the random seed."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None, help="the seed of the random numbers")
    parser.add_argument("--against", choices=BROKERS, default="hmb")
    return parser.parse_args()


def main() -> int:
    chosen = options("kill -9 a broker under load and look for every acked record.")
    run(BROKERS[chosen.against](), chosen.kills, random.Random(chosen.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
