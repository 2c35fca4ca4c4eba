"""The command `hmb bench security`, which measures what TLS, logins and ACLs cost a broker.

These commands are examples:
    hmb bench security
    hmb bench security --repeat 7 --num-records 2000000
    hmb bench security --num-records 20000 --num-logins 50 --warm-up 0 --repeat 1     # a quick look

The last table compares the measured values with goals:
- *TLS*: the rate of HMB divided by the rate of Kafka 4.3.0 in the same round, for producers and consumers.
- *login*: the processor time that HMB's broker needs for one connection with a login over SCRAM-SHA-256.
- *1,000 ACLs*: the loss of throughput and the additional processor time in percent, compared with a broker
  without ACLs. On a machine that is busy with other work, trust the processor time more than the throughput.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ..load.workload import Workload
from ..measurement import POSITIVE, Measurement, scenario, warm_up_option
from ..peers import Hmb, Kafka43
from ..progress import Progress
from ..report.goals import FigureGoal, goal_table
from ..report.samples import Sample
from ..report.tables import Table, group_by, ratios
from ..report.view import Column, SampleView, broker
from ..scenarios.produce import BROKER_CPU, RATE
from .acls import ACLS, SMALL_BATCH, AclBrokers
from .brokers import SecuredBroker, start_brokers
from .logins import USERS, login_cpu_ms
from .tls import ACTIONS, CLIENTS, fill

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The names of the three measurements. Each measured sample stores the name of its measurement in the field `suite`.
TLS, LOGIN, ACL = "security TLS", "security login", "security ACLs"
LOGIN_CPU = "broker_cpu_ms"
ROUNDS = 5
# In a run with ACLs, each record is a batch of its own, so a record takes longer than over TLS. A run with ACLs
# therefore sends only --num-records / 10 records, by default 1,000,000 / 10 = 100,000.
RECORDS_FOR_SMALL_BATCH = 10
WARM_UP_LOGINS = 50
GOALS = {
    **{
        f"{action}, {client.name}": FigureGoal(f"TLS, {action}, {client.name}: over Kafka", 1, is_least=True, digits=2)
        for action, client in itertools.product(ACTIONS, CLIENTS)
    },
    **{user: FigureGoal(f"login, {user}, broker CPU, ms", 2, digits=2) for user in USERS},
    "lost_percent": FigureGoal(f"lost throughput with {ACLS:,} ACLs, %", 3),
    "cpu_percent": FigureGoal(f"additional broker CPU with {ACLS:,} ACLs, %", 3),
}


def task(sample: Sample) -> str:
    """Return the task that a sample has measured, for example "produce, Kafka 4.3.0" or "unknown user"."""
    return str(sample.parameters["task"])


VIEWS = {
    TLS: SampleView((RATE, BROKER_CPU), title=lambda _: "TLS: 100 B, one partition", cell=task),
    LOGIN: SampleView(
        (Column(LOGIN_CPU, "broker CPU, ms/login", compare=True),), title=lambda _: "Logins over SCRAM", cell=task
    ),
}


class SecurityView:
    """The tables of the benchmark `security`.

    One table shows the rates over TLS, and another shows the processor time for a login. If Kafka is measured, a
    table of ratios (HMB divided by Kafka) follows each of these two tables. The last table compares HMB's results
    with goals, for example at most 2 ms for a login.
    """

    def tables(self, samples: Sequence[Sample]) -> list[Table]:
        by_suite = group_by(samples, lambda sample: sample.suite)
        compared = [
            table for suite, view in VIEWS.items() if suite in by_suite for table in view.tables(by_suite[suite])
        ]
        return [*compared, goal_table("The goals for the cost of security", GOALS, figures_of(by_suite))]

    def charts(self, samples: Sequence[Sample]) -> dict[str, Figure]:
        """Return an empty dict: this benchmark has no charts. Its last table shows which goals HMB reaches."""
        return {}


VIEW = SecurityView()


def figures_of(by_suite: Mapping[str, Sequence[Sample]]) -> dict[str, Sequence[float]]:
    """Return the measured values for each goal in GOALS.

    The keys of the result are the names of goals. Each value contains one number for each round.

    `by_suite` contains the samples of all runs. Its keys are the names of the three measurements: TLS, LOGIN and
    ACL.
    """
    figures: dict[str, Sequence[float]] = {}
    for name, of_task in group_by(by_suite.get(TLS, []), task).items():
        runs = group_by(of_task, broker)
        found = ratios(runs.get(Hmb.name, []), runs.get(Kafka43.name, []), RATE.value)
        if found is not None:
            figures[name] = found.values
    ours = [each for each in by_suite.get(LOGIN, []) if each.broker == Hmb.name]
    for name, of_user in group_by(ours, task).items():
        figures[name] = [each.figures[LOGIN_CPU] for each in of_user]
    if of_acls := by_suite.get(ACL):
        figures |= {name: [each.figures[name] for each in of_acls] for name in ("lost_percent", "cpu_percent")}
    return figures


def warm_up(brokers: Sequence[SecuredBroker], workload: Workload, seconds: float) -> None:
    """Run all clients with all brokers as a warm-up, and make some logins. Nothing is measured.

    The clients run for about `seconds` seconds multiplied by the number of brokers. For example, with two brokers
    and `seconds` = 5, the clients run for about 10 s.
    """
    end = time.monotonic() + seconds * len(brokers)
    for (run, client), secured in itertools.cycle(
        itertools.product(itertools.product(ACTIONS.values(), CLIENTS), brokers)
    ):
        if time.monotonic() >= end:
            break
        run(secured, client, workload)
    for secured, user in itertools.product(brokers, USERS.values()):
        login_cpu_ms(secured, user, WARM_UP_LOGINS)


def measure_tls(
    measurement: Measurement, brokers: Sequence[SecuredBroker], workload: Workload, progress: Progress
) -> None:
    """Measure each producer and each consumer over TLS: in each round, once with each broker."""
    for (action, run), client in itertools.product(ACTIONS.items(), CLIENTS):
        for number, secured in measurement.rounds(brokers):
            progress.step(f"TLS, {action}, round {number + 1}: {client.name}, {secured.name}")
            parameters: dict[str, float | str] = {**workload.parameters, "task": f"{action}, {client.name}"}
            figures = run(secured, client, workload)
            measurement.add(number, secured.name, client.name, parameters, figures, suite=TLS)


def measure_logins(
    measurement: Measurement, brokers: Sequence[SecuredBroker], logins: int, progress: Progress
) -> None:
    """Measure how much processor time each broker needs for one login.

    The measurement is repeated for each user, in several rounds. In one round, the user logs in to each broker
    `logins` times.
    """
    for name, user in USERS.items():
        for number, secured in measurement.rounds(brokers):
            progress.step(f"login of the {name}, round {number + 1}: {secured.name}")
            figures = {LOGIN_CPU: login_cpu_ms(secured, user, logins)}
            measurement.add(number, secured.name, "HMB", {"task": name, "logins": logins}, figures, suite=LOGIN)


def measure_acls(measurement: Measurement, records: int, progress: Progress) -> None:
    """Send records to a broker without ACLs, and to a broker with 1,000 ACLs."""
    progress.step("two brokers, of which one has ACLs: warm-up")
    brokers = AclBrokers(measurement.stack, records)
    parameters: dict[str, float | str] = {"task": f"{ACLS:,} ACLs", "records": records, "batch_bytes": SMALL_BATCH}
    for number in range(measurement.round_count):
        progress.step(f"ACLs, round {number + 1}")
        measurement.add(number, Hmb.name, "HMB", parameters, brokers.measure(number), suite=ACL)


@scenario("security", VIEW, rounds=ROUNDS)
@click.option(
    "--num-records", type=POSITIVE, default=1_000_000, show_default=True,
    help="Number of records in a run over TLS. A run with ACLs has a tenth of this number.",
)  # fmt: skip
@click.option("--num-logins", type=POSITIVE, default=500, show_default=True, help="Number of logins in a run.")
@warm_up_option
def command(measurement: Measurement, num_records: int, num_logins: int, warm_up_seconds: float) -> None:
    """Measure the cost of TLS, of logins and of ACLs. The last table compares the results with goals.

    For TLS and logins, HMB and Kafka 4.3.0 run alternately. Java's client and librdkafka send and read records over
    TLS. The command needs the program openssl, which makes the certificates.

    To compare two versions of HMB without TLS, logins and ACLs, use `hmb bench produce --versus CHECKOUT`.
    """
    brokers = start_brokers(measurement.stack)
    workload = Workload(100, 16_384, num_records)
    progress = measurement.progress(len(brokers) * measurement.round_count * 6 + measurement.round_count + 2)
    progress.step("warm-up")
    for secured in brokers:
        fill(secured, workload)
    warm_up(brokers, workload, warm_up_seconds)
    measure_tls(measurement, brokers, workload, progress)
    measure_logins(measurement, brokers, num_logins, progress)
    measure_acls(measurement, max(1, num_records // RECORDS_FOR_SMALL_BATCH), progress)
