"""The subjects of a command: the topics, partitions or groups that it is about.

A subject is an argument, as in `hmb topics describe weather`. In Kafka's tools and kcat it is an option, as in `--topic
weather` and `-t weather`. Each command accepts these options, too, but `--help` does not show them. Several topics can
also be named by a pattern: `hmb topics delete --pattern 'orders.*'`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from .completion import complete_groups, complete_topics
from .errors import NOT_FOUND, CliError
from .parameters import regular_expression, topic_name

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.protocol.errors import KafkaError

Partitions = Iterable[tuple[str, tuple[int, ...] | None]]  # topics, each with its partitions; None: all of them
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def subject(
    noun: str,
    letter: str,
    kind: Callable[[str], Any] = str,
    complete: Any = None,
    *,
    several: bool = False,
    required: bool = True,
) -> Decorator:
    """Add a subject to a command: an argument, and a hidden option with `letter` and `--noun`.

    The command receives the value as the keyword `noun`; with `several` it receives a tuple as the plural of `noun`.
    """
    keyword, metavar = f"{noun}s" if several else noun, noun.upper()
    shown = f"{metavar}..." if several and required else f"[{metavar}]..." if several else metavar

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.argument(
            keyword, nargs=-1 if several else 1, required=False, type=kind, metavar=shown, shell_complete=complete
        )
        @click.option(letter, f"--{noun}", "more", type=kind, multiple=True, hidden=True, shell_complete=complete)
        @functools.wraps(command)
        def run(*arguments: Any, more: tuple[Any, ...], **options: Any) -> Any:
            first = options[keyword]
            given = (*(first if several else () if first is None else (first,)), *more)
            if required and not given:
                raise click.UsageError(f"Missing argument '{metavar}'.")
            if not several and len(given) > 1:
                raise click.UsageError(f"one {noun} at a time: {given[0]} or {given[1]}?")
            options[keyword] = given if several else given[0]
            return command(*arguments, **options)

        return run

    return decorate


topic_argument = subject("topic", "-t", topic_name, complete_topics)
topics_argument = subject("topic", "-t", topic_name, complete_topics, several=True)
optional_topics_argument = subject("topic", "-t", topic_name, complete_topics, several=True, required=False)
topics_or_patterns_argument = subject("topic", "-t", str, complete_topics, several=True, required=False)
group_argument = subject("group", "-G", complete=complete_groups)
groups_argument = subject("group", "-G", complete=complete_groups, several=True)
optional_groups_argument = subject("group", "-G", complete=complete_groups, several=True, required=False)

pattern_option = click.option(
    "-r", "--pattern", "--regex", "is_pattern", is_flag=True, help="TOPICs are regular expressions for whole names."
)


def named_topics(admin: Admin, names: Iterable[str], is_pattern: bool, *, internal: bool = False) -> list[str]:
    """Return the topics of these names, or with `is_pattern` those whose whole name matches one of them.

    A pattern does not match Kafka's internal topics unless `internal` is set. The result has the order of the
    arguments, and the matches of a pattern are in alphabetical order.
    """
    if not is_pattern:
        return [_checked(name) for name in dict.fromkeys(names)]
    expressions = [regular_expression(name) for name in names]
    existing = sorted(topic.name for topic in admin.list_topics(internal=internal))
    return list(dict.fromkeys(name for each in expressions for name in existing if each.fullmatch(name)))


def _checked(name: str) -> str:
    try:
        return topic_name(name)
    except click.BadParameter as error:
        hint = "--pattern accepts regular expressions"
        raise click.BadParameter(f"{error.message}; {hint}", param_hint="'TOPIC'") from None


def no_match(patterns: Iterable[str]) -> CliError:
    """Return the error for patterns that match no topic."""
    return CliError(f"no topic matches {' or '.join(map(repr, patterns))}; `hmb topics list` shows all", NOT_FOUND)


def chosen_partitions(admin: Admin, wanted: Partitions) -> list[TopicPartition]:
    """Return all these partitions, in order. Raises KafkaError for a topic or a partition that does not exist."""
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


def raise_failures(failures: Iterable[KafkaError]) -> None:
    """Raise one KafkaError that names all failures of a command for several subjects.

    Do nothing if no failure occurred.
    """
    from hmb.protocol.errors import KafkaError

    failed = list(failures)
    if failed:
        raise KafkaError(failed[0].code, "; ".join(error.message for error in failed))
