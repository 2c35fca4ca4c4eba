"""Many groups at once: how soon heartbeats are answered, how long a rebalance takes, what an idle broker costs.

    hmb bench groups                                # 200 groups, 1,000 members, 2,000 partitions
    hmb bench groups --members 500 --repeat 1

Every member is a connection of its own that joins, syncs, beats each `--interval` seconds, and joins anew when it is
told that its group rebalances.  The members are coroutines of one process; a latency is from before the write to after
the read, so this process' own scheduling is in it.  Two groups have more members: 50 each, and one of them gets one
more, which is the rebalance that is timed: until all 51 have their assignment.  CPU is the broker's own, of one core.
HMB and Kafka 4.3.0 take turns, each with an empty directory.  Goals: p99 of heartbeats < 100 ms, rebalance < 5 s, idle
< 5 %.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TypeVar

from hmb.client import Connection
from hmb.protocol.connection import ClientConnection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.schema import Request, Response

from .. import peers
from ..peers.targets import kinds_here
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, by_parameters, median, spread, text
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run

VERSIONS = {JoinGroupRequest: 5, SyncGroupRequest: 3, HeartbeatRequest: 3}
SESSION_MS = 45_000
BIG_GROUP = 50
SHARES = {"p50": 0.5, "p99": 0.99}
COLUMNS = {  # of the table: what stands above a figure
    "join_seconds": "s until all joined",
    "rebalance_seconds": "s of the rebalance",
    "quiet_p50_ms": "heartbeat, p50 ms",
    "quiet_p99_ms": "p99 ms",
    "rebalancing_p99_ms": "p99 ms while rebalancing",
    "idle_cpu_percent": "CPU while quiet, %",
}
Answer = TypeVar("Answer", bound=Response)


class Member:
    """One connection's member of a group."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.synced_at = 0.0
        self._connection = ClientConnection("bench")

    async def connect(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection(peers.HOST, port)

    async def ask(self, request: Request, expected: type[Answer]) -> Answer:
        parts = self._connection.request(request, VERSIONS[type(request)])
        self._writer.write(b"".join(parts))  # type: ignore[arg-type]
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        _, response = self._connection.receive(memoryview(await self._reader.readexactly(size)))
        assert isinstance(response, expected)
        return response

    async def join(self) -> None:
        """Until it has an assignment."""
        while True:
            joined = await self._join_group()
            members = [each.member_id for each in joined.members]
            sync = SyncGroupRequest(group_id=self.group, generation_id=joined.generation_id, member_id=self.member_id)
            sync.assignments = [
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=b"\0" * 100) for each in members
            ]
            synced = await self.ask(sync, SyncGroupResponse)
            if synced.error_code == 0:
                self.generation, self.synced_at = joined.generation_id, time.perf_counter()
                return

    async def _join_group(self) -> JoinGroupResponse:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0" * 50)
        while True:
            request = JoinGroupRequest(group_id=self.group, member_id=self.member_id, protocol_type="consumer")
            request.session_timeout_ms = request.rebalance_timeout_ms = SESSION_MS
            request.protocols = [protocol]
            joined = await self.ask(request, JoinGroupResponse)
            self.member_id = joined.member_id
            if joined.error_code == 0:
                return joined
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                await asyncio.sleep(0.1)  # the coordinator loads, or makes its topic

    async def beat(self, interval: float, latencies: list[float]) -> None:
        """For ever; `latencies` gets the seconds of each heartbeat."""
        while True:
            await asyncio.sleep(interval)
            request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
            started = time.perf_counter()
            response = await self.ask(request, HeartbeatResponse)
            latencies.append(time.perf_counter() - started)
            if response.error_code:
                await self.join()


def prepare(port: int, partitions: int) -> None:
    topics = [
        CreateTopicsRequest.CreatableTopic(name=f"topic-{number}", num_partitions=100, replication_factor=1)
        for number in range(partitions // 100)
    ]
    with Connection(peers.HOST, port, timeout=120) as connection:
        response = connection.send(CreateTopicsRequest(topics=topics, timeout_ms=120_000))
        assert all(each.error_code == 0 for each in response.topics), response
        for _ in range(100):  # the first one who asks for a coordinator makes its topic
            if connection.send(FindCoordinatorRequest(key="big-0"), version=2).error_code == 0:
                return
            time.sleep(0.1)


def groups_of(members: int, groups: int) -> list[str]:
    """The group of each member: two of BIG_GROUP, the rest evenly."""
    names = ["big-0"] * BIG_GROUP + ["big-1"] * BIG_GROUP
    return names + [f"group-{number % (groups - 2)}" for number in range(members - len(names))]


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def percentiles(what: str, latencies: Sequence[float]) -> dict[str, float]:
    """Of heartbeats."""
    return {f"{what}_{name}_ms": percentile(latencies, share) * 1000 for name, share in SHARES.items()}


async def measure(broker: peers.Peer, options: argparse.Namespace) -> dict[str, float]:
    prepare(broker.port, options.partitions)
    members = [Member(group) for group in groups_of(options.members, options.groups)]
    started = time.perf_counter()
    await asyncio.gather(*(member.connect(broker.port) for member in members))
    latencies: list[float] = []
    tasks: list[asyncio.Task[None]] = []

    async def join_and_beat(member: Member) -> None:
        await member.join()
        await member.beat(options.interval, latencies)

    tasks += [asyncio.create_task(join_and_beat(member)) for member in members]
    while len(stable := [member for member in members if member.generation > 0]) < len(members):
        await asyncio.sleep(0.1)
        assert time.perf_counter() - started < 300, f"only {len(stable)} of {len(members)} members have joined"
    figures = {"join_seconds": time.perf_counter() - started}
    await asyncio.sleep(2 * options.interval)  # the groups settle
    latencies.clear()
    cpu, begun = peers.cpu_seconds(broker.pid), time.perf_counter()
    await asyncio.sleep(options.seconds)
    share = (peers.cpu_seconds(broker.pid) - cpu) / (time.perf_counter() - begun)
    figures |= {"idle_cpu_percent": share * 100, "broker_resident_bytes": float(peers.resident_bytes(broker.pid))}
    figures |= percentiles("quiet", latencies)
    latencies.clear()
    newcomer = Member("big-0")
    await newcomer.connect(broker.port)
    started = time.perf_counter()
    tasks.append(asyncio.create_task(join_and_beat(newcomer)))
    of_group = [newcomer, *(member for member in members if member.group == "big-0")]
    while min(member.synced_at for member in of_group) < started:
        await asyncio.sleep(0.01)
    figures["rebalance_seconds"] = max(member.synced_at for member in of_group) - started
    await asyncio.sleep(options.interval)
    figures |= percentiles("rebalancing", latencies)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return figures


def table(options: argparse.Namespace, _: ExitStack, samples: Samples) -> Iterator[str]:
    kinds = kinds_here()
    progress = Progress(len(kinds) * options.repeat)
    sizes = {"groups": options.groups, "members": options.members, "partitions": options.partitions}
    for turn, kind in in_turns(kinds, options.repeat):
        progress.step(f"turn {turn + 1}, {kind.name}")
        with kind() as broker:
            figures = asyncio.run(measure(broker, options))
        samples.add(Sample("groups", kind.name, "members", turn, sizes, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    found = []
    for (groups, members, partitions), of_sizes in by_parameters(samples, "groups", "members", "partitions").items():
        rows = [["broker", *COLUMNS.values(), "resident MB"]]
        for name, runs in by(of_sizes, lambda run: run.broker).items():
            figures = [str(spread(runs, figure)) for figure in COLUMNS]
            rows.append([name, *figures, median(runs, "broker_resident_bytes", 1e6, ",.0f")])
        found.append(Table(f"{groups:,} groups, {members:,} members, {partitions:,} partitions", rows))
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hmb bench groups", description="Many groups, members and connections.")
    parser.add_argument("--groups", type=at_least_one, default=200)
    parser.add_argument("--members", type=at_least_one, default=1000)
    parser.add_argument("--partitions", type=at_least_one, default=2000, help="in topics of 100")
    parser.add_argument("--interval", type=float, default=3.0, help="seconds from heartbeat to heartbeat")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the quiet groups are watched")
    add_suite_options(parser)
    options = parser.parse_args()
    if options.groups < 3:
        parser.error("two groups are the large ones: at least 3")
    if options.members < 2 * BIG_GROUP + options.groups - 2:
        parser.error(f"{options.groups} groups need at least {2 * BIG_GROUP + options.groups - 2} members")
    return options


def main() -> int:
    return run("groups", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
