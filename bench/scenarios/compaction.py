"""The time of a compaction: HMB's cleaner and Kafka 4.3.0's on the same segments.

    hmb bench compaction                                   # 1 GB, uncompressed and lz4, three rounds
    hmb bench compaction --size 100000000 --codecs none --repeat 1

The benchmark writes a log once (`logs/compactable.py`) and puts it into each broker's data directory before the broker
starts: a topic of one partition that was never compacted.

A broker does not report how long compaction takes. The topic therefore starts with a `min.compaction.lag.ms` that
prevents compaction. The clock starts when a request sets this lag to 0. The clock stops when
`cleaner-offset-checkpoint` contains the base offset of the active segment, because both brokers write this file after
the new segments are in use. The CPU time is that of the broker's process between the two moments. Each broker first
compacts another topic of a third of the size, because Java's compiler needs a warm-up.

Both cleaners have one thread, no throttle, a buffer of 128 MB for keys (the defaults), and look for work every 20 ms. A
run counts only if the log then contains one record for each key.
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

from .. import peers
from ..logs.compactable import SEGMENT_BYTES, Original, compacted_bytes, put, write
from ..measurement import POSITIVE, CommaList, Measurement, scenario, versus_option
from ..peers import topics
from ..peers.chosen import broker_kinds
from ..report.samples import Sample
from ..report.view import Column, SampleView

TOPIC, WARM_UP = "events", "warm-up"
TIMEOUT = 600.0  # seconds for one compaction
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
    """Put both logs into the broker's data directory and return the figures of the compaction of the first one."""
    with broker:
        topics.create(broker.bootstrap, TOPIC, {LAG: FOREVER})
        topics.create(broker.bootstrap, WARM_UP)
        broker.stop()
        put(original.directory, broker.data_dir / f"{TOPIC}-0")
        put(warm_up.directory, broker.data_dir / f"{WARM_UP}-0")
        os.sync()  # Without this sync, the kernel would write the copies to disk while the clock runs.
        broker.start()
        await_compaction(broker, WARM_UP, warm_up.end)
        started, cpu = time.perf_counter(), peers.cpu_seconds(broker.pid)
        topics.alter(broker.bootstrap, TOPIC, LAG, "0")
        await_compaction(broker, TOPIC, original.end)
        seconds, cpu = time.perf_counter() - started, peers.cpu_seconds(broker.pid) - cpu
        left = compacted_bytes(original, broker.data_dir / f"{TOPIC}-0")
        return {"seconds": seconds, "cpu_seconds": cpu, "left_bytes": float(left)}


def await_compaction(broker: peers.Peer, topic: str, end: int) -> None:
    """Wait until the cleaner has reached the offset `end`. Raises PeerFailed after TIMEOUT."""
    deadline = time.monotonic() + TIMEOUT
    while compacted_up_to(broker, topic) != end:
        if time.monotonic() > deadline:
            raise peers.PeerFailed(f"{broker.name} did not compact {topic}; its log ends:\n{broker.log_tail()}")
        time.sleep(0.005)


def compacted_up_to(broker: peers.Peer, topic: str) -> int | None:
    """Return the offset in the cleaner's checkpoint; None if it has none yet."""
    try:
        return read_offsets(broker.data_dir / "cleaner-offset-checkpoint").get(TopicPartition(topic, 0))
    except DamagedStateFile:
        return None  # At first Kafka's checkpoint file is empty.


@scenario("compaction", VIEW)
@versus_option
@click.option("--size", type=POSITIVE, default=10**9, show_default=True, help="Bytes of records before compression.")
@click.option(
    "--codecs", type=CommaList(click.Choice(list(CODECS))), default=["none", "lz4"], metavar="NAME,...",
    help=f"Codecs to run: {', '.join(CODECS)}.  [default: none,lz4]",
)  # fmt: skip
def command(measurement: Measurement, versus: peers.Installation | None, size: int, codecs: list[str]) -> None:
    """Measure how long compaction takes, and its CPU time.

    HMB and Kafka 4.3.0 compact copies of the same segments alternately.
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
