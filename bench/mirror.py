"""Measures the throughput of a mirror between two brokers: HMB's mirror, and MirrorMaker 2 of Kafka 4.3.0.

These commands are examples:
    hmb bench mirror                               # HMB's mirror with and without transactions, and MirrorMaker 2
    hmb bench mirror --num-records 500000 --record-size 1000

In each run, one mirror copies a topic from one HMB broker to a new, empty HMB broker. The mirror is either HMB's mirror
or MirrorMaker 2 of Kafka, which runs in a JVM. The measurement begins when the copy has its first records, so the start
of the mirror does not count. The measurement ends when the copy has all records. If the mirror uses transactions, the
measurement ends when all transactions are committed.

The column "with start" shows the seconds from the start of the mirror's process to the end of the measurement.

MirrorMaker 2 runs without heartbeats and checkpoints, so it does not copy the committed offsets of consumer groups.
HMB's mirror copies these offsets.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from hmb.client import Admin, TopicPartition
from hmb.protocol.errors import KafkaError

from . import peers
from .errors import PeerFailed, PeerUnavailable
from .measurement import POSITIVE, Measurement, record_size_option, scenario
from .peers import topics
from .peers.broker_process import spawn, terminate, write_properties
from .peers.resources import cpu_seconds, resident_bytes
from .report.view import Column, SampleView
from .scenarios.produce import RATE

TOPIC, GROUP, PARTITIONS = "hmb-bench-mirror", "hmb-bench", 4
TIMEOUT = 300.0  # seconds
PLAIN, TRANSACTIONAL, MIRROR_MAKER = "HMB's mirror", "HMB's mirror, transactions", "MirrorMaker 2"
MAIN_CLASS = "org.apache.kafka.connect.mirror.MirrorMaker"
ONE_REPLICA = ("", "offset-syncs.topic.", "offset.storage.", "status.storage.", "config.storage.")

VIEW = SampleView(
    columns=(
        RATE,
        Column("seconds_with_start", "with start, s", spread=False),
        Column("client_cpu_us_per_record", "CPU, us/record", spread=False, compare=True, digits=2),
        Column("client_max_bytes", "peak memory, MB", 1e-6, spread=False, digits=0),
    ),
    title=lambda sample: f"{sample.parameters['records']:,} records of {sample.parameters['message_bytes']} B",
    contestant=lambda sample: sample.client,
)


def hmb_command(source: str, target: str, *options: str) -> list[str]:
    hmb = str(Path(sys.executable).with_name("hmb"))
    return [hmb, "mirror", "--from", source, "--to", target, "--topics", TOPIC, *options]


def mirror_maker_command(source: str, target: str, folder: Path) -> list[str]:
    settings = {
        "clusters": "source,target",
        "source.bootstrap.servers": source,
        "target.bootstrap.servers": target,
        "source->target.enabled": "true",
        "source->target.topics": TOPIC,
        "target->source.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "tasks.max": "2",
        **{f"{prefix}replication.factor": "1" for prefix in ONE_REPLICA},
    }
    write_properties(folder / "mm2.properties", settings)
    return peers.java(peers.kafka_mirror_jars(), MAIN_CLASS, str(folder / "mm2.properties"), options=["-Xmx1G"])


def written(admin: Admin, topic: str) -> int:
    """Return the sum of the end offsets of a topic's partitions, or 0 if the topic does not exist yet.

    If the mirror uses no transactions, this sum is the number of copied records. With transactions, the sum also counts
    the transaction markers, because each marker has an offset.
    """
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    found = admin.list_offsets(dict.fromkeys(partitions, "latest"))
    return sum(0 if isinstance(it, KafkaError) else it.offset for it in found.values())


def committed(admin: Admin) -> int:
    """Return the number of records that HMB's mirror has copied in committed transactions.

    The mirror commits its position in each partition: the source offset of the next record to copy. The offsets at
    the source begin at 0 and have no gaps. Position 6 therefore means that the mirror has copied 6 records, with
    the offsets 0 to 5.
    """
    return sum(it.offset for it in admin.list_group_offsets(GROUP).values())


def measure(
    command: list[str], target: str, copied: Callable[[Admin], int], finished: Callable[[Admin], int], records: int
) -> dict[str, float]:
    """Run a mirror until it has copied all records. Return the mirror's rate, CPU time and memory.

    `command` starts the mirror, and `records` is the number of records to copy. The function `copied` counts
    all records in the copy. The function `finished` counts only the records in committed transactions. Without
    transactions, both functions count all records.

    Raises PeerFailed if the mirror ends too early or takes more than 300 s.
    """
    with tempfile.TemporaryDirectory() as folder, Admin(target) as admin:
        started = time.monotonic()
        process = spawn(command, Path(folder) / "log")
        first, before = started, 0
        try:
            while (now_finished := finished(admin)) < records:
                if process.poll() is not None or time.monotonic() - started > TIMEOUT:
                    log = (Path(folder) / "log").read_text(errors="replace")[-2000:]
                    raise PeerFailed(f"a mirror copied {now_finished} of {records} records; its log ends:\n{log}")
                if not before:
                    first, before = time.monotonic(), copied(admin)
                time.sleep(0.02)
            end = time.monotonic()
            used, memory = cpu_seconds(process.pid), resident_bytes(process.pid, "VmHWM")
        finally:
            terminate(process)
    return {
        "records_per_second": (records - before) / (end - first),
        "seconds_with_start": end - started,
        "client_cpu_us_per_record": used / records * 1e6,
        "client_max_bytes": float(memory),
    }


def run(name: str, source: str, target: str, records: int) -> dict[str, float]:
    """Run one mirror until it has copied the topic TOPIC. Return the figures of the run, for example records/s.

    `name` is the name of the mirror, for example "MirrorMaker 2". `source` and `target` are the addresses of two
    brokers. The broker at `target` has no topics yet.
    """
    copied = partial(written, topic=TOPIC)
    if name == PLAIN:
        return measure(hmb_command(source, target), target, copied, copied, records)
    if name == TRANSACTIONAL:
        command = hmb_command(source, target, "--transactions", "--group", GROUP)
        return measure(command, target, copied, committed, records)
    with tempfile.TemporaryDirectory() as folder:
        copied = partial(written, topic=f"source.{TOPIC}")
        return measure(mirror_maker_command(source, target, Path(folder)), target, copied, copied, records)


def available() -> list[str]:
    """Return the names of the mirrors that can run. If MirrorMaker 2 cannot run, print what is missing."""
    try:
        peers.kafka_mirror_jars()
    except PeerUnavailable as error:
        click.echo(f"without MirrorMaker 2: {error}", err=True)
        return [PLAIN, TRANSACTIONAL]
    return [PLAIN, MIRROR_MAKER, TRANSACTIONAL]


@scenario("mirror", VIEW)
@click.option("--num-records", type=POSITIVE, default=3_000_000, show_default=True, help="The number of records.")
@record_size_option
def command(measurement: Measurement, num_records: int, record_size: int) -> None:
    """Measure how many records per second a mirror copies from one HMB broker to another one.

    HMB's mirror and MirrorMaker 2 run alternately. Each run has the same source, and an empty target.
    """
    names = available()
    progress = measurement.progress(1 + len(names) * measurement.round_count)
    source = measurement.stack.enter_context(peers.Hmb())
    progress.step("filling the source")
    topics.create_filled(
        source.bootstrap, TOPIC, partitions=PARTITIONS, records=num_records, record_size=record_size
    )
    for number, name in measurement.rounds(names):
        progress.step(f"round {number + 1}, {name}")
        with peers.Hmb() as target:
            figures = run(name, source.bootstrap, target.bootstrap, num_records)
        parameters = {"records": num_records, "message_bytes": record_size}
        measurement.add(number, source.name, name, parameters, figures)
