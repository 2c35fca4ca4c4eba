"""How many offsets a broker commits: raw connections that commit one partition a request, several requests ahead.

    hmb bench commits                              # HMB, synced to disk and not, and Kafka 4.3.0, in turns
    hmb bench commits --connections 50 --ahead 1   # each waits for its answer before it commits again

What a commit promises differs.  HMB answers when the record is on disk (`log.flush.acks.all`, as for acks=all); that is
the first line.  Kafka answers when it is in the page cache, and leaves the disk to replicas on other machines; the
line of HMB to be compared with that is the second, where the setting is false.

Each connection has a group and a partition of its own and commits growing offsets.  The client is one process with one
thread, the same for all, that only copies bytes; it takes its share of the machine.  A run counts only if every answer
is without error and each group's committed offset is then the last that was acked.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from hmb.client import Connection
from hmb.protocol.connection import ClientConnection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest

from .. import peers
from ..peers.targets import kinds_here
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, by_parameters, median, over_others, spread, text
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run

TOPIC = "commits"
VERSION = 9  # the newest that names topics
OFFSET = struct.Struct(">q")
MARK = OFFSET.pack(0x5A5A5A5A5A5A5A5A)  # stands in the template where the offset goes
READ = 1 << 16
PATIENCE = 30.0  # seconds
RATE = "commits_per_second"


class Committer:
    """One connection: a group that commits one partition, `ahead` requests at a time, from the offset `after` on."""

    def __init__(self, port: int, number: int, ahead: int, after: int = 0) -> None:
        self.group = f"commits-{number}"
        self.number = number
        self.socket = socket.create_connection((peers.HOST, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.acked = self.sent = after
        self._ahead = ahead
        self._times: deque[float] = deque()
        self._received = b""
        template = _request(self.group, number)
        self._start, self._end = template.split(MARK)

    def send(self, count: int, now: float) -> None:
        """The next commits, in one write."""
        first = self.sent + 1
        self.sent += count
        requests = [self._start + OFFSET.pack(offset) + self._end for offset in range(first, self.sent + 1)]
        self._times.extend([now] * count)
        self.socket.sendall(b"".join(requests))

    def begin(self) -> None:
        self.send(self._ahead, time.perf_counter())

    def receive(self, latencies: list[float]) -> int:
        """How many answers came."""
        received = self.socket.recv(READ)
        if not received:
            raise peers.PeerFailed("the broker has closed a connection")
        data = self._received + received
        now, position, count = time.perf_counter(), 0, 0
        while position + 4 <= len(data) and (
            end := position + 4 + int.from_bytes(data[position : position + 4])
        ) <= len(data):
            error_code = int.from_bytes(data[end - 5 : end - 3], signed=True)  # before the tags of three structs
            if error_code:
                raise peers.PeerFailed(f"a commit was answered with {ErrorCode(error_code).name}")
            latencies.append(now - self._times.popleft())
            position, count = end, count + 1
        self._received = data[position:]
        self.acked += count
        return count


def _request(group: str, number: int) -> bytes:
    """A commit's frame with MARK for its offset; the correlation id is the same in all."""
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    (offset,) = OFFSET.unpack(MARK)
    partition = topic.OffsetCommitRequestPartition(
        partition_index=number, committed_offset=offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, topics=[topic(name=TOPIC, partitions=[partition])]
    )
    return b"".join(bytes(part) for part in ClientConnection("commits").request(request, VERSION))  # type: ignore[arg-type]


def prepare(broker: peers.Peer, connections: int) -> None:
    """The topic, and a coordinator that is ready."""
    wanted = CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=connections, replication_factor=1)
    groups = [f"commits-{number}" for number in range(connections)]
    with Connection(peers.HOST, broker.port) as connection:
        connection.send(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
        deadline = time.monotonic() + PATIENCE
        while any(
            each.error_code for each in connection.send(FindCoordinatorRequest(coordinator_keys=groups), 4).coordinators
        ) or None in committed(connection, groups):
            if time.monotonic() > deadline:
                raise peers.PeerFailed(f"{broker.name} does not coordinate groups")
            time.sleep(0.05)


def committed(connection: Connection, groups: Sequence[str]) -> list[int | None]:
    """The offset that each group has committed in its partition; None where the broker cannot say yet."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    wanted = [
        group(group_id=name, topics=[group.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[number])])
        for number, name in enumerate(groups)
    ]
    answers = connection.send(OffsetFetchRequest(groups=wanted), VERSION).groups
    return [None if each.error_code else each.topics[0].partitions[0].committed_offset for each in answers]


class Run(NamedTuple):
    """Commits/s; the median and the 99th percentile of their latency in ms; CPU time of the broker for each in us."""

    rate: float
    p50: float
    p99: float
    cpu: float


def commit(broker: peers.Peer, connections: int, ahead: int, seconds: float) -> Run:
    """One run."""
    latencies: list[float] = []
    cpu = peers.cpu_seconds(broker.pid)
    committers = [Committer(broker.port, number, ahead) for number in range(connections)]
    with selectors.DefaultSelector() as selector:
        for each in committers:
            selector.register(each.socket, selectors.EVENT_READ, each)
            each.begin()
        begun = time.perf_counter()
        until = begun + seconds
        waiting = connections * ahead
        while waiting:
            ready = selector.select(PATIENCE)
            if not ready:
                raise peers.PeerFailed(f"{broker.name} answers no more")
            for key, _ in ready:
                count = key.data.receive(latencies)
                now = time.perf_counter()
                if count and now < until:
                    key.data.send(count, now)
                else:
                    waiting -= count
        elapsed, cpu = time.perf_counter() - begun, peers.cpu_seconds(broker.pid) - cpu
    for each in committers:
        each.socket.close()
    with Connection(peers.HOST, broker.port) as connection:
        if committed(connection, [each.group for each in committers]) != [each.acked for each in committers]:
            raise peers.PeerFailed(f"{broker.name} has not committed what it said it had")
    latencies.sort()
    count = len(latencies)
    return Run(count / elapsed, latencies[count // 2] * 1e3, latencies[count * 99 // 100] * 1e3, cpu / count * 1e6)


def contestants(stack: ExitStack) -> dict[str, peers.Peer]:
    """The brokers, running, by what they promise."""
    found = {"HMB, on disk": peers.Hmb(), "HMB, in page cache": peers.Hmb(config={"log.flush.acks.all": "false"})}
    brokers: dict[str, peers.Peer] = {**found}
    if peers.Kafka43 in kinds_here():
        brokers["Kafka 4.3.0, in page cache"] = peers.Kafka43()
    return {name: stack.enter_context(broker) for name, broker in brokers.items()}


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    brokers = contestants(stack)
    progress = Progress(len(brokers) * (1 + options.repeat))
    for name, broker in brokers.items():
        progress.step(f"warm-up of {name}")
        prepare(broker, options.connections)
        commit(broker, options.connections, options.ahead, min(2.0, options.seconds))
    sizes = {"connections": options.connections, "ahead": options.ahead}
    for turn, name in in_turns(list(brokers), options.repeat):
        progress.step(f"turn {turn + 1}, {name}")
        done = commit(brokers[name], options.connections, options.ahead, options.seconds)
        figures = {RATE: done.rate, "p50_ms": done.p50, "p99_ms": done.p99, "broker_cpu_us_per_commit": done.cpu}
        samples.add(Sample("commits", name, "committers", turn, sizes, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    found = []
    for (connections, ahead), runs in by_parameters(samples, "connections", "ahead").items():
        brokers = by(runs, lambda run: run.broker)
        others = {name: each for name, each in brokers.items() if name != "HMB, on disk"}  # which promise the same
        first = next(iter(others), "")
        rows = [["", "commits/s", f"{first} over it", "p50 ms", "p99 ms", "broker us/commit"]]
        for name, each in brokers.items():
            ratio = over_others(each, others, RATE) if name in others else ""
            figures = [median(each, figure, form=",.2f") for figure in ("p50_ms", "p99_ms", "broker_cpu_us_per_commit")]
            rows.append([name, str(spread(each, RATE)), ratio, *figures])
        found.append(Table(f"{connections} connections, {ahead} commits of each under way", rows))
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hmb bench commits", description="Offset commits/s, HMB's beside Kafka's.")
    parser.add_argument("--connections", type=at_least_one, default=16, help="each with a group and a partition")
    parser.add_argument("--ahead", type=at_least_one, default=4, help="requests that a connection has under way")
    parser.add_argument("--seconds", type=float, default=5.0, help="a run takes")
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("commits", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
