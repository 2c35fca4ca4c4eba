"""The `hmb` command: a group that imports a subcommand only when it runs.

`hmb --help` must answer at once, so nothing of the broker or the client is imported here: the table below holds each
command's module and its one line of help; the module exposes it as `command`.
"""

import difflib
import importlib
import os
import sys
from typing import Any

import click
from click.shell_completion import CompletionItem

from .shared.common import report
from .shared.streams import mute_stdout, prepare_streams

COMMANDS = {
    "broker": ("broker", "Run a broker until it is stopped."),
    "demo": ("demo", "See it all: a broker, real data through it, its log."),
    "produce": ("records.produce", "Send lines from standard input to a topic."),
    "consume": ("records.consume", "Print the records of a topic."),
    "topics": ("cluster.topics", "Create, list, describe, alter, trim and delete topics."),
    "groups": ("cluster.groups", "Show groups and their lag; reset and delete them."),
    "offsets": ("cluster.offsets", "Show where partitions begin, end, or are at a time."),
    "meta": ("cluster.meta", "Show brokers, topics, and who leads what."),
    "configs": ("cluster.configs", "Show and change settings of topics, brokers, groups."),
    "dump-log": ("disk.dump_log", "Print what is in the files of a log."),
    "index-inspect": ("disk.index_inspect", "Look into the index of a log segment."),
    "decode": ("wire.decode", "Show what the bytes of a message mean."),
    "sniff": ("wire.sniff", "Print what clients and a broker say to each other."),
    "spark": ("spark", "See whether Spark will run; load a topic into Parquet."),
    "bench": ("bench", "Measure brokers and clients, HMB's beside Kafka's."),
    "notebooks": ("notebooks", "Copy the notebooks on Spark out, for Jupyter."),
    "completion": ("completion", "Let the shell complete commands, topics and groups."),
}
COMPLETION_VARIABLE = "_HMB_COMPLETE"  # which click makes of the command's name


class LazyGroup(click.Group):
    """Finds its commands in COMMANDS, and turns the mistakes they raise into one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:  # a line that is being completed: nobody has asked for it yet
                return None
            near = difflib.get_close_matches(cmd_name, COMMANDS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {cmd_name!r}; {hint}")
        module = importlib.import_module(f".{COMMANDS[cmd_name][0]}", __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=text) for name, (_, text) in COMMANDS.items() if name.startswith(incomplete)]

    def main(self, *arguments: Any, **options: Any) -> Any:
        prepare_streams()
        if COMPLETION_VARIABLE in os.environ:
            from . import completion  # noqa: F401  # click asks for its class for bash
        try:
            return super().main(*arguments, **options)
        except OSError as error:  # of a text of help, for which nothing is invoked
            code = report(error)
            if code is None:
                raise
            sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:  # the reader has seen enough: `| head`
            mute_stdout()
            return None
        except KeyboardInterrupt:
            ctx.exit(130)
        except Exception as error:
            code = report(error)
            if code is None:
                raise
            ctx.exit(code)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hmb", prog_name="hmb")
@click.pass_context
def main(ctx: click.Context) -> None:
    """A Kafka-compatible message broker that you can read.

    The first steps: hmb demo. Then hmb broker in one terminal, hmb produce and hmb consume in others.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
