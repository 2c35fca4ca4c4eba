"""The start of a broker after a kill: it checks every batch and writes the indexes again.

    hmb bench recovery                                    # 1 GB in batches of 1, 16 and 100 KB, HMB and Kafka 4.3.0
    hmb bench recovery --size 100000000 --batches 200     # bytes
    hmb bench recovery --versus ../before                 # this HMB and the HMB of another checkout

A broker creates a topic and is killed. The benchmark then puts a prepared segment without a recovery point into the
directory of the partition (`logs/unclean.py`), and starts the broker again. The clock runs from the start of the
process to the first response. A second start, after a clean stop, shows which part of this time is not recovery. A run
counts only if the log then ends where the prepared segment ends.

The segment was just written, so it is in the page cache. The benchmark therefore measures CPU work, without the time of
reading from a disk. The goal is 2 s for 1 GB. The published runs of 2026-11-22 measured only the log, without a broker.
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
    """Return the figures of a new broker that finds this segment after a kill. Raises PeerFailed."""
    broker = kind.make(config=CONFIG)
    try:
        broker.start()
        topics.create(broker.bootstrap, TOPIC)
        directory = broker.data_dir / f"{TOPIC}-0"
        await_file(directory / "partition.metadata")
        broker.kill()
        put(segment, directory)
        os.sync()  # Without this sync, the kernel would write the copy to disk while the clock runs.
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
    """Wait for a file: Kafka reports a topic before it has created its directory. Raises PeerFailed after 30 s."""
    deadline = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > deadline:
            raise peers.PeerFailed(f"the broker did not create {path}")
        time.sleep(0.02)


def timed_start(broker: peers.Peer) -> tuple[float, float]:
    """Start a broker; return the seconds to its first response, and its CPU seconds until then."""
    broker.prepare()
    started = time.perf_counter()
    broker.spawn()
    broker.await_ready()
    return time.perf_counter() - started, peers.cpu_seconds(broker.pid)


@scenario("recovery", VIEW)
@versus_option
@click.option("--size", type=POSITIVE, default=10**9, show_default=True, help="Bytes of the log.")
@click.option(
    "--batches", type=CommaList(POSITIVE), default=[1_000, 16_384, 100_000], metavar="N,N,...",
    help="Sizes of a batch in bytes.  [default: 1000,16384,100000]",
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
