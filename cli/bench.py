"""`hmb bench`: the benchmarks.

Each subcommand of `hmb bench` is a module in the package `hmb.bench`. The command imports a module only when the user
runs its subcommand.
"""

from __future__ import annotations

from typing import Any

import click

from .lazy_group import CommandEntry, LazyGroup
from .shared.interruption import sigterm_as_ctrl_c

COMMANDS = {  # the modules are in `hmb.bench`
    "thesis": CommandEntry("thesis.suite", "Repeat the thesis's two benchmarks, with two generations of Kafka."),
    "produce": CommandEntry("scenarios.produce", "Records per second of a producer, CPU time per record."),
    "consume": CommandEntry("scenarios.consume", "Records per second of a consumer, CPU time per record."),
    "latency": CommandEntry("scenarios.latency", "The time of one record from producer to consumer."),
    "clients": CommandEntry("scenarios.clients", "Producers and consumers of Python."),
    "start": CommandEntry("scenarios.start", "From a broker's start to its first acknowledged record."),
    "memory": CommandEntry("scenarios.memory", "Memory of a broker, idle and after 10 GB; of a producer."),
    "connections": CommandEntry("scenarios.connections", "Many connections and partitions."),
    "recovery": CommandEntry("scenarios.recovery", "The start of a broker after a kill."),
    "groups": CommandEntry("scenarios.groups", "Many consumer groups: heartbeats, a rebalance, CPU time."),
    "commits": CommandEntry("scenarios.commits", "Offset commits per second."),
    "fetch": CommandEntry("scenarios.fetch", "A fetch of many partitions, in full and in a session."),
    "share": CommandEntry("share", "Members of a share group that read a topic as a queue."),
    "mirror": CommandEntry("mirror", "A copy from broker to broker: HMB's mirror, MirrorMaker 2."),
    "compaction": CommandEntry("scenarios.compaction", "Compaction of a log of 1 GB."),
    "growth": CommandEntry("scenarios.growth", "What grows with connections, partitions, fetches, the log."),
    "testing": CommandEntry("testing", "The embedded broker in tests, with the goals."),
    "ui": CommandEntry("ui", "The page and the metrics of a broker, with the goals."),
    "security": CommandEntry("security.command", "What TLS, logins and ACLs cost, with the goals."),
    "threads": CommandEntry("scenarios.threads", "The thesis's layout of threads, and HMB's."),
    "spark": CommandEntry("scenarios.spark", "Spark's data sources: HMB's, and the Kafka connector."),
    "hailstorm": CommandEntry("streams.hailstorm", "Word count: Hailstorm, and other stream processors."),
    "show": CommandEntry("report.show", "Print the tables of stored runs."),
    "plot": CommandEntry("report.plot", "Draw charts of stored runs."),
    "fetch-kafka": CommandEntry("peers.fetch", "Fetch Kafka's jars with Maven."),
}


class BenchGroup(LazyGroup):
    """The command group `hmb bench`, whose subcommands run the benchmarks."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a benchmark. If Ctrl-C or SIGTERM ends the benchmark early, stop the brokers that it has started."""
        with sigterm_as_ctrl_c():
            return super().invoke(ctx)


@click.group(
    cls=BenchGroup,
    package="hmb.bench",
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def command() -> None:
    """Measure HMB's broker and clients, and compare them with Kafka's, on this machine.

    HMB and Kafka 4.3.0 each run once in every round. The ratio of a round is HMB's result divided by Kafka's
    result. The tables show the median, the minimum and the maximum of the ratios.

    Each command has its own options: see, for example, hmb bench produce --help. The results of every run are
    stored in the folder hmb-bench/.
    """
