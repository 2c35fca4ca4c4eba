"""Measures the work of a broker with many consumer groups: heartbeats, a rebalance, and idle groups.

These commands are examples:
    hmb bench groups                                # 200 groups, 1,000 members, 2,000 partitions
    hmb bench groups --members 500 --repeat 1

Each member has its own connection (`load/group_members.py`). A member joins its group and sends a heartbeat every
`--interval` seconds. When a response reports a rebalance, the member joins again. Two groups are large, with 50 members
each. The benchmark measures three things:
- the latency of heartbeats. The goal is a 99th percentile below 100 ms.
- the CPU time of the broker while all groups are quiet: members send heartbeats, but no group has a rebalance. The goal
  is less than 5 % of one core.
- the time of a rebalance. One more member joins a large group. The rebalance ends when all 51 members have a new
  assignment. The goal is less than 5 s.

Each run begins with an empty data directory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import click

from hmb.client import Connection
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest

from .. import peers
from ..load.group_members import LoadMember
from ..measurement import POSITIVE, Measurement, scenario, versus_option
from ..peers import topics
from ..peers.chosen import broker_kinds
from ..report.distribution import percentile
from ..report.samples import Sample
from ..report.view import Column, SampleView

LARGE_GROUP = 50
TOPIC_PARTITIONS = 100
JOIN_TIMEOUT = 300.0  # the longest time until all members have joined (seconds)


def title(sample: Sample) -> str:
    groups, members, partitions = (sample.parameters[name] for name in ("groups", "members", "partitions"))
    return f"{groups:,} groups, {members:,} members, {partitions:,} partitions"


VIEW = SampleView(
    columns=(
        Column("join_seconds", "until all joined, s"),
        Column("rebalance_seconds", "rebalance, s", compare=True),
        Column("quiet_p50_ms", "heartbeat p50, ms"),
        Column("quiet_p99_ms", "heartbeat p99, ms", compare=True),
        Column("rebalancing_p99_ms", "p99 while rebalancing, ms"),
        Column("idle_cpu_percent", "CPU of quiet groups, %", compare=True),
        Column("broker_resident_bytes", "resident memory, MB", 1e-6, spread=False, digits=0),
    ),
    title=title,
)


@dataclass(frozen=True)
class GroupLoad:
    """The load of a benchmark run: the number of groups, members and partitions, and two periods in seconds."""

    groups: int
    members: int
    partitions: int
    interval: float  # the time between two heartbeats of a member (seconds)
    seconds: float  # how long the benchmark measures the quiet groups (seconds)

    def group_names(self) -> list[str]:
        """Return the group of each member, as a list of names. A group with 50 members is in the list 50 times.

        Two large groups have LARGE_GROUP members each. The remaining members are divided about equally among all
        other groups.
        """
        names = ["large-0"] * LARGE_GROUP + ["large-1"] * LARGE_GROUP
        return names + [f"group-{number % (self.groups - 2)}" for number in range(self.members - len(names))]


def prepare(broker: peers.Peer, partitions: int) -> None:
    """Create `partitions` partitions, 100 in each topic, and wait until the group coordinator is ready.

    Raises KafkaError. Raises PeerFailed if the coordinator does not become ready.
    """
    for number in range(partitions // TOPIC_PARTITIONS):
        topics.create(broker.bootstrap, f"topic-{number}", partitions=TOPIC_PARTITIONS)
    with Connection(peers.HOST, broker.port, timeout=120) as connection:
        for _ in range(100):  # Try again, because the coordinator first creates its internal topic.
            if connection.send(FindCoordinatorRequest(key="large-0"), version=2).error_code == 0:
                return
            time.sleep(0.1)
    raise peers.PeerFailed(f"{broker.name} did not become the coordinator of the groups")


def heartbeat_figures(name: str, latencies: Sequence[float]) -> dict[str, float]:
    """Return the 50th and the 99th percentile of the latencies of heartbeats, in ms. `latencies` are in seconds."""
    ordered = sorted(latencies)
    return {f"{name}_p{percent}_ms": percentile(ordered, percent / 100) * 1000 for percent in (50, 99)}


async def measure(broker: peers.Peer, load: GroupLoad) -> dict[str, float]:
    """Measure one run, and return its figures. Raises PeerFailed if a member cannot join its group."""
    prepare(broker, load.partitions)
    members = [LoadMember(group) for group in load.group_names()]
    latencies: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        started = time.perf_counter()
        await asyncio.gather(*(member.connect(broker.port) for member in members))
        running = [tasks.create_task(member.run(load.interval, latencies)) for member in members]
        await _await_all(members, started)
        figures = {"join_seconds": time.perf_counter() - started}
        await asyncio.sleep(2 * load.interval)  # During this pause, the groups become quiet.
        latencies.clear()
        cpu, started = peers.cpu_seconds(broker.pid), time.perf_counter()
        await asyncio.sleep(load.seconds)
        share = (peers.cpu_seconds(broker.pid) - cpu) / (time.perf_counter() - started)
        memory = float(peers.resident_bytes(broker.pid))
        figures |= {"idle_cpu_percent": share * 100, "broker_resident_bytes": memory}
        figures |= heartbeat_figures("quiet", latencies)
        latencies.clear()
        added = LoadMember("large-0")
        await added.connect(broker.port)
        started = time.perf_counter()
        running.append(tasks.create_task(added.run(load.interval, latencies)))
        rebalanced = [added, *(member for member in members if member.group == added.group)]
        await _await_all(rebalanced, started)
        figures["rebalance_seconds"] = max(member.synced_at for member in rebalanced) - started
        await asyncio.sleep(load.interval)
        figures |= heartbeat_figures("rebalancing", latencies)
        for task in running:
            task.cancel()
    return figures


async def _await_all(members: Sequence[LoadMember], since: float) -> None:
    """Wait until each member has received an assignment after the time `since`. Raises PeerFailed if one is missing."""
    while missing := sum(member.synced_at < since for member in members):
        if time.perf_counter() - since > JOIN_TIMEOUT:
            raise peers.PeerFailed(f"{missing} of {len(members)} members have no assignment after {JOIN_TIMEOUT:g} s")
        await asyncio.sleep(0.01)


@scenario("groups", VIEW)
@versus_option
@click.option(
    "--groups", type=click.IntRange(min=3), default=200, show_default=True,
    help="Number of groups. Two of them are large.",
)
@click.option("--members", type=POSITIVE, default=1_000, show_default=True)
@click.option(
    "--partitions", type=POSITIVE, default=2_000, show_default=True,
    help="Number of partitions of all topics together. Each topic has 100 partitions.",
)
@click.option("--interval", type=float, default=3.0, show_default=True, help="Seconds between two heartbeats.")
@click.option(
    "--seconds", type=float, default=20.0, show_default=True,
    help="Duration of the measurement without a rebalance, in seconds.",
)
def command(
    measurement: Measurement,
    versus: peers.Installation | None,
    groups: int,
    members: int,
    partitions: int,
    interval: float,
    seconds: float,
) -> None:
    """Measure a broker with many consumer groups: heartbeats, a rebalance, and the CPU time of quiet groups.

    HMB and Kafka 4.3.0 run alternately, each with an empty data directory.
    """
    least = 2 * LARGE_GROUP + groups - 2
    if members < least:
        raise click.UsageError(f"{groups} groups need at least {least} members")
    load = GroupLoad(groups, members, partitions, interval, seconds)
    kinds = broker_kinds(versus)
    progress = measurement.progress(len(kinds) * measurement.round_count)
    parameters = {"groups": groups, "members": members, "partitions": partitions}
    for number, kind in measurement.rounds(kinds):
        progress.step(f"round {number + 1}, {kind.name}")
        with kind.make() as broker:
            try:
                figures = asyncio.run(measure(broker, load))
            except ExceptionGroup as failures:  # A TaskGroup wraps the errors of its tasks.
                raise failures.exceptions[0] from failures
        measurement.add(number, kind.name, "members", parameters, figures)
