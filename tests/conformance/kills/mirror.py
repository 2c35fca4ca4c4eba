"""Kills brokers and mirrors with SIGKILL. Checks that a copy of a copy has the same records as the original.

    python -m tests.conformance.kills.mirror --kills 20 --records 1000000
    python -m tests.conformance.kills.mirror --kills 20 --records 1000000 --transactions

Two mirrors run at the same time. The first one copies eight topics from HMB to Kafka 4.3.0, and the second one copies
them back to another HMB. A producer writes the records in portions. After each portion, this program kills one of the
three brokers, or one of the two mirrors, and starts it again.

At the end, `hmb consume --json` prints the records of all three brokers. Topic, partition, timestamp, key, value,
headers and order must be equal. The group `billing` must continue at the same records in all three clusters.

With `--transactions`, a copy must contain each record once. Without `--transactions`, a copy may contain a record
twice, and the program counts the repeated records. If no record of a partition is repeated, the offsets in the copy
must be equal to the original offsets.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import hmb
from hmb.bench import peers
from tests.waiting import until

COMMAND = str(Path(sys.executable).with_name("hmb"))
TOPICS, PARTITIONS = [f"topic-{number}" for number in range(8)], 2
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
GROUP = "billing"
FIRST_TIME = 1_790_000_000_000  # ms since 1970
NO_RETENTION = {"retention.ms": "-1"}  # Otherwise, the brokers delete the records, because their timestamps are old.
SECONDS = 300.0

Record = dict[str, Any]
Copy = dict[tuple[str, int], list[Record]]  # the records of each partition


class MirrorProcess:
    """A mirror in a process of its own. It runs until it is killed."""

    def __init__(self, source: peers.Peer, target: peers.Peer, stack: ExitStack, *, transactional: bool) -> None:
        self.name = f"the mirror from {source.name} to {target.name}"
        ends = ["--from", source.bootstrap, "--to", target.bootstrap]
        self._command = [COMMAND, "mirror", *ends, *(["--transactions"] if transactional else [])]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self._output, self._errors = folder / "output", folder / "errors"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the mirror, and wait until it has printed its first line about its progress."""
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen([*self._command, "--json"], stdout=output, stderr=errors)
        until(lambda: self._output.stat().st_size or self._has_ended(), seconds=SECONDS, pause=0.01)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        has_ended = process.poll() is not None
        process.kill()
        process.wait()
        if has_ended:
            raise AssertionError(f"{self.name} ended: {self._errors.read_text()}")

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def finish(self) -> None:
        """Kill the mirror, and run `hmb mirror --once`, which copies all remaining records and then ends."""
        self.kill()
        done = subprocess.run([*self._command, "--once"], capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr.decode()


def produce(bootstrap: str, first: int, count: int) -> None:
    """Write `count` records, numbered from `first`, and divide them equally between the eight topics.

    If `first` is 0, topic-0 gets the records 0, 8, 16, ..., and topic-1 gets the records 1, 9, 17, ...
    """
    for at, topic in enumerate(TOPICS):
        with hmb.Producer(bootstrap, compression=CODECS[at % len(CODECS)]) as producer:
            for number in range(first + at, first + count, len(TOPICS)):
                key = None if number % 5 == 0 else b"key %d" % number
                value = None if number % 13 == 0 else b"value %d " % number + b"x" * 80
                headers = [("number", b"%d" % number), ("null", None)] if number % 3 == 0 else []
                partition = number // len(TOPICS) % PARTITIONS
                time_of_record = FIRST_TIME + number
                producer.send(
                    topic, value, key, partition=partition, headers=headers, timestamp=time_of_record
                )


def consumed(bootstrap: str) -> Copy:
    """Return the records that `hmb consume --json` prints, in the order of each partition."""
    command = [COMMAND, "consume", *TOPICS, "-e", "-o", "start", "--json", "-b", bootstrap]
    command += ["-X", "isolation.level=read_committed"]
    found: Copy = {(topic, partition): [] for topic in TOPICS for partition in range(PARTITIONS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            record = json.loads(line)
            found[record["topic"], record["partition"]].append(record)
    assert process.returncode == 0
    return found


def without_offset(record: Record) -> Record:
    return {name: value for name, value in record.items() if name != "offset"}


def compare(original: Copy, copy: Copy, *, transactional: bool) -> int:
    """Compare a copy with the original. Return the number of records that the copy contains more than once."""
    repeats = 0
    for partition, records in original.items():
        expected = [without_offset(record) for record in records]
        found = [without_offset(record) for record in copy[partition]]
        if found == expected:
            if not transactional:
                assert [it["offset"] for it in copy[partition]] == [it["offset"] for it in records], partition
            continue
        counts = Counter(json.dumps(record) for record in found)
        counts.subtract(Counter(json.dumps(record) for record in expected))
        lost = [record for record, count in counts.items() if count < 0]
        assert not lost, f"{partition}: {len(lost)} records are lost, the first: {lost[0]}"
        repeats += sum(counts.values())
        distinct = list(dict.fromkeys(json.dumps(record) for record in found))
        assert distinct == [json.dumps(record) for record in expected], f"{partition}: the order differs"
    return repeats


def next_records(peer: peers.Peer, copy: Copy) -> Iterator[tuple[tuple[str, int], Record]]:
    """Yield, for each partition, the record at which the group continues."""
    with hmb.Admin(peer.bootstrap) as admin:
        committed = admin.list_group_offsets(GROUP)
    for partition, records in copy.items():
        offset = committed[hmb.TopicPartition(*partition)].offset
        yield partition, without_offset(next(record for record in records if record["offset"] >= offset))


def commit_in_the_middle(peer: peers.Peer, chance: random.Random) -> None:
    """Let the group continue at a random record of each partition."""
    partitions = [hmb.TopicPartition(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
    with hmb.Admin(peer.bootstrap) as admin:
        ends = admin.list_offsets(dict.fromkeys(partitions, "latest"))
        offsets = {it: chance.randrange(end.offset) for it, end in ends.items() if not isinstance(end, hmb.KafkaError)}
        assert all(error is None for error in admin.alter_group_offsets(GROUP, offsets).values())


def run(brokers: list[peers.Peer], kills: int, records: int, *, transactional: bool, chance: random.Random) -> int:
    """Kill brokers and mirrors `kills` times. Return the number of repeated records.

    Raises AssertionError if a copy is incomplete or out of order, or if the group continues at a wrong record.
    """
    with ExitStack() as stack:
        for broker in brokers:
            stack.enter_context(broker)
        first = brokers[0]
        with hmb.Admin(first.bootstrap) as admin:
            topics = [hmb.NewTopic(topic, PARTITIONS, configs=NO_RETENTION) for topic in TOPICS]
            for made in admin.create_topics(topics).values():
                assert not isinstance(made, hmb.KafkaError), made
        mirrors = [
            MirrorProcess(source, target, stack, transactional=transactional)
            for source, target in pairwise(brokers)
        ]
        for mirror in mirrors:
            mirror.start()
            stack.callback(mirror.kill)
        portion = records // kills
        for number in range(kills):
            produce(first.bootstrap, number * portion, portion)
            time.sleep(chance.uniform(0, 0.7))
            victim = chance.choice([*brokers, *mirrors])
            victim.kill()
            victim.start()
            print(f"kill {number + 1}: {victim.name}", flush=True)
        commit_in_the_middle(first, chance)
        for mirror in mirrors:
            mirror.finish()
        copies = [consumed(broker.bootstrap) for broker in brokers]
        assert sum(map(len, copies[0].values())) == portion * kills
        repeats = [compare(copies[0], copy, transactional=transactional) for copy in copies[1:]]
        assert not transactional or sum(repeats) == 0
        continued = [dict(next_records(broker, copy)) for broker, copy in zip(brokers, copies, strict=True)]
        assert all(each == continued[0] for each in continued)
        print(f"{kills} kills, {portion * kills} records: all copies are equal, {sum(repeats)} records repeated")
    return sum(repeats)


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill brokers and mirrors, and compare the copies.")
    parser.add_argument("--kills", "--runs", type=int, default=20)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=None, help="the seed of the random numbers")
    parser.add_argument("--transactions", action="store_true")
    chosen = parser.parse_args()
    brokers = [peers.Hmb(), peers.Kafka43(), peers.Hmb()]
    chance = random.Random(chosen.seed)
    run(brokers, chosen.kills, chosen.records, transactional=chosen.transactions, chance=chance)
    return 0


if __name__ == "__main__":
    sys.exit(main())
