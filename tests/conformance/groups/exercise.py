"""Tests a group of real clients while members join and die, and while the broker restarts.

    python -m tests.conformance.groups.exercise                       # every client, one after the other
    python -m tests.conformance.groups.exercise --kinds aiokafka franz-go --against kafka43
    python -m tests.conformance.groups.exercise --kinds hmb+confluent+java-4.3.0       # three kinds in one group

During the whole test, records are written to a topic with six partitions. Three members start, and one of them is
killed. A new member joins. Then the broker is killed and started again.

After each step, each partition must be owned by exactly one living member. A thread reads the committed offsets all the
time, and no offset may decrease. At the end, every record must have been delivered to a member, and all offsets must be
committed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import confluent_kafka

from hmb.bench import peers
from hmb.client import Connection, ConnectionFailed
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.conformance.groups.kinds import KINDS
from tests.conformance.matrix import BROKERS

PARTITIONS = 6
STEP_SECONDS = 60.0
LOOK_SECONDS = 0.1
RATE = 200  # records each second
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}
Place = tuple[str, int]


class Member:
    """A process that runs one group member, and reports the member's partitions and the offsets of received records."""

    def __init__(self, command: list[str], stack: ExitStack, errors: Path) -> None:
        self.owned: set[int] = set()
        self.consumed: list[tuple[int, int, int]] = []  # (partition, first offset, last offset)
        self.errors = errors
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors.open("wb"), text=True
        )
        stack.callback(self.kill)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        partitions = event.get("partitions") or []
        match event["name"]:
            case "partitions_assigned":
                self.owned = self.owned | {each["partition"] for each in partitions}
            case "partitions_revoked":
                self.owned = self.owned - {each["partition"] for each in partitions}
            case "records_consumed":
                self.consumed += [(each["partition"], each["minOffset"], each["maxOffset"]) for each in partitions]


class Feeder:
    """An idempotent producer.

    It writes consecutive numbers to all partitions, RATE numbers each second, until it is stopped.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0}
        self._producer = confluent_kafka.Producer({**settings, "reconnect.backoff.max.ms": 300})
        self._topic = topic
        self._finish = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.sent = [0] * PARTITIONS

    def _run(self) -> None:
        number = 0
        while not self._finish.wait(PARTITIONS / RATE):
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, b"%d" % number, partition=partition)
                self.sent[partition] += 1
                number += 1
            self._producer.poll(0)

    def finish(self) -> None:
        self._finish.set()
        self._thread.join()
        assert self._producer.flush(STEP_SECONDS) == 0, "records without an ack"


class CommitWatch:
    """A thread that reads the committed offsets of the group again and again. It fails if an offset decreases."""

    def __init__(self, port: int, topic: str, group: str) -> None:
        self.committed: dict[int, int] = {}
        self.problems: list[str] = []
        self._port, self._group = port, group
        self._request = OffsetFetchRequest(
            group_id=group,
            topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(PARTITIONS)))],
        )
        self._finish = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._finish.wait(LOOK_SECONDS):
            with suppress(ConnectionFailed):  # The broker is restarting.
                self.look()

    def look(self) -> None:
        with Connection(peers.HOST, self._port, timeout=5) as connection:
            response = connection.send(self._request, version=5)
        if response.error_code:
            return  # The broker has not loaded the group yet.
        for each in response.topics[0].partitions if response.topics else []:
            before = self.committed.get(each.partition_index, -1)
            if not each.error_code and each.committed_offset < before:
                self.problems.append(f"partition {each.partition_index}: {each.committed_offset} after {before}")
            self.committed[each.partition_index] = max(before, each.committed_offset)

    def finish(self) -> None:
        self._finish.set()
        self._thread.join()


def until(condition: Callable[[], bool], what: str, members: list[Member]) -> None:
    """Wait until `condition` is true. If it stays false, the failure message shows the partitions of each member."""
    deadline = time.monotonic() + STEP_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            owned = [sorted(member.owned) if member.is_alive else "dead" for member in members]
            messages = [member.errors.read_text(errors="replace")[-500:] for member in members]
            raise AssertionError(f"{what}: not within {STEP_SECONDS} s; the members own {owned}; errors: {messages}")
        time.sleep(LOOK_SECONDS)


def is_shared_out(members: list[Member], count: int) -> bool:
    """Return whether `count` members are alive and each partition is owned by exactly one of them."""
    alive = [sorted(member.owned) for member in members if member.is_alive]
    return len(alive) == count and all(alive) and sorted(chain(*alive)) == list(range(PARTITIONS))


def make_topic(port: int, topic: str) -> None:
    wanted = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1)
    with Connection(peers.HOST, port) as connection:
        made = connection.send(CreateTopicsRequest(topics=[wanted])).topics[0]
    assert made.error_code == 0, made


def missing(members: list[Member], sent: list[int]) -> dict[int, set[int]]:
    """Return, for each partition, the offsets that no member has received."""
    left = {partition: set(range(count)) for partition, count in enumerate(sent)}
    for partition, first, last in (each for member in members for each in list(member.consumed)):
        left[partition] -= set(range(first, last + 1))
    return {partition: offsets for partition, offsets in left.items() if offsets}


def run(broker: peers.Peer, kind: str, folder: Path) -> str:
    """Test a group of one kind of client, or of several kinds (`a+b`), and return a report.

    Raises AssertionError if a step takes too long, or if a committed offset decreases.
    """
    topic = group = f"group-{kind.replace('+', '-')}"
    commands = [KINDS[each] for each in kind.split("+")]
    folder.mkdir()
    members: list[Member] = []
    with ExitStack() as stack:

        def join() -> None:
            command = commands[len(members) % len(commands)](folder, broker.bootstrap, topic, group)
            members.append(Member(command, stack, folder / f"member-{len(members)}.log"))

        for command in commands:  # A missing client raises an error before any process starts.
            command(folder, broker.bootstrap, topic, group)
        make_topic(broker.port, topic)
        feeder = Feeder(broker.bootstrap, topic)
        watch = CommitWatch(broker.port, topic, group)
        for _ in range(3):
            join()
        until(lambda: is_shared_out(members, 3), "three members share the partitions", members)
        members[0].kill()
        until(lambda: is_shared_out(members, 2), "two members take over a third's", members)
        join()
        until(lambda: is_shared_out(members, 3), "a new member gets its share", members)
        broker.kill()
        sent = max(feeder.sent)
        broker.start()
        until(lambda: min(watch.committed.values()) > sent, "commits go on after the kill", members)
        feeder.finish()
        until(lambda: not missing(members, feeder.sent), "every record is delivered", members)
        ends = dict(enumerate(feeder.sent))
        until(lambda: watch.committed == ends, "everything is committed", members)
        until(lambda: is_shared_out(members, 3), "the partitions are shared out at the end", members)
        watch.finish()
    assert not watch.problems, f"committed offsets went back: {watch.problems}"
    delivered = sum(last - first + 1 for member in members for _, first, last in member.consumed)
    return f"{sum(feeder.sent)} records sent, all delivered ({delivered} deliveries) and committed"


def main() -> int:
    parser = argparse.ArgumentParser(description="Groups of real clients: members and the broker killed.")
    known = f"the kinds of clients: {', '.join(KINDS)}; a+b tests two kinds in one group"
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), metavar="KIND", help=known)
    parser.add_argument("--against", choices=BROKERS, default="hmb")
    options = parser.parse_args()
    if unknown := {each for kind in options.kinds for each in kind.split("+")} - KINDS.keys():
        parser.error(f"no kind {', '.join(sorted(unknown))}, only {', '.join(KINDS)}")
    failures = 0
    with tempfile.TemporaryDirectory(prefix="hmb-groups-") as folder, BROKERS[options.against](config=CONFIG) as broker:
        for kind in options.kinds:
            started = time.monotonic()
            try:
                seen = run(broker, kind, Path(folder) / kind)
            except (AssertionError, peers.PeerUnavailable) as problem:
                failures += isinstance(problem, AssertionError)
                seen = f"{type(problem).__name__}: {problem}"
            print(f"{kind:22} {time.monotonic() - started:5.1f} s  {seen}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
