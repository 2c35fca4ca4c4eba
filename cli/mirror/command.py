"""`hmb mirror`: copy topics, settings and the offsets of groups from one cluster to another one."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from ..shared.client_options import ClientConfig, admin_settings, client_keywords
from ..shared.errors import NOT_FOUND, UNREACHABLE, CliError
from ..shared.interruption import SIGNALS
from ..shared.output import json_option, plural, print_json
from ..shared.parameters import NewPath, regular_expression, servers

if TYPE_CHECKING:
    from hmb.client import Admin
    from hmb.mirror.names import Aliases
    from hmb.mirror.session import Mirror, MirrorSettings


def aliases(text: str) -> Aliases:
    """Parse the names of two clusters, for example `east:west`. Raises click.BadParameter."""
    from hmb.mirror.names import Aliases

    source, _, target = text.partition(":")
    for name in (source, target):
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", name):
            raise click.BadParameter(f"{text!r} does not name two clusters; write for example east:west")
    if source == target:
        raise click.BadParameter(f"{text!r}: the two clusters need different names")
    return Aliases(source, target)


@click.command()
@click.option("--from", "source", type=servers, required=True, metavar="HOST:PORT", help="The cluster to copy from.")
@click.option("--to", "target", type=servers, required=True, metavar="HOST:PORT", help="The cluster to copy to.")
@click.option("--from-config", type=NewPath(), metavar="FILE", help="A client.properties file for the source.")
@click.option("--to-config", type=NewPath(), metavar="FILE", help="A client.properties file for the target.")
@click.option(
    "--topics", type=regular_expression, default=".*", show_default=True, metavar="REGEX",
    help="Copy only topics whose whole names match REGEX.",
)
@click.option(
    "--exclude", type=regular_expression, metavar="REGEX", help="Do not copy topics whose whole names match REGEX."
)
@click.option(
    "--groups", type=regular_expression, default=".*", show_default=True, metavar="REGEX",
    help="Copy the offsets only of groups whose whole names match REGEX.",
)
@click.option("--once", is_flag=True, help="Copy the records that exist now, and then stop.")
@click.option("--transactions", is_flag=True, help="Copy each record exactly once: use transactions at the target.")
@click.option("--group", metavar="NAME", help="The group at the target that stores the positions of the mirror.")
@click.option(
    "--mm2", "aliases", type=aliases, metavar="SOURCE:TARGET",
    help="Use the topic names and the internal topics of MirrorMaker 2. SOURCE and TARGET are names that you choose "
    "for the two clusters. The copy of the topic orders has the name SOURCE.orders.",
)
@json_option
def command(**options: Any) -> None:
    """Copy topics from one cluster to another: records, settings, partitions, and the offsets of groups.

    Without --once, the mirror copies new records and new topics until Ctrl-C. You can stop the mirror at any time.
    After the next start, it continues where it stopped.

    The copied records keep their partitions, keys, values, headers and timestamps.

    The records also keep their offsets if the source partition starts at offset 0 and has no gaps, if the target
    partition is empty before the first start, and if you do not use --transactions. In all other cases, the records
    get other offsets, and the mirror translates the committed offsets of groups.
    """
    from rich.console import Console

    from hmb.client.connection import ConnectionFailed
    from hmb.mirror.errors import MirrorError
    from hmb.mirror.session import Mirror

    from .display import MirrorDisplay, live_on, print_partitions

    console = Console(stderr=True)
    as_json = options["as_json"]
    with ExitStack() as stack:
        is_live = sys.stderr.isatty() and not as_json
        live = stack.enter_context(live_on(console)) if is_live else None
        mirror = Mirror(
            _admin(options, "source", "from_config"),
            _admin(options, "target", "to_config"),
            _settings(options),
            say=lambda line: console.print(line, soft_wrap=True, markup=False, highlight=False),
            observe=lambda: display.update(),
        )
        display = MirrorDisplay(mirror, as_json=as_json, live=live, interval=0.25 if live else 1.0)
        stack.enter_context(_stopping(mirror))
        try:
            mirror.run()
        except MirrorError as error:
            raise CliError(str(error), NOT_FOUND if "no topic matches" in str(error) else 1) from error
        except ConnectionFailed as error:
            raise CliError(f"{error}; check --from and --to", UNREACHABLE) from error
    if as_json:
        print_partitions(mirror)
        print_json({"type": "end"} | display.summary())
    else:
        _print_summary(mirror, display.summary())


def _admin(options: dict[str, Any], side: str, config: str) -> partial[Admin]:
    """Return a function that creates an `Admin` client for the source cluster or the target cluster.

    `side` and `config` are the keys in `options` for the cluster's address and for its configuration file. The
    client does not use the current profile, because a profile describes only one cluster.
    """
    keywords = client_keywords(admin_settings(), options[config], (), with_profile=False)
    keywords.pop("bootstrap_servers", None)
    return partial(ClientConfig(options[side], keywords).unwatched_admin)


def _settings(options: dict[str, Any]) -> MirrorSettings:
    from hmb.mirror.names import TopicChoice
    from hmb.mirror.session import MirrorSettings

    return MirrorSettings(
        choice=TopicChoice(options["topics"], options["exclude"], options["aliases"]),
        groups=options["groups"],
        group=options["group"],
        is_once=options["once"],
        is_transactional=options["transactions"],
    )


@contextmanager
def _stopping(mirror: Mirror) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM stop the mirror cleanly. A second signal interrupts the mirror at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        mirror.stop()
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_summary(mirror: Mirror, summary: dict[str, Any]) -> None:
    kept = sum(it.keeps_offsets for it in mirror.partitions.values())
    click.echo(
        f"{summary['records']:,} records in {plural(len(mirror.partitions), 'partition')}, "
        f"{summary['records_per_second']:,} records/s, lag {summary['lag']:,}; offsets kept in "
        f"{plural(kept, 'partition')}; {plural(len(mirror.group_offsets), 'offset')} of groups",
        err=True,
    )
