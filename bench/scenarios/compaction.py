"""Measures how long a broker needs to compact a log, for HMB and Kafka 4.3.0 with the same segments.

These commands are examples:
    hmb bench compaction                                   # 1 GB, uncompressed and lz4, three rounds
    hmb bench compaction --size 100000000 --codecs none --repeat 1

The benchmark writes the log of one partition directly into files (`logs/compactable.py`). In each run, it copies this
log into the data directory of a new broker. So each broker begins with the same log, which no broker has compacted
before.

A broker does not report how long a compaction takes, so the benchmark measures the time from outside. At first,
the setting `min.compaction.lag.ms` of the topic has a high value, which prevents compaction. The measurement
begins when a request sets it to 0. The measurement ends when the file `cleaner-offset-checkpoint` contains the
base offset of the active segment. HMB and Kafka write this offset only after the compacted segments have
replaced the old ones.

The CPU time is the time that the broker's process uses during the measurement. Java needs a warm-up. Before the
measurement, each broker therefore compacts another topic with a third of the size.

In both brokers, the cleaner (the part that compacts logs) has one thread, and no setting limits its speed. Its
buffer for keys has the default size of 128 MB. The cleaner looks every 20 ms for a log that needs compaction.
After each run, the benchmark checks that the compacted log contains exactly one record for each key. Otherwise,
the benchmark fails.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import click

from hmb.protocol.topics import TopicPartition
from hmb.records import Codec
from hmb.storage.state.checkpoints import read_offsets
from hmb.storage.state.manifest import DamagedStateFile
from hmb.storage.state.offset_checkpoints import CLEANER_OFFSETS

from .. import peers
from ..logs.compactable import SEGMENT_BYTES, Original, compacted_bytes, put, write
from ..measurement import POSITIVE, CommaList, Measurement, scenario, versus_option
from ..peers import topics
from ..peers.chosen import broker_kinds
from ..report.samples import Sample
from ..report.view import Column, SampleView

TOPIC, WARM_UP = "events", "warm-up"
TIMEOUT = 600.0  # the longest time for one compaction (seconds)
LAG, FOREVER = "min.compaction.lag.ms", str(2**63 - 1)
CLEANER = {
    "log.cleanup.policy": "compact",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.backoff.ms": "20",
    "log.segment.bytes": str(SEGMENT_BYTES),
}
CODECS = {codec.name.lower(): codec for codec in Codec}


def cell(sample: Sample) -> str:
    return f"{sample.parameters['codec']}, {float(sample.parameters['log_bytes']) / 1e6:,.0f} MB"


VIEW = SampleView(
    columns=(
        Column("left_bytes", "left, MB", 1e-6, spread=False, digits=0),
        Column("seconds", "seconds", compare=True),
        Column("cpu_seconds", "CPU, s", compare=True),
    ),
    title=lambda _: "Compaction of the same segments",
    cell=cell,
)


def compact(broker: peers.Peer, original: Original, warm_up: Original) -> dict[str, float]:
    """Measure how a broker compacts the log `original`. Return the results.

    The function copies both logs to the broker. The broker compacts `warm_up` before the measurement.
    """
    with broker:
        topics.create(broker.bootstrap, TOPIC, {LAG: FOREVER})
        topics.create(broker.bootstrap, WARM_UP)
        broker.stop()
        put(original.directory, broker.data_dir / f"{TOPIC}-0")
        put(warm_up.directory, broker.data_dir / f"{WARM_UP}-0")
        os.sync()  # Otherwise the kernel would write the copied files to the disk during the measurement.
        broker.start()
        await_compaction(broker, WARM_UP, warm_up.end)
        started, cpu = time.perf_counter(), peers.cpu_seconds(broker.pid)
        topics.alter(broker.bootstrap, TOPIC, LAG, "0")
        await_compaction(broker, TOPIC, original.end)
        seconds, cpu = time.perf_counter() - started, peers.cpu_seconds(broker.pid) - cpu
        left = compacted_bytes(original, broker.data_dir / f"{TOPIC}-0")
        return {"seconds": seconds, "cpu_seconds": cpu, "left_bytes": float(left)}


def await_compaction(broker: peers.Peer, topic: str, end: int) -> None:
    """Wait until the cleaner has compacted the topic up to the offset `end`. Raises PeerFailed after TIMEOUT."""
    deadline = time.monotonic() + TIMEOUT
    while compacted_up_to(broker, topic) != end:
        if time.monotonic() > deadline:
            raise peers.PeerFailed(f"{broker.name} did not compact {topic}; its log ends:\n{broker.log_tail()}")
        time.sleep(0.005)


def compacted_up_to(broker: peers.Peer, topic: str) -> int | None:
    """Return the offset up to which the broker has compacted a topic, or None before the first compaction."""
    try:
        return read_offsets(broker.data_dir / CLEANER_OFFSETS).get(TopicPartition(topic, 0))
    except DamagedStateFile:
        return None  # Kafka's checkpoint file is empty before the first compaction.


@scenario("compaction", VIEW)
@versus_option
@click.option("--size", type=POSITIVE, default=10**9, show_default=True, help="Bytes of records before compression.")
@click.option(
    "--codecs", type=CommaList(click.Choice(list(CODECS))), default=["none", "lz4"], metavar="NAME,...",
    help=f"Codecs to run: {', '.join(CODECS)}.  [default: none,lz4]",
)  # fmt: skip
def command(measurement: Measurement, versus: peers.Installation | None, size: int, codecs: list[str]) -> None:
    """Measure how long compaction takes, and its CPU time.

    In each round, HMB and Kafka 4.3.0 get copies of the same segments, and compact them one after the other.
    """
    kinds = broker_kinds(versus)
    progress = measurement.progress(len(codecs) * len(kinds) * measurement.round_count)
    for name in codecs:
        with tempfile.TemporaryDirectory(prefix="hmb-compaction-") as temporary:
            original = write(Path(temporary) / TOPIC, size, CODECS[name])
            warm_up = write(Path(temporary) / WARM_UP, size // 3, CODECS[name])
            for number, kind in measurement.rounds(kinds):
                progress.step(f"{name}, round {number + 1}, {kind.name}")
                figures = compact(kind.make(config=CLEANER), original, warm_up)
                sizes = {"bytes": size, "log_bytes": original.size, "keys": original.keys}
                measurement.add(number, kind.name, "", {"codec": name, **sizes}, figures)
