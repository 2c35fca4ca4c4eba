"""`hmb hailstorm check`: process the same records in many orders, and compare the topology's results."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ..shared.client_options import ClientConfig, client_options, security_settings
from ..shared.errors import ERROR
from ..shared.output import json_option, plural, print_json
from .arguments import errors_as_lines, topology_argument

if TYPE_CHECKING:
    from hmb.client import ConsumerRecord


@click.command("check")
@topology_argument
@client_options(security_settings)
@click.option(
    "--records", type=click.IntRange(min=1), default=40, show_default=True,
    help="How many records of each partition to use.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True,
    help="The seed of the random numbers, which select the orders of the records and the states to merge.",
)
@json_option
def command(topology: str, client: ClientConfig, records: int, seed: int, as_json: bool) -> None:
    """Test whether the results of a topology depend on the order of the records.

    The command also tests whether the states of each bolt form a commutative monoid: neither the order nor the
    grouping of merges changes the result. For example, merge(a, b) must be equal to merge(b, a).

    The command uses the first records of each partition of the topology's topics. It does not call the sinks.

    The exit code is 1 if the command finds a problem. It is also a problem if a spout makes no tuple, or if a bolt
    receives no tuple. The exit code is 3 if a topic does not exist.
    """
    from hmb.hailstorm.checking import check, dead_letters, event_times, late_records
    from hmb.hailstorm.reference import load_topology
    from hmb.hailstorm.runners.topics import SourceTopics

    with errors_as_lines():
        loaded = load_topology(topology)
        loaded.in_order()  # A mistake in the topology is reported before a missing topic.
        SourceTopics(client.servers, loaded, client.keywords.get("security", {}))
        samples = {spout.topic: read(client, spout.topic, records) for spout in loaded.spouts.values()}
        problems = check(loaded, samples, seed)
        late = {} if problems else late_records(loaded, samples)
        dead = {} if problems else dead_letters(loaded, samples)
        times = {} if problems else event_times(loaded, samples)
    if as_json:
        found = {"topology": loaded.name, "records": _count(samples), "problems": problems, "late": late}
        print_json({**found, "dead_letters": dead, "event_times": times})
    elif problems:
        click.echo("\n".join(problems))
    else:
        verdict = f"{loaded.name}: no problem found with {plural(_count(samples), 'record')}"
        click.echo(verdict + _notes(late, dead, times))
    if problems:
        click.get_current_context().exit(ERROR)


def read(client: ClientConfig, topic: str, count: int) -> list[list[ConsumerRecord]]:
    """Return the first `count` records of each partition of a topic, or fewer if the partition is shorter."""
    from hmb.client import Consumer, TopicPartition

    with Consumer(client.servers, topic, until="end", isolation_level="read_committed", **client.keywords) as consumer:
        partitions = sorted(consumer.assignment)
        found: dict[TopicPartition, list[ConsumerRecord]] = {partition: [] for partition in partitions}
        while not consumer.at_end and any(len(records) < count for records in found.values()):
            for record in consumer.poll(1.0):
                log = found[TopicPartition(record.topic, record.partition)]
                if len(log) < count:
                    log.append(record)
        return list(found.values())


def _count(samples: dict[str, list[list[ConsumerRecord]]]) -> int:
    return sum(len(log) for logs in samples.values() for log in logs)


def _notes(late: dict[str, int], dead: dict[str, list[str]], times: dict[str, tuple[int, int]]) -> str:
    """Return the notes that the command prints after "no problem found".

    A note counts the late records. The topology leaves them out, because their event times are too old. Another
    note counts the dead letters: records that the function `convert` cannot convert. A third note gives the
    range of the event times.
    """
    notes = []
    if late:
        notes.append("late records left out: " + ", ".join(f"{name} {count:,}" for name, count in late.items()))
    for name, errors in dead.items():
        notes.append(f"dead letters: {name} {len(errors):,}, the first because `convert` raised {errors[0]}")
    for name, (first, last) in times.items():
        notes.append(f"event times of {name}: {_date(first)} to {_date(last)}")
    return "".join(f"; {note}" for note in notes)


def _date(time: int) -> str:
    """Return the date and time (UTC) of a number of ms since 1970, for example "2026-11-26 01:30".

    If the number is too large for a date of Python, return the number itself as text.
    """
    try:
        return f"{datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{time} ms"
