"""Measures the speed of producers and consumers in Python: HMB, confluent-kafka, aiokafka and kafka-python.

These commands are examples:
    hmb bench clients                                # with HMB's broker and with Kafka 4.3.0, three rounds each
    hmb bench clients -b HOST:PORT --repeat 5        # with a running broker
    hmb bench clients --only produce --scale 0.1     # a quick look
    hmb bench clients --versus ../before             # HMB's clients, and those of another checkout

The records have 100 B, and the topic has one partition. Each client runs in a process of its own. The module
`load/library_client.py` lists the settings that all clients share. All rounds with HMB's broker come first, and all
rounds with Kafka's broker follow.

A run of a producer counts only if the broker has acknowledged all records, and if the end offset shows that all records
are in the log. A consumer reads a topic that HMB's producer has filled with batches of 16 KB, the default size of
Kafka's producer.

A goal usually compares two clients. For example, HMB's `send` has to be at least 10 times as fast as kafka-python. In
each round, the benchmark divides the rate of HMB's client by the rate of the other client. The median of these ratios
decides whether the goal is met. Other goals are a fixed rate, for example at least 300,000 records/s.

If a goal compares HMB's client with another client, the column "by CPU time" contains a ratio. It is the CPU
time of the other client for one record, divided by the CPU time of HMB's client for one record.

If the broker is slow or the machine is busy, a client's rate (records/s) falls. The client's CPU time per
record hardly changes.

If a goal is a fixed rate, such as 300,000 records/s, the column "by CPU time" shows how many records HMB's client
handles in one second of CPU time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import peers
from ..load import workload
from ..measurement import POSITIVE, CommaList, Measurement, Opponent, broker_options, scale_option, scenario
from ..peers import topics
from ..peers.chosen import MeasuredBroker, running_brokers
from ..peers.program import run_program
from ..progress import Progress
from ..report.samples import Sample
from ..report.tables import Table, distribution, group_by, ratios
from ..report.view import Column, SampleView
from .produce import RATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROGRAM = Path(workload.__file__).with_name("library_client.py")
TOPIC = "hmb-bench-clients"
FILLED = f"{TOPIC}-filled"
FILL_BATCH = 16_384
OWN = peers.Installation.own()
CPU = Column("client_cpu_us_per_record", "client CPU, us/record", compare=True)


@dataclass(frozen=True)
class LibraryClient:
    """A producer or a consumer that the program `library_client.py` can run.

    A fast client has more `records` to send or to read than a slow client, so that each client runs for some seconds.
    """

    name: str
    action: str  # "produce" or "consume"
    records: int
    installation: peers.Installation = OWN

    @property
    def label(self) -> str:
        """The name of the client in the results, for example "hmb send".

        With `--versus ../before`, the benchmark compares this HMB with the HMB that is installed in the folder
        `before`. In the results, the client from the folder `before` is called "hmb send (before)".
        """
        return self.name + self.installation.name.removeprefix(peers.Hmb.name)


PRODUCERS = (
    LibraryClient("hmb send", "produce", 1_000_000),
    LibraryClient("hmb send_many", "produce", 3_000_000),
    LibraryClient("hmb send_many, Arrow", "produce", 3_000_000),
    LibraryClient("confluent-kafka", "produce", 2_000_000),
    LibraryClient("aiokafka", "produce", 300_000),
    LibraryClient("kafka-python", "produce", 150_000),
)
CONSUMERS = (
    LibraryClient("hmb records", "consume", 2_000_000),
    LibraryClient("hmb Arrow", "consume", 3_000_000),
    LibraryClient("hmb consume", "consume", 1_000_000),
    LibraryClient("confluent-kafka consume", "consume", 2_000_000),
    LibraryClient("confluent-kafka consume at once", "consume", 3_000_000),
    LibraryClient("confluent-kafka poll", "consume", 1_000_000),
    LibraryClient("aiokafka", "consume", 1_000_000),
    LibraryClient("kafka-python", "consume", 500_000),
)


@dataclass(frozen=True)
class ClientGoal:
    """A goal for the speed of the client `client`: a fixed rate, or a comparison with the client `over`.

    If `over` is None, the number `least` is a rate: `client` must reach at least `least` records/s.

    Otherwise, the number `least` is a ratio. For example, `client` is "hmb send", `over` is "kafka-python", and
    `least` is 10. The rate of "hmb send" must then be at least 10 times the rate of "kafka-python".
    """

    action: str
    client: str
    over: str | None
    least: float


GOALS = (
    ClientGoal("produce", "hmb send", "kafka-python", 10),
    ClientGoal("produce", "hmb send", "aiokafka", 2),
    ClientGoal("produce", "hmb send_many", "confluent-kafka", 1),
    ClientGoal("consume", "hmb records", "confluent-kafka consume", 1),
    ClientGoal("consume", "hmb records", "confluent-kafka consume at once", 1),
    ClientGoal("consume", "hmb records", "confluent-kafka poll", 1),
    ClientGoal("consume", "hmb records", "aiokafka", 1),
    ClientGoal("consume", "hmb Arrow", None, 1_500_000),
    ClientGoal("consume", "hmb consume", None, 300_000),
)


def action(sample: Sample) -> str:
    return sample.suite.removeprefix("clients ")


def title(sample: Sample) -> str:
    return f"Clients that {action(sample)} on {sample.broker}"


ALL_CLIENTS = SampleView(
    columns=(replace(RATE, compare=False), replace(CPU, compare=False)),
    title=title,
    contestant=lambda sample: sample.client,
    reference=None,
)
TWO_INSTALLATIONS = SampleView(
    columns=(RATE, CPU),
    title=title,
    cell=lambda sample: sample.client.partition(" (")[0],
    contestant=lambda sample: "HMB" + "".join(sample.client.partition(" (")[1:]),
)


class ClientsView:
    """The tables of the benchmark `clients`: the rates of all clients, and a comparison with the goals.

    With --versus, the tables show the ratios between two installations of HMB, and no goals.
    """

    def tables(self, samples: Sequence[Sample]) -> list[Table]:
        view = self._view(samples)
        by_broker = group_by(samples, lambda sample: sample.broker) if view is ALL_CLIENTS else {}
        goals = [table for name, of_broker in by_broker.items() for table in goals_of(name, of_broker)]
        return [*view.tables(samples), *goals]

    def charts(self, samples: Sequence[Sample]) -> dict[str, Figure]:
        return self._view(samples).charts(samples)

    def _view(self, samples: Sequence[Sample]) -> SampleView:
        return TWO_INSTALLATIONS if any(sample.client.endswith(")") for sample in samples) else ALL_CLIENTS


VIEW = ClientsView()


def goals_of(broker: str, samples: Sequence[Sample]) -> list[Table]:
    """Return a table of the goals for one broker.

    Leave out a goal if its clients did not run. If no goal remains, return no table.
    """
    runs = group_by(samples, lambda sample: (action(sample), sample.client))
    rows = [["", "goal", "", "reached", "by CPU time"], *judged(runs)]
    return [Table(f"The goals, on {broker}", rows)] if rows[1:] else []


def judged(runs: Mapping[tuple[str, str], Sequence[Sample]]) -> Iterator[list[str]]:
    """Yield each goal's row: the result, and "met" or "MISSED". Skip a goal if one of its clients did not run."""
    for goal in GOALS:
        ours, theirs = runs.get((goal.action, goal.client), []), runs.get((goal.action, goal.over or ""), [])
        if goal.over is None:
            if not ours:
                continue
            reached = distribution(ours, RATE.key)
            name, by_cpu = f"at least {goal.least:,.0f} records/s", f"{1e6 / distribution(ours, CPU.key).median:,.0f}"
        else:
            ratio = ratios(ours, theirs, RATE.value)
            if ratio is None:
                continue
            reached = ratio
            name, by_cpu = f"at least {goal.least:g} x {goal.over}", str(ratios(theirs, ours, CPU.value) or "")
        verdict = "met" if reached.median >= goal.least else "MISSED"
        yield [goal.action, f"{goal.client}, {name}", verdict, str(reached), by_cpu]


@dataclass(frozen=True)
class ClientSettings:
    """The settings that the producers of all measured clients use."""

    acks: int
    linger_ms: int
    batch_size: int  # bytes

    def options(self) -> list[str]:
        options = ("--acks", self.acks), ("--linger-ms", self.linger_ms), ("--batch-size", self.batch_size)
        return [str(part) for option in options for part in option]


def run_client(
    broker: MeasuredBroker,
    client: LibraryClient,
    topic: str,
    settings: ClientSettings,
    security: Mapping[str, str] = workload.NO_SECURITY,
) -> dict[str, float]:
    """Run a client once in a process of its own, and return its figures, for example records/s.

    `security` contains further settings of librdkafka. Raises PeerFailed if records are missing.
    """
    # Without the option -P, Python would search the program's folder first when it imports a module. A module in this
    # folder would then hide an installed module of the same name.
    program = [str(client.installation.python), "-P", str(PROGRAM), client.action, client.name]
    task = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--num-records", str(client.records)]
    task += [part for item in security.items() for part in ("--librdkafka", "=".join(item))]
    done = run_program([*program, *task, *settings.options()], f"{client.label} ({client.action})")
    result = json.loads(done.output)
    return {
        "records_per_second": result["records"] / result["seconds"],
        "client_cpu_us_per_record": result["cpu_seconds"] / result["records"] * 1e6,
        "client_max_bytes": float(done.max_resident_bytes),
    }


def produce(broker: MeasuredBroker, client: LibraryClient, settings: ClientSettings) -> dict[str, float]:
    """Run a producer once on a new topic, delete the topic, and return the measured values.

    Raises PeerFailed if records are missing.
    """
    topics.create(broker.bootstrap, TOPIC)
    try:
        figures = run_client(broker, client, TOPIC, settings)
        end = topics.end_offset(broker.bootstrap, TOPIC)
        if end != client.records + 1:  # The producer sent one more record before its clock started.
            raise peers.PeerFailed(f"{client.label} to {broker.name}: the log ends at offset {end}")
    finally:
        topics.delete(broker.bootstrap, TOPIC)
    return figures


def fill(broker: MeasuredBroker, records: int) -> None:
    """Create the topic that the consumers read, and write `records` records into it."""
    topics.create(broker.bootstrap, FILLED)
    client = LibraryClient("hmb send_many", "produce", records)
    run_client(broker, client, FILLED, ClientSettings(1, 5, FILL_BATCH))


def chosen_clients(
    only: str | None, parts: Sequence[str], scale: float, versus: peers.Installation | None
) -> list[LibraryClient]:
    """Return the clients that the user has chosen.

    If `versus` is another installation of HMB, return only HMB's clients: those of the running installation and
    those of `versus`.
    """
    clients = [each for each in (*PRODUCERS, *CONSUMERS) if only in (None, each.action)]
    if parts:
        clients = [each for each in clients if any(part in each.name for part in parts)]
    if versus is not None:
        ours = [each for each in clients if each.name.startswith("hmb")]
        clients = [each for client in ours for each in (client, replace(client, installation=versus))]
    return [replace(each, records=max(1_000, int(each.records * scale))) for each in clients]


def measure(
    measurement: Measurement,
    broker: MeasuredBroker,
    clients: Sequence[LibraryClient],
    settings: ClientSettings,
    progress: Progress,
) -> None:
    """Run the clients with one broker: first all rounds of the producers, then all rounds of the consumers."""
    for _, group in groupby(clients, lambda each: each.action):
        for number, client in measurement.rounds(list(group)):
            progress.step(f"{broker.name}, round {number + 1}: {client.label}, {client.action}")
            if client.action == "produce":
                figures = produce(broker, client, settings)
            else:
                figures = run_client(broker, client, FILLED, settings)
            parameters = {"records": client.records, "acks": settings.acks, "batch_bytes": settings.batch_size}
            suite = f"clients {client.action}"
            measurement.add(number, broker.name, client.label, parameters, figures, suite=suite)


@scenario("clients", VIEW)
@broker_options
@click.option("--only", type=click.Choice(["produce", "consume"]), help="Run only producers, or only consumers.")
@click.option(
    "--clients", "parts", type=CommaList(click.STRING), default=[], metavar="PART,...",
    help="Run only clients whose names contain one of these texts.",
)  # fmt: skip
@click.option("--acks", type=click.IntRange(-1, 1), default=1, show_default=True)
@click.option("--linger-ms", type=click.IntRange(min=0), default=5, show_default=True)
@click.option("--batch-size", type=POSITIVE, default=262_144, show_default=True, help="Size of a batch in bytes.")
@scale_option
def command(
    measurement: Measurement,
    bootstrap: str | None,
    versus: Opponent,
    only: str | None,
    parts: list[str],
    acks: int,
    linger_ms: int,
    batch_size: int,
    scale: float,
) -> None:
    """Measure Python's producers and consumers: HMB's, confluent-kafka, aiokafka and kafka-python.

    All clients run alternately, at first with HMB's broker and afterwards with Kafka 4.3.0.

    With --versus CHECKOUT, only HMB's clients run. The command compares its own version of the clients with the
    version that is installed in CHECKOUT. Both versions use the same brokers.
    """
    settings = ClientSettings(acks, linger_ms, batch_size)
    other = versus if isinstance(versus, peers.Installation) else None
    brokers = running_brokers(measurement.stack, bootstrap, None if other else versus)
    clients = chosen_clients(only, parts, scale, other)
    largest = max((each.records for each in clients if each.action == "consume"), default=0)
    progress = measurement.progress(len(brokers) * (1 + len(clients) * measurement.round_count))
    for broker in brokers:
        progress.step(f"warm-up of {broker.name}")
        produce(broker, LibraryClient("hmb send_many", "produce", max(1_000, int(500_000 * scale))), settings)
        if largest:
            measurement.stack.callback(topics.delete, broker.bootstrap, FILLED)
            fill(broker, largest)
        measure(measurement, broker, clients, settings, progress)
