"""The `hmb` command: a group that imports a subcommand when it runs, and ends it with an exit code.

`hmb --help` must answer in 0.1 s, and the broker and the client take longer to import. The table COMMANDS therefore
holds the module and the line of help for each command. The module exposes the click command as `command`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from . import completion  # noqa: F401  # This import registers the completion for bash.
from .shared.errors import INTERRUPTED, report
from .shared.parameters import did_you_mean
from .shared.streams import mute_stdout, prepare_streams


class CommandEntry(NamedTuple):
    """A command in the table: its module below `hmb.cli`, and its line in `hmb --help`."""

    module: str
    help: str


COMMANDS = {
    "broker": CommandEntry("broker", "Run a broker until it is stopped."),
    "demo": CommandEntry("demo", "Show a broker, real data in it, and its log."),
    "produce": CommandEntry("records.produce", "Send lines from standard input to a topic."),
    "consume": CommandEntry("records.consume", "Print the records of topics."),
    "topics": CommandEntry("cluster.topics", "Create, list, describe, alter, trim and delete topics."),
    "groups": CommandEntry("cluster.groups", "Show groups and their lag, reset their offsets, and delete groups."),
    "offsets": CommandEntry("cluster.offsets", "Show the first and last offsets of partitions."),
    "meta": CommandEntry("cluster.meta", "Show brokers, topics and leaders."),
    "configs": CommandEntry("cluster.configs", "Show and change settings of topics, brokers and groups."),
    "faults": CommandEntry("faults", "Make a broker fail, for tests."),
    "dump-log": CommandEntry("disk.dump_log", "Print the contents of a log's files."),
    "index-inspect": CommandEntry("disk.index_inspect", "Print and check the index of a log segment."),
    "decode": CommandEntry("wire.decode", "Explain the bytes of a message."),
    "sniff": CommandEntry("wire.sniff", "Print the messages between clients and a broker."),
    "spark": CommandEntry("spark", "Check what Spark needs; load a topic into Parquet files."),
    "hailstorm": CommandEntry("hailstorm", "Run, watch and check exactly-once stream topologies."),
    "bench": CommandEntry("bench", "Measure brokers and clients, HMB and Apache Kafka."),
    "lab": CommandEntry("lab.commands", "Learn how a broker works: exercises with checks."),
    "profile": CommandEntry("profile", "Store addresses of clusters, and choose one of them."),
    "completion": CommandEntry("completion", "Print the script that completes commands and names with Tab."),
    "help": CommandEntry("help", "Show the help of a command."),
}


class LazyGroup(click.Group):
    """A group that finds its commands in COMMANDS, and reports errors as one line and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            if ctx.resilient_parsing:  # The shell completes an unfinished line.
                return None
            ctx.fail(f"No such command {cmd_name!r}; {did_you_mean(cmd_name, COMMANDS)}")
        module = importlib.import_module(f".{COMMANDS[cmd_name].module}", __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        found = {name: entry for name, entry in COMMANDS.items() if name.startswith(incomplete)}
        return [CompletionItem(name, help=entry.help) for name, entry in found.items()]

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **options: Any
    ) -> Any:
        """Run a command line. In standalone mode, end the process with the exit code."""
        prepare_streams()
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **options)
        try:
            code = super().main(args, standalone_mode=False, **options)
        except click.Abort:  # click turns a Ctrl-C outside of `invoke` into an Abort.
            code = INTERRUPTED
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except (click.ClickException, OSError) as error:  # An OSError comes from printing a help text.
            code = report(error)
            if code is None:
                raise
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:  # The reader of the output has left, as `| head` does.
            mute_stdout()
            return None
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception as error:
            code = report(error)
            if code is None:
                raise
            ctx.exit(code)


@click.group(
    "hmb", cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="hmb", prog_name="hmb")
@click.pass_context
def main(ctx: click.Context) -> None:
    """A Kafka-compatible message broker that you can read.

    First steps: run hmb demo. Then run hmb broker in one terminal, hmb consume and hmb produce in two others.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
