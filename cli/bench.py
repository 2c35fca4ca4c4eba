"""`hmb bench`: the benchmarks.

Each subcommand of `hmb bench` is a module in the package `hmb.bench`. The command imports a module only when the user
runs its subcommand.
"""

from __future__ import annotations

import importlib
from typing import Any

import click
from click.shell_completion import CompletionItem

from .shared.interruption import sigterm_as_ctrl_c

COMMANDS = {  # name: (module in hmb.bench, line of `hmb bench --help`)
    "thesis": ("thesis.suite", "Repeat the thesis's two benchmarks, with two generations of Kafka."),
    "produce": ("scenarios.produce", "Records per second of a producer, CPU time per record."),
    "consume": ("scenarios.consume", "Records per second of a consumer, CPU time per record."),
    "latency": ("scenarios.latency", "The time of one record from producer to consumer."),
    "clients": ("scenarios.clients", "Producers and consumers of Python."),
    "start": ("scenarios.start", "From a broker's start to its first acknowledged record."),
    "memory": ("scenarios.memory", "Memory of a broker, idle and after 10 GB; of a producer."),
    "connections": ("scenarios.connections", "Many connections and partitions."),
    "recovery": ("scenarios.recovery", "The start of a broker after a kill."),
    "groups": ("scenarios.groups", "Many consumer groups: heartbeats, a rebalance, CPU time."),
    "commits": ("scenarios.commits", "Offset commits per second."),
    "fetch": ("scenarios.fetch", "A fetch of many partitions, in full and in a session."),
    "share": ("share", "Members of a share group that read a topic as a queue."),
    "mirror": ("mirror", "A copy from broker to broker: HMB's mirror, MirrorMaker 2."),
    "compaction": ("scenarios.compaction", "Compaction of a log of 1 GB."),
    "growth": ("scenarios.growth", "What grows with connections, partitions, fetches, the log."),
    "testing": ("testing", "The embedded broker in tests, with the goals."),
    "ui": ("ui", "The page and the metrics of a broker, with the goals."),
    "security": ("security.command", "What TLS, logins and ACLs cost, with the goals."),
    "threads": ("scenarios.threads", "The thesis's layout of threads, and HMB's."),
    "spark": ("scenarios.spark", "Spark's data sources: HMB's, and the Kafka connector."),
    "hailstorm": ("streams.hailstorm", "Word count: Hailstorm, and other stream processors."),
    "show": ("report.show", "Print the tables of stored runs."),
    "plot": ("report.plot", "Draw charts of stored runs."),
    "fetch-kafka": ("peers.fetch", "Fetch Kafka's jars with Maven."),
}


class BenchGroup(click.Group):
    """The group of the benchmark commands.

    The group lists all commands. It imports the module of a command only when the user runs that command.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run a benchmark. If Ctrl-C or SIGTERM ends the benchmark early, stop the brokers that it has started."""
        with sigterm_as_ctrl_c():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"hmb.bench.{COMMANDS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete the name of a command from the table COMMANDS.

        click's own method would import the module of every command.
        """
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]


@click.group(cls=BenchGroup, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Measure HMB's broker and clients, and compare them with Kafka's, on this machine.

    HMB and Kafka 4.3.0 run alternately. Each round compares one run of HMB with one run of Kafka. The result is a
    ratio: the median of all rounds, and the range. Each command has its own options, for example: hmb bench produce
    --help. The results of every run are kept in the folder hmb-bench/.
    """
