"""Kills a broker with SIGKILL many times while groups commit. Checks that committed offsets never decrease.

    python -m tests.conformance.kills.commits --kills 20
    python -m tests.conformance.kills.commits --kills 20 --against kafka43

Each group has one connection and commits 1, 2, 3, ... for one partition, with several requests in flight. The kill
happens at a random time.

After the restart, the committed offset of a group must be at least the last offset that the broker has acknowledged,
and at most the last offset that the group has sent. For example, the group has sent the offsets 1 to 9, and the broker
has acknowledged 1 to 5. Then the committed offset must be at least 5 and at most 9.

A thread fetches the committed offsets repeatedly. They must never decrease, not even after a kill.
"""

from __future__ import annotations

import random
import sys
import threading
import time

from hmb.bench import peers
from hmb.bench.load.committers import Committer, await_coordinator, committed, prepare
from hmb.client import Connection, ConnectionFailed
from tests.conformance.kills.records import options
from tests.conformance.matrix import BROKERS

GROUPS = 8
AHEAD = 4
SECONDS = 60.0


class Group(threading.Thread):
    """A thread that commits increasing offsets for one group until the broker is killed."""

    def __init__(self, port: int, number: int, after: int) -> None:
        super().__init__(daemon=True)
        self.committer = Committer(port, number, AHEAD, after)

    def run(self) -> None:
        latencies: list[float] = []
        try:
            self.committer.begin()
            while True:
                self.committer.send(self.committer.receive(latencies), time.perf_counter())
        except (OSError, peers.PeerFailed):
            self.committer.socket.close()


class Watcher(threading.Thread):
    """A thread that fetches the committed offsets of all groups repeatedly."""

    def __init__(self, port: int, names: list[str]) -> None:
        super().__init__(daemon=True)
        self.port, self.names = port, names
        self.seen = [-1] * len(names)
        self.went_back: list[tuple[str, int, int]] = []

    def run(self) -> None:
        try:
            with Connection(peers.HOST, self.port) as connection:
                while True:
                    self.look(connection)
        except (ConnectionFailed, OSError):
            return

    def look(self, connection: Connection) -> None:
        for number, offset in enumerate(committed(connection, self.names)):
            if offset is not None:
                if offset < self.seen[number]:
                    self.went_back.append((self.names[number], self.seen[number], offset))
                self.seen[number] = offset

    def check(self, port: int, acked: list[int], sent: list[int]) -> None:
        """Check the committed offsets after a restart."""
        with Connection(peers.HOST, port) as connection:
            self.look(connection)
        assert not self.went_back, f"{len(self.went_back)} offsets went back, the first: {self.went_back[0]}"
        for name, low, now, high in zip(self.names, acked, self.seen, sent, strict=True):
            assert low <= now <= high, f"{name}: {low} was acked, {high} sent, and {now} is committed"


def run(broker: peers.Peer, kills: int, chance: random.Random) -> int:
    """Kill the broker `kills` times. Return the number of acknowledged commits.

    Raises AssertionError if a committed offset is wrong, or if the commits take too long.
    """
    sent, acked = [0] * GROUPS, [0] * GROUPS
    with broker:
        prepare(broker, GROUPS)
        for kill in range(kills):
            groups = [Group(broker.port, number, sent[number]) for number in range(GROUPS)]
            watcher = Watcher(broker.port, [group.committer.group for group in groups])
            goal = sum(acked) + chance.randint(200, 2_000)
            for thread in (*groups, watcher):
                thread.start()
            deadline = time.monotonic() + SECONDS
            while sum(group.committer.acked for group in groups) < goal:
                assert time.monotonic() < deadline, f"no {goal} commits within {SECONDS} s"
                time.sleep(0.001)
            broker.kill()
            for thread in (*groups, watcher):
                thread.join(SECONDS)
            acked = [group.committer.acked for group in groups]
            sent = [group.committer.sent for group in groups]
            broker.start()
            await_coordinator(broker, GROUPS)
            watcher.check(broker.port, acked, sent)
            print(f"kill {kill + 1}: {acked} acked, {watcher.seen} committed")
    return sum(acked)


def main() -> int:
    chosen = options("kill -9 a broker while groups commit, and look for their offsets.")
    run(BROKERS[chosen.against](), chosen.kills, random.Random(chosen.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
