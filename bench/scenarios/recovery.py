"""Measures how long a killed broker takes to check every batch, rebuild the indexes and start again.

These commands are examples:
    hmb bench recovery                                # 1 GB in batches of 1, 16 and 100 KB, HMB and Kafka 4.3.0
    hmb bench recovery --size 50000000 --batches 200  # 50 MB in batches of 200 bytes
    hmb bench recovery --versus ../before             # this HMB and the HMB of another checkout

First, a broker creates a topic, and the benchmark kills the broker. Next, the benchmark writes a segment
(`logs/unclean.py`), and copies it into the directory of the partition. The recovery point is the offset below which
all records are known to be on disk. It does not cover the copied segment, so the broker checks the whole segment at
its next start.

The benchmark then measures two starts of the broker. Each measurement lasts from the start of the process to
the broker's first response. The first start follows the kill and the copy, so it includes a recovery. Before
the second start, the benchmark stops the broker cleanly, so this start needs no recovery. The difference
between the two times is the time of the recovery.

A run counts only if the broker recovers the whole segment. To check this, the benchmark reads the end offset of the
log after the first start. This offset must be the same as the end offset of the copied segment.

The benchmark writes the segment shortly before the broker reads it. The segment is therefore still in the page cache,
and the broker does not read it from the disk. The benchmark thus measures the CPU's work, not the disk.

The goal is to recover 1 GB in at most 2 s. The published results of 2026-11-22 come from an older version of this
benchmark. It did not start a broker, and measured only how long the check of the log takes.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import click

from .. import peers
from ..logs import unclean
from ..logs.compactable import put
from ..measurement import POSITIVE, CommaList, Measurement, scenario, versus_option
from ..peers import topics
from ..peers.chosen import BrokerKind, broker_kinds
from ..report.samples import Sample
from ..report.view import Column, SampleView

TOPIC = "events"
CONFIG = {"log.segment.bytes": str(2**31 - 1)}


def title(sample: Sample) -> str:
    size = f"{float(sample.parameters['bytes']) / 1e9:g} GB"
    return f"{size} that a killed broker left" if "start_seconds" in sample.figures else f"{size}, the log alone"


VIEW = SampleView(
    columns=(
        Column("start_after_kill_seconds", "start after a kill, s", compare=True),
        Column("broker_cpu_seconds", "CPU time of this start, s", compare=True),
        Column("start_seconds", "start after a clean stop, s"),
        Column("seconds", "recovery, s"),
        Column("cpu_seconds", "CPU time, s"),
        Column("mb_per_second", "MB/s", spread=False, digits=0),
        Column("us_a_batch", "us a batch", spread=False),
    ),
    title=title,
    cell=lambda sample: f"batches of {sample.parameters['batch_bytes']:,} B",
)


def measure(kind: BrokerKind, segment: Path, end: int) -> dict[str, float]:
    """Measure how long a broker needs to start after a kill, and after a clean stop. Raises PeerFailed.

    After the kill, the benchmark copies the segment in the folder `segment` into a partition of the broker. `end`
    is the end offset that the partition must have after the recovery.
    """
    broker = kind.make(config=CONFIG)
    try:
        broker.start()
        topics.create(broker.bootstrap, TOPIC)
        directory = broker.data_dir / f"{TOPIC}-0"
        await_file(directory / "partition.metadata")
        broker.kill()
        put(segment, directory)
        os.sync()  # Otherwise the kernel would write the copied file to the disk during the measurement.
        after_kill, cpu = timed_start(broker)
        if (found := topics.end_offset(broker.bootstrap, TOPIC)) != end:
            raise peers.PeerFailed(f"{broker.name} recovered the log up to offset {found} of {end}")
        broker.stop()
        after_stop, _ = timed_start(broker)
        return {"start_after_kill_seconds": after_kill, "broker_cpu_seconds": cpu, "start_seconds": after_stop}
    finally:
        broker.stop()
        broker.remove()


def await_file(path: Path) -> None:
    """Wait until a file exists. Raises PeerFailed after 30 s.

    The benchmark waits for a file in the directory of a new topic. Kafka can respond to CreateTopics before it has
    created this directory.
    """
    deadline = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > deadline:
            raise peers.PeerFailed(f"the broker did not create {path}")
        time.sleep(0.02)


def timed_start(broker: peers.Peer) -> tuple[float, float]:
    """Start a broker. Return the time and the CPU time (seconds) from its start to its first response."""
    broker.prepare()
    started = time.perf_counter()
    broker.spawn()
    broker.await_ready()
    return time.perf_counter() - started, peers.cpu_seconds(broker.pid)


@scenario("recovery", VIEW)
@versus_option
@click.option("--size", type=POSITIVE, default=10**9, show_default=True, help="Size of the log in bytes.")
@click.option(
    "--batches", type=CommaList(POSITIVE), default=[1_000, 16_384, 100_000], metavar="N,N,...",
    help="Batch sizes in bytes.  [default: 1000,16384,100000]",
)  # fmt: skip
def command(measurement: Measurement, versus: peers.Installation | None, size: int, batches: list[int]) -> None:
    """Measure how long a broker needs to start after a kill, with 1 GB of records to check.

    HMB and Kafka 4.3.0 start alternately on copies of the same segment.
    """
    kinds = broker_kinds(versus)
    progress = measurement.progress(len(kinds) * len(batches) * measurement.round_count)
    for batch_bytes in batches:
        with tempfile.TemporaryDirectory(prefix="hmb-recovery-") as temporary:
            end = unclean.write(Path(temporary), size, batch_bytes)
            for number, kind in measurement.rounds(kinds):
                progress.step(f"batches of {batch_bytes:,} B, round {number + 1}, {kind.name}")
                parameters = {"bytes": size, "batch_bytes": batch_bytes}
                measurement.add(number, kind.name, "", parameters, measure(kind, Path(temporary), end))
