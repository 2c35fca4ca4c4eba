"""Arguments that name the topics or the groups that a command shows or changes.

In `hmb topics describe weather`, the argument `weather` names the topic. This module calls such an argument a subject.
In Kafka's tools and in kcat, the topic is an option: `--topic weather` or `-t weather`. The commands of `hmb` also
accept these options, but `--help` does not show them. A pattern can name several topics: `hmb topics delete --pattern
'orders.*'`.
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

Partitions = Iterable[tuple[str, tuple[int, ...] | None]]  # (topic, partitions); None means all partitions of the topic
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
    """Return a decorator that adds an argument to a command, for example the name of a topic.

    For example, if `noun` is `topic` and `letter` is `-t`, a user can write the topic as an argument, or with the
    option `-t` or `--topic`. The help text of the command shows only the argument.

    The decorated function receives the value as the keyword argument `topic`. If `several` is true, the function
    receives a tuple of values as the keyword argument `topics`.
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
                raise click.UsageError(f"name only one {noun}, not {given[0]} and {given[1]}")
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

internal_option = click.option(
    "-i", "--internal", is_flag=True, help="Without TOPICS, also show Kafka's internal topics."
)
pattern_option = click.option(
    *("-r", "--pattern", "--regex", "is_pattern"),
    is_flag=True,
    help="Each TOPIC is a regular expression that must match the whole name of a topic.",
)


def named_topics(admin: Admin, names: Iterable[str], is_pattern: bool, *, internal: bool = False) -> list[str]:
    """Return the topics in `names`. If `is_pattern` is true, return the topics whose whole name matches one of `names`.

    A pattern matches Kafka's internal topics only if `internal` is true. The result has the order of `names`. The
    topics that match the same pattern are in alphabetical order.
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
    """Return the CliError for patterns that match no topic."""
    return CliError(f"no topic matches {' or '.join(map(repr, patterns))}; `hmb topics list` shows all", NOT_FOUND)


def chosen_partitions(admin: Admin, wanted: Partitions) -> list[TopicPartition]:
    """Return the wanted partitions in the order of `wanted`, without duplicates.

    Raises KafkaError for a topic or a partition that does not exist.
    """
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
    """If a command has failures, raise one KafkaError whose message names all of them.

    If `failures` is empty, do nothing.
    """
    from hmb.protocol.errors import KafkaError

    failed = list(failures)
    if failed:
        raise KafkaError(failed[0].code, "; ".join(error.message for error in failed))
