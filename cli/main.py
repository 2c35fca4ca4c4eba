"""The command `hmb`: a group of subcommands. It imports a subcommand only when the user runs that subcommand.

`hmb --help` must print its text in 0.1 s, but an import of the broker or the client takes longer. `hmb --help`
therefore imports no subcommand. The table COMMANDS contains the module of each subcommand, and its line in the help.

When a subcommand raises an error, `hmb` prints one line and ends the process with an exit code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from . import completion  # noqa: F401  # This import registers the completion for bash.
from .lazy_group import CommandEntry, LazyGroup
from .shared.errors import INTERRUPTED, report
from .shared.parameters import did_you_mean
from .shared.streams import mute_stdout, prepare_streams

COMMANDS = {  # the modules are in `hmb.cli`
    "broker": CommandEntry("broker", "Run a broker until it is stopped."),
    "demo": CommandEntry("demo", "Start a broker, send real data to it, and show its log."),
    "produce": CommandEntry("records.produce", "Send lines from standard input to a topic."),
    "consume": CommandEntry("records.consume", "Print the records of topics."),
    "topics": CommandEntry("cluster.topics", "Create, list, describe, alter, trim and delete topics."),
    "groups": CommandEntry("cluster.groups", "Show groups and their lag, reset their offsets, and delete groups."),
    "mirror": CommandEntry("mirror.command", "Copy topics from one cluster to another one."),
    "offsets": CommandEntry("cluster.offsets", "Show the first and last offsets of partitions."),
    "meta": CommandEntry("cluster.meta", "Show brokers, topics and leaders."),
    "state": CommandEntry("monitoring.state", "Print what a running broker knows: segments, groups, requests."),
    "top": CommandEntry("monitoring.top", "Follow a running broker: rates, lag, requests."),
    "ui": CommandEntry("monitoring.ui", "Open the page that shows a running broker."),
    "backup": CommandEntry("backup.command", "Copy topics and group offsets to files."),
    "restore": CommandEntry("backup.restore", "Copy topics and group offsets from a backup to a broker."),
    "configs": CommandEntry("cluster.configs", "Show and change settings of topics, brokers and groups."),
    "users": CommandEntry("security.users", "Create, list and delete users, and change their passwords."),
    "tokens": CommandEntry("security.tokens", "Create, renew, expire and list delegation tokens."),
    "acls": CommandEntry("security.acls", "List, add and remove ACLs: who may do what."),
    "quotas": CommandEntry("security.quotas", "List, set and delete quotas: limits for users and clients."),
    "certs": CommandEntry("security.certs", "Make certificates for tests of TLS."),
    "faults": CommandEntry("faults", "Make a broker fail, for tests."),
    "dump-log": CommandEntry("disk.dump_log", "Print the contents of a log's files."),
    "index-inspect": CommandEntry("disk.index_inspect", "Print and check the index of a log segment."),
    "decode": CommandEntry("wire.decode", "Explain the bytes of a message."),
    "sniff": CommandEntry("wire.sniff", "Print the messages between clients and a broker."),
    "spark": CommandEntry("spark", "Check whether Spark can run; load a topic into Parquet files."),
    "hailstorm": CommandEntry("hailstorm", "Run, watch and check exactly-once stream topologies."),
    "bench": CommandEntry("bench", "Measure brokers and clients, HMB and Apache Kafka."),
    "lab": CommandEntry("lab.commands", "Learn how a broker works: exercises with checks."),
    "profile": CommandEntry("profile", "Store addresses of clusters, and choose one of them."),
    "completion": CommandEntry("completion", "Print the script that completes commands and names with Tab."),
    "help": CommandEntry("help", "Show the help of a command."),
}


class MainGroup(LazyGroup):
    """The group of all commands. If a command raises an error, the group prints one line and ends the process."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        # After the user presses Tab, the name of the command can be unfinished. So an unknown name is then not an
        # error. click sets `resilient_parsing` when it looks for completions.
        if cmd_name not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"No such command {cmd_name!r}; {did_you_mean(cmd_name, COMMANDS)}")
        return super().get_command(ctx, cmd_name)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **options: Any
    ) -> Any:
        """Run the command with these arguments. In click's standalone mode, end the process with the exit code."""
        prepare_streams()
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **options)
        try:
            code = super().main(args, standalone_mode=False, **options)
        except click.Abort:  # Outside of `invoke`, click turns a KeyboardInterrupt into an Abort.
            code = INTERRUPTED
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except (click.ClickException, OSError) as error:  # Printing a help text can raise OSError.
            code = report(error)
            if code is None:
                raise
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:  # No program reads the output any more, for example after `| head`.
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
    "hmb",
    cls=MainGroup,
    package=__package__,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="hmb", prog_name="hmb")
@click.pass_context
def main(ctx: click.Context) -> None:
    """A Kafka-compatible message broker with source code that is easy to read.

    First steps: run hmb demo. After that, run hmb broker in one terminal, and hmb consume and hmb produce in two other
    terminals.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
