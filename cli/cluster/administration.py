"""What the commands share that look at a cluster and change it: how they reach it, and how they name partitions.

`@admin_options` gives a command `-b`, `-X`, `--command-config` (Kafka's tools have it by that name) and `--json`, and
hands it the first three as one `Target`, from which it gets an `hmb.Admin`.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..completion import complete_groups, complete_topics
from ..shared.arguments import topic_name
from ..shared.common import NewPath, bootstrap_option, json_option, name_value
from ..shared.patience import patience_with

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.protocol.errors import KafkaError


Partitions = Iterable[tuple[str, tuple[int, ...] | None]]  # of these topics; None: all


@dataclass(frozen=True)
class Target:
    """A cluster to work on."""

    servers: str
    keywords: Mapping[str, Any]

    @contextmanager
    def admin(self) -> "Iterator[Admin]":
        """For a request or a few; says what it waits for when that takes long."""
        with patience_with(self.servers), self.unwatched_admin() as admin:
            yield admin

    def unwatched_admin(self) -> "Admin":
        """For who stays longer."""
        from hmb.client import Admin

        return Admin(self.servers, **self.keywords)


def admin_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a command that takes `target: Target` and `as_json: bool`."""

    @bootstrap_option
    @click.option(
        "--command-config", "config", type=NewPath(), metavar="FILE", help="A client.properties file as Kafka has."
    )
    @click.option(
        "-X", "settings", type=name_value, multiple=True, metavar="NAME=VALUE", help="A setting of the client."
    )
    @json_option
    @functools.wraps(command)
    def run(
        *arguments: Any, servers: str, config: str | None, settings: tuple[tuple[str, str], ...], **options: Any
    ) -> None:
        from hmb.client.settings import COMMON

        from ..shared.client_config import client_keywords

        keywords = client_keywords(COMMON, config, settings)
        named = keywords.pop("bootstrap_servers", servers)
        if click.get_current_context().get_parameter_source("servers") is ParameterSource.DEFAULT:
            servers = named
        command(*arguments, target=Target(servers, keywords), **options)

    return run


def named(
    what: str,
    letter: str,
    kind: Callable[[str], Any] = str,
    complete: Any = None,
    *,
    several: bool = False,
    needed: bool = True,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """What a command is about: its argument, or as kcat and Kafka's tools have it, an option that help does not show.

    `what` is given to the command under this name, several of them as a tuple under its plural.
    """
    keyword, metavar = f"{what}s" if several else what, what.upper()
    shown = f"{metavar}..." if several and needed else f"[{metavar}]..." if several else metavar

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @click.argument(
            keyword, nargs=-1 if several else 1, required=False, type=kind, metavar=shown, shell_complete=complete
        )
        @click.option(letter, f"--{what}", "more", type=kind, multiple=True, hidden=True, shell_complete=complete)
        @functools.wraps(command)
        def run(*arguments: Any, more: tuple[Any, ...], **options: Any) -> None:
            first = options[keyword]
            given = (*(first if several else () if first is None else (first,)), *more)
            if needed and not given:
                raise click.UsageError(f"Missing argument '{metavar}'.")
            if not several and len(given) > 1:
                raise click.UsageError(f"one {what} at a time: {given[0]} or {given[1]}?")
            options[keyword] = given if several else given[0]
            command(*arguments, **options)

        return run

    return decorate


topic_argument = named("topic", "-t", topic_name, complete_topics)
topics_argument = named("topic", "-t", topic_name, complete_topics, several=True)
group_argument = named("group", "-G", complete=complete_groups)
groups_argument = named("group", "-G", complete=complete_groups, several=True)


def topic_partitions(text: str) -> tuple[str, tuple[int, ...] | None]:
    """The type of an option: a topic, or TOPIC:0,1,2; None for all its partitions."""
    name, colon, numbers = text.partition(":")
    topic_name(name)
    if not colon:
        return name, None
    try:
        return name, tuple(dict.fromkeys(_number(part) for part in numbers.split(",")))
    except ValueError:
        raise click.BadParameter(f"{text!r}: write TOPIC or TOPIC:0,1,2") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError
    return int(text)


def chosen_partitions(admin: "Admin", wanted: Partitions) -> "list[TopicPartition]":
    """All of these partitions, in order; KafkaError for a topic or a partition that is not there."""
    from hmb.client.metadata import no_such_partition
    from hmb.protocol.topics import TopicPartition

    chosen = []
    for name, numbers in wanted:
        topic = admin.cluster.topic(name)
        for number in topic.leaders if numbers is None else numbers:
            if number not in topic.leaders:
                raise no_such_partition(topic, number)
            chosen.append(TopicPartition(name, number))
    return list(dict.fromkeys(chosen))


def raise_failures(failures: "Iterable[KafkaError]") -> None:
    """End a command that did what it could for several things: all that went wrong in one line."""
    from hmb.protocol.errors import KafkaError

    failed = list(failures)
    if failed:
        raise KafkaError(failed[0].code, "; ".join(error.message for error in failed))
