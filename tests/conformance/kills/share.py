"""Kills share consumers and the broker many times. Checks that the group processes each record at least once.

    python -m tests.conformance.kills.share --kills 20

Four consumer processes of one share group work through the records of a topic. Each consumer writes the values of its
records to a file, and then accepts the records. At random times, this program kills one of the consumers, or the
broker, with SIGKILL, and starts it again.

In the end, each value must be in a file at least once, and the lag of the group must be 0. The delivery counts show how
many records were delivered more than once.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from hmb.bench import peers
from hmb.client import Admin, Connection, NewTopic, Producer, ShareConsumer
from hmb.client.connection import ConnectionFailed
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from tests.conformance.kills.records import options

TOPIC, GROUP, PARTITIONS, CONSUMERS = "work", "workers", 2, 4
RECORDS_FOR_KILL = 10_000
SETTINGS = {
    "group.share.record.lock.duration.ms": "2000",
    "group.share.delivery.count.limit": "10",
    "group.share.assignment.interval.ms": "0",
}
SECONDS = 120.0


def consume(bootstrap: str, path: str) -> None:
    """Process records until this process is killed.

    For each record, the function appends a line with the value and the delivery count to the file `path`.
    """
    with Path(path).open("a", encoding="ascii") as file:
        consumer = ShareConsumer(bootstrap, TOPIC, group=GROUP, acknowledgement="explicit", retry_for=SECONDS)
        while True:
            records = consumer.poll(0.5)
            file.write("".join([f"{record.value.decode()} {record.delivery_count}\n" for record in records]))
            file.flush()
            for record in records:
                consumer.acknowledge(record)
            # After the broker was killed, the group delivers the records again.
            with suppress(ConnectionFailed, KafkaError):
                consumer.commit()


def start_consumer(bootstrap: str, path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.conformance.kills.share", "--consume", bootstrap, str(path)]
    return subprocess.Popen(command)


def processed(folder: Path) -> Counter[int]:
    """Return how often the consumers have processed each value. The last line of a file can be incomplete."""
    found: Counter[int] = Counter()
    for path in folder.iterdir():
        for line in path.read_text(encoding="ascii").split("\n")[:-1]:
            found[int(line.split()[0])] += 1
    return found


def lag(port: int) -> int:
    """Return the number of records whose delivery is not complete, or -1 while the broker does not know this number."""
    group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    with Connection(peers.HOST, port) as connection:
        (described,) = connection.send(DescribeShareGroupOffsetsRequest(groups=[group])).groups
    lags = [partition.lag for topic in described.topics for partition in topic.partitions]
    return sum(lags) if len(lags) == PARTITIONS and -1 not in lags else -1


def run(broker: peers.Peer, kills: int, chance: random.Random, per_kill: int = RECORDS_FOR_KILL) -> Counter[int]:
    """Kill a consumer or the broker `kills` times. Return how often each record was processed."""
    records = kills * per_kill
    with tempfile.TemporaryDirectory() as name, broker:
        folder = Path(name)
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
        consumers = [start_consumer(broker.bootstrap, folder / f"{number}-0") for number in range(CONSUMERS)]
        try:
            _await(lambda: lag(broker.port) == 0, "the group has joined")
            for kill in range(kills):
                _produce(broker.bootstrap, range(kill * per_kill, (kill + 1) * per_kill))
                goal = chance.randint(kill * per_kill, (kill + 1) * per_kill - 1)
                _await(partial(_has_processed, folder, goal), f"{goal} records are processed")
                victim = chance.randrange(CONSUMERS + 1)
                if victim == CONSUMERS:
                    broker.kill()
                    broker.start()
                else:
                    consumers[victim].kill()
                    consumers[victim].wait()
                    consumers[victim] = start_consumer(broker.bootstrap, folder / f"{victim}-{kill + 1}")
                who = "the broker" if victim == CONSUMERS else f"consumer {victim}"
                print(f"kill {kill + 1}: {who}, {len(processed(folder))} of {records} records processed", flush=True)
            _await(lambda: len(processed(folder)) == records, "all records are processed")
            _await(lambda: lag(broker.port) == 0, "the lag is 0")
            return processed(folder)
        finally:
            for consumer in consumers:
                consumer.kill()
                consumer.wait()


def _has_processed(folder: Path, goal: int) -> bool:
    return len(processed(folder)) > goal


def _produce(bootstrap: str, values: range) -> None:
    with Producer(bootstrap, acks="all") as producer:
        for number in values:
            producer.send(TOPIC, b"%d" % number)


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            if condition():
                return
        except (ConnectionFailed, KafkaError):
            pass  # The broker is starting.
        assert time.monotonic() < deadline, f"{what}: not within {SECONDS:g} s"
        time.sleep(0.05)


def main() -> int:
    if sys.argv[1:2] == ["--consume"]:
        consume(*sys.argv[2:])
    chosen = options("kill -9 share consumers and their broker, and look for every record.")
    with tempfile.TemporaryDirectory() as directory:
        found = run(peers.Hmb(Path(directory), config=SETTINGS), chosen.kills, random.Random(chosen.seed))
    print(f"{len(found)} records processed, {sum(count > 1 for count in found.values())} of them more than once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
