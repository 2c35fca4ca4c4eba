"""Measures the memory that a broker uses, and the memory that HMB's producer uses.

These commands measure the memory of the following programs:
    hmb bench memory                 # HMB and Kafka 4.3.0, before and after they receive 10 GB of records
    hmb bench memory --gigabytes 1   # the same two brokers, before and after 1 GB
    hmb bench memory --of producer   # HMB's producer, while it sends 10 GB of records

The benchmark measures the memory of a broker as follows. HMB's producer sends one gigabyte of records of 1,000 B to a
new topic. HMB's consumer reads the records, and the benchmark deletes the topic. For each further gigabyte, the
benchmark repeats these steps with a new topic.

When the benchmark measures a broker, HMB runs with its default settings, except for two settings:
`group.initial.rebalance.delay.ms` is 0, and `log.segment.delete.delay.ms` is 1000. Kafka gets the same two
values. The dict `COMPARABLE_SETTINGS` in `peers/broker_process.py` contains both.

The column "idle" of the result table shows how much memory a broker uses immediately after its start.

With `--of producer`, the benchmark measures HMB's performance producer. This producer sends records of
100 B as fast as it can. In the table, "idle" is the peak memory of a producer that sends only one record.

HMB's producer should never use more than 32 MiB for its buffer (buffer.memory) plus 30 MB for everything
else. To save disk space, the broker that receives the producer's records keeps only the newest segments.

The benchmark reads two values from /proc: the resident memory of the process (VmRSS), and the largest value of this
memory so far (VmHWM). Neither value includes the newest bytes of the logs. These bytes are in the page cache, which
belongs to the kernel, not to the process.
"""

from __future__ import annotations

import click

from .. import peers
from ..load.consumers import HmbConsumer
from ..load.producers import HmbProducer, produce
from ..load.workload import Workload
from ..measurement import POSITIVE, Measurement, Parameters, scenario, versus_option
from ..peers import topics
from ..peers.chosen import BrokerKind, MeasuredBroker, broker_kinds
from ..progress import Progress
from ..report.samples import Sample
from ..report.view import Column, SampleView

GIGABYTE = Workload(1_000, 65_536, 1_000_000)
SMALL_RECORDS = Workload(100, 16_384, 10_000_000)  # one gigabyte: 10,000,000 records of 100 bytes
BUFFER_MEMORY = 32 * 1024 * 1024
KEEP_LITTLE = {
    "log.retention.bytes": "268435456",
    "log.segment.bytes": "67108864",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "0",
}


def title(sample: Sample) -> str:
    of = "a producer that sends" if sample.parameters.get("of") == "producer" else "a broker that passes on"
    return f"Memory of {of} {sample.parameters['gigabytes']} GB"


VIEW = SampleView(
    columns=(
        Column("idle_bytes", "idle, MB", 1e-6, spread=False, compare=True),
        Column("resident_bytes", "afterwards, MB", 1e-6, spread=False, compare=True),
        Column("most_bytes", "peak, MB", 1e-6, spread=False, compare=True),
    ),
    title=title,
)


def measure_broker(kind: BrokerKind, gigabytes: int, progress: Progress) -> dict[str, float]:
    """Start a broker, and send `gigabytes` GB of records.

    Return the memory of the broker after its start, its memory at the end, and its peak memory.
    """
    with kind.make() as broker:
        idle = peers.resident_bytes(broker.pid)
        for number in range(gigabytes):
            progress.step(f"{kind.name}, gigabyte {number + 1}")
            topic = f"hmb-bench-{number}"
            topics.create(broker.bootstrap, topic)
            HmbProducer().run(broker.bootstrap, topic, GIGABYTE)
            HmbConsumer("arrow").run(broker.bootstrap, topic, GIGABYTE.records)
            topics.delete(broker.bootstrap, topic)
        return {
            "idle_bytes": float(idle),
            "resident_bytes": float(peers.resident_bytes(broker.pid)),
            "most_bytes": float(peers.resident_bytes(broker.pid, "VmHWM")),
        }


def measure_producer(gigabytes: int) -> dict[str, float]:
    """Return the peak memory of two producers of HMB: one sends a single record, and one sends `gigabytes` GB."""
    with peers.Hmb(config=KEEP_LITTLE) as peer:
        broker, workload = MeasuredBroker.of(peer), SMALL_RECORDS.scaled(gigabytes)
        idle, busy = (
            produce(broker, HmbProducer(BUFFER_MEMORY), each, f"hmb-bench-{each.records}")["client_max_bytes"]
            for each in (Workload(100, 16_384, 1), workload)
        )
        return {"idle_bytes": idle, "most_bytes": busy}


@scenario("memory", VIEW, rounds=1)
@versus_option
@click.option("--gigabytes", type=POSITIVE, default=10, show_default=True)
@click.option(
    "--of", type=click.Choice(["broker", "producer"]), default="broker", show_default=True,
    help="The process whose memory is measured.",
)  # fmt: skip
def command(measurement: Measurement, versus: peers.Installation | None, gigabytes: int, of: str) -> None:
    """Measure the memory of a broker or, with --of producer, of HMB's producer.

    The benchmark measures a broker before and after it receives records, or a producer while it sends records. The
    option --gigabytes sets the amount of records in GB.
    """
    if of == "producer":
        progress = measurement.progress(measurement.round_count)
        for number in range(measurement.round_count):
            progress.step(f"round {number + 1}")
            parameters: Parameters = {"gigabytes": gigabytes, "of": of}
            measurement.add(number, "HMB", "HMB's producer", parameters, measure_producer(gigabytes))
        return
    kinds = broker_kinds(versus)
    progress = measurement.progress(len(kinds) * measurement.round_count * gigabytes)
    for number, kind in measurement.rounds(kinds):
        figures = measure_broker(kind, gigabytes, progress)
        measurement.add(number, kind.name, "HMB", {"gigabytes": gigabytes}, figures)
