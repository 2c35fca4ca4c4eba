"""Completes the names of topics, partitions, groups and settings on the command line.

Only a broker knows its topics, partitions, groups and settings, so this module asks a broker for their names.

When the user presses Tab, the shell starts `hmb`, and click calls one of the functions in this module. The function
gets the unfinished line, and asks the broker that this line names. While it waits for the response, the user cannot
type. The function therefore waits at most one second. If no broker responds, it returns no names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from .profiles import default_servers

if TYPE_CHECKING:
    from hmb.client import Admin

TIMEOUT = 1.0  # the maximum number of seconds to wait for the broker's response

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]
Names = Callable[["Admin", click.Context], Iterable[str]]


def _from_broker(names: Names) -> Completion:
    """Return a function for click's argument `shell_complete`.

    The returned function gets names from a broker, and returns those that begin with the unfinished word.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from hmb.client import Admin
        from hmb.protocol.errors import KafkaError

        chosen = set(ctx.params.get(param.name or "") or ()) if param.nargs == -1 or param.multiple else set()
        try:
            with Admin(ctx.params.get("servers") or default_servers(), request_timeout=TIMEOUT) as admin:
                found = sorted(names(admin, ctx))
        except (OSError, KafkaError, ValueError, click.UsageError):
            return []
        return [CompletionItem(name) for name in found if name.startswith(incomplete) and name not in chosen]

    return complete


def _topics(admin: Admin, _ctx: click.Context) -> Iterable[str]:
    return [topic.name for topic in admin.list_topics(internal=True)]


def _partitions(admin: Admin, ctx: click.Context) -> Iterable[str]:
    """Return the partition numbers of each topic whose name is a word in the unfinished command line.

    The line is unfinished, so click does not know which word is the topic. The function therefore compares
    every word with the names of the broker's topics.
    """
    values = [value if isinstance(value, tuple) else (value,) for value in ctx.params.values()]
    words = {word for words in (*values, ctx.args) for word in words if isinstance(word, str)}
    return {str(number) for topic in admin.list_topics() if topic.name in words for number in topic.leaders}


def _groups(admin: Admin, _ctx: click.Context) -> Iterable[str]:
    return [group.group_id for group in admin.list_groups()]


def _topic_settings(admin: Admin, _ctx: click.Context) -> Iterable[str]:
    """Return the names of all settings of topics.

    The names are the same for all topics, so one request about the first topic is enough.
    """
    from hmb.client.admin import ConfigResource, ResourceType, raised

    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in admin.list_topics(internal=True)[:1]]
    return [name for described in admin.describe_configs(resources).values() for name in raised(described)]


complete_topics = _from_broker(_topics)
complete_partitions = _from_broker(_partitions)
complete_groups = _from_broker(_groups)
complete_setting_names = _from_broker(_topic_settings)
complete_settings = _from_broker(lambda admin, ctx: [f"{name}=" for name in _topic_settings(admin, ctx)])
