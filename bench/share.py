"""Measures how fast share groups read records. A share group uses a topic like a queue (KIP-932).

These commands are examples:
    hmb bench share                                 # four members, 100,000 records of 100 B, HMB and Kafka 4.3.0
    hmb bench share --members 8 --num-records 500000
    hmb bench share --versus ../before              # this HMB and the HMB of another checkout

The benchmark uses the same client for HMB and Kafka: each member is a process with HMB's share consumer
(`load/share_member.py`). In each run, a new share group reads the topic from its beginning. There are two kinds
of runs:
- *implicit*: each poll acknowledges all records of the previous poll.
- *explicit*: the member acknowledges each record with a separate call.

The measurement of a run begins when a member receives the first records, and ends when a member receives the
last records. While a member processes a record, the broker locks the record for this member. If the lock
expires before the member has acknowledged the record, another member reads the record again. The members then
read more records in total than the topic contains, and the run fails.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import click

from hmb.client import Admin
from hmb.client.admin import ConfigResource, ResourceType

from .errors import PeerFailed
from .measurement import POSITIVE, Measurement, Opponent, broker_options, record_size_option, scenario
from .peers import topics
from .peers.chosen import MeasuredBroker, running_brokers
from .peers.program import run_program
from .report.samples import Sample
from .report.view import Column, SampleView
from .scenarios.produce import BROKER_CPU, RATE

TOPIC, PARTITIONS = "hmb-bench-share", 4
UNTIL_JOINED = 8.0  # seconds until the members begin to read; this is enough time for all of them to join the group
MODES = ("implicit", "explicit")


def title(sample: Sample) -> str:
    records, size, members = (sample.parameters[name] for name in ("records", "message_bytes", "members"))
    return f"{records:,} records of {size} B, {members} members of a share group"


VIEW = SampleView(
    columns=(
        RATE,
        BROKER_CPU,
        Column("broker_resident_bytes", "broker memory, MB", 1e-6, spread=False, digits=0),
    ),
    title=title,
    cell=lambda sample: str(sample.parameters["acknowledgement"]),
)


def read(broker: MeasuredBroker, group: str, members: int, records: int, mode: str) -> dict[str, float]:
    """Read the whole topic with the members of a new share group. Return the measured values. Raises PeerFailed."""
    with Admin(broker.bootstrap) as admin:
        resource = ConfigResource(ResourceType.GROUP, group)
        admin.alter_configs(resource, set={"share.auto.offset.reset": "earliest"})
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", TOPIC, "--group", group]
    start = ["--start", str(time.time() + UNTIL_JOINED)]
    command = [sys.executable, "-m", "hmb.bench.load.share_member", *arguments, *start]
    if mode == "explicit":
        command.append("--explicit")
    before = broker.cpu_seconds()
    with ThreadPoolExecutor(members) as threads:
        done = list(threads.map(lambda number: run_program(command, f"member {number}"), range(members)))
    rows = [[float(each) for each in it.output.split()] for it in done]
    total = sum(row[0] for row in rows)
    if total != records:
        raise PeerFailed(f"the members of {broker.name} read {total:.0f} records instead of {records}")
    worked = [row for row in rows if row[0]]
    seconds = max(row[2] for row in worked) - min(row[1] for row in worked)
    return {"records_per_second": records / seconds, **broker.costs_since(before)}


@scenario("share", VIEW)
@broker_options
@click.option("--members", type=POSITIVE, default=4, show_default=True, help="Number of members, each in a process.")
@click.option("--num-records", type=POSITIVE, default=100_000, show_default=True, help="The number of records.")
@record_size_option
def command(
    measurement: Measurement, bootstrap: str | None, versus: Opponent, members: int, num_records: int, record_size: int
) -> None:
    """Measure how many records/s a share group reads, with implicit and with explicit acknowledgement.

    HMB and Kafka 4.3.0 run alternately. HMB's share consumer reads from both brokers.
    """
    brokers = running_brokers(measurement.stack, bootstrap, versus)
    progress = measurement.progress(len(brokers) * (1 + len(MODES) * measurement.round_count))
    for broker in brokers:
        progress.step(f"records and warm-up of {broker.name}")
        topics.create_filled(
            broker.bootstrap, TOPIC, partitions=PARTITIONS, records=num_records, record_size=record_size
        )
        read(broker, "warm-up", members, num_records, "implicit")
    for mode in MODES:
        parameters: dict[str, float | str] = {
            "records": num_records, "message_bytes": record_size, "members": members, "acknowledgement": mode
        }  # fmt: skip
        for number, broker in measurement.rounds(brokers):
            progress.step(f"round {number + 1}, {mode}, {broker.name}")
            figures = read(broker, f"{mode}-{number}", members, num_records, mode)
            measurement.add(number, broker.name, "HMB", parameters, figures)
