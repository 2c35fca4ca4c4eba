"""`hmb bench`: the benchmarks, each a module of `hmb.bench` with options of its own."""

import importlib
import sys

import click

SCENARIOS = {
    "thesis": "The thesis' two benchmarks: ten cells, four scenarios, two generations of Kafka.",
    "produce": "Records a second that a producer gets acknowledged.",
    "consume": "Records a second that a consumer reads.",
    "latency": "From the producer through the broker to the consumer, a record at a time.",
    "clients": "Producers and consumers of Python side by side.",
    "start": "From a broker's start to its first acknowledged record.",
    "memory": "What a broker holds, idle and after 10 GB.",
    "connections": "Many connections and partitions at once.",
    "recovery": "A log made good after a kill.",
    "groups": "Many consumer groups: heartbeats, a rebalance, an idle broker.",
    "commits": "Offsets that a broker commits.",
    "fetch": "A fetch of many partitions with nothing new, in full and in a session.",
    "compaction": "The cleaner on a log of 1 GB.",
    "growth": "What grows with connections, partitions, fetches and the log.",
    "threads": "The thesis' thread layout beside a thread a connection.",
    "spark": "Spark reads and writes topics, beside its own Kafka connector.",
    "show": "The tables of runs that were kept.",
    "plot": "Draw the thesis' charts with one's own numbers.",
    "fetch-kafka": "Bring Kafka's jars, by this machine's Maven.",
}


ELSEWHERE = {
    "thesis": "thesis.suite",
    "show": "report.show",
    "plot": "report.plot",
    "fetch-kafka": "peers.fetch",
}


class Scenarios(click.Group):
    """Imports a scenario only when it runs; its options are its own business."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SCENARIOS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SCENARIOS:
            return None
        return _command(cmd_name)


def _command(name: str) -> click.Command:
    passed_on = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

    @click.command(name, help=SCENARIOS[name], context_settings=passed_on, add_help_option=False)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def run(ctx: click.Context, arguments: tuple[str, ...]) -> None:
        module = importlib.import_module(f"hmb.bench.{ELSEWHERE.get(name, f'scenarios.{name}')}")
        sys.argv = [f"hmb bench {name}", *arguments]
        ctx.exit(module.main())

    return run


@click.group(cls=Scenarios, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Measure brokers and clients, HMB's beside Kafka's.

    Each has its own options: hmb bench produce --help. Figures of one machine say little; ratios of runs in turns do.
    """
