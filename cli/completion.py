r"""`hmb completion`: the shell asks `hmb` what could stand at the cursor.

The script that this prints makes the shell call `hmb` itself when Tab is pressed, with `_HMB_COMPLETE` in its
environment; click answers then, and for names that only a broker knows it calls the functions below. They ask the
broker that -b names in the line so far, wait a second at most and say nothing when it does not answer: a key that was
pressed to save time must not cost any.

bash cuts words at colons and equals signs, so that `-b localhost:9092` reaches click in three words. The script for
it therefore sends the line itself up to the cursor, and leaves it to click to find the words.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from hmb.defaults import DEFAULT_SERVER

if TYPE_CHECKING:
    from hmb.client import Cluster

SHELLS = {
    "bash": 'Add to ~/.bashrc:  eval "$(hmb completion bash)"',
    "zsh": 'Add to ~/.zshrc, after compinit:  eval "$(hmb completion zsh)"',
    "fish": "Run once:  hmb completion fish > ~/.config/fish/completions/hmb.fish",
}
TIMEOUT = 1.0  # seconds for the broker to answer
TOPIC = 2  # a kind of resource

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@add_completion_class
class WholeLineBashComplete(BashComplete):
    """Takes the line up to the cursor, and drops from an answer what bash keeps: all up to the last `:` or `=`."""

    source_template = r"""
%(complete_func)s() {
    local IFS=$'\n' type value
    COMPREPLY=()
    for completion in $(HMB_LINE="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete $1 2>/dev/null); do
        IFS=, read -r type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            *) COMPREPLY+=("$value"); [[ $value == *= ]] && compopt -o nospace ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["HMB_LINE"]
        words = split_arg_string(line)[1:]
        incomplete = "" if line.endswith((" ", "\t")) or not words else words.pop()
        self._kept = max(incomplete.rfind(":"), incomplete.rfind("=")) + 1
        if incomplete.startswith("--"):
            self._kept = max(self._kept - incomplete.find("=") - 1, 0)  # click answers with the option's value alone
        return words, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{item.value[self._kept :] if item.type == 'plain' else item.value}"


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def command(shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, topics and groups.

    Without it, Tab knows nothing of hmb. With it, `hmb consume ev<Tab>` asks the broker (-b, if the line has one).
    """
    from .main import COMPLETION_VARIABLE, main

    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(f"# {SHELLS[shell]}")
    click.echo(complete(main, {}, "hmb", COMPLETION_VARIABLE).source().lstrip())


def _from_broker(names: "Callable[[Cluster, click.Context], Iterable[str]]") -> Completion:
    """A function for `shell_complete=`: those of a broker's names that begin as the word does."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from hmb.protocol.errors import KafkaError

        chosen = set(ctx.params.get(param.name or "") or ()) if param.nargs == -1 or param.multiple else set()
        try:
            with _cluster(ctx) as cluster:
                found = sorted(names(cluster, ctx))
        except (OSError, KafkaError, ValueError):
            return []
        return [CompletionItem(name) for name in found if name.startswith(incomplete) and name not in chosen]

    return complete


@contextmanager
def _cluster(ctx: click.Context) -> "Iterator[Cluster]":
    from hmb.client import Cluster

    cluster = Cluster(ctx.params.get("servers") or DEFAULT_SERVER, timeout=TIMEOUT)
    try:
        yield cluster
    finally:
        cluster.close()


def _topics(cluster: "Cluster", ctx: click.Context) -> Iterable[str]:
    return [topic.name for topic in cluster.topics()]


def _partitions(cluster: "Cluster", ctx: click.Context) -> Iterable[str]:
    """Of all topics in the line, wherever they stand: click sorts no words when an option lacks its value."""
    values = [value if isinstance(value, tuple) else (value,) for value in ctx.params.values()]
    words = {word for words in (*values, ctx.args) for word in words if isinstance(word, str)}
    return {str(number) for topic in cluster.topics() if topic.name in words for number in topic.leaders}


def _groups(cluster: "Cluster", ctx: click.Context) -> Iterable[str]:
    from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

    cluster.topics()  # and with them all brokers, each of which knows the groups that it coordinates
    found: set[str] = set()
    for node in cluster.nodes.values():
        with cluster.connect(node) as connection:
            response: ListGroupsResponse = connection.send(ListGroupsRequest())
            found |= {group.group_id for group in response.groups}
    return found


def _topic_configs(cluster: "Cluster", ctx: click.Context) -> Iterable[str]:
    """What any topic can be set to: each tells the names of all settings, whether it has them itself or not."""
    from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

    topic = cluster.topics()[:1]
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=TOPIC, configuration_keys=None)
    if not topic:
        return []
    resource.resource_name = topic[0].name
    response: DescribeConfigsResponse = cluster.send(DescribeConfigsRequest(resources=[resource]))
    return [config.name for result in response.results for config in result.configs]


complete_topics = _from_broker(_topics)
complete_partitions = _from_broker(_partitions)
complete_groups = _from_broker(_groups)
complete_config_names = _from_broker(_topic_configs)
complete_configs = _from_broker(lambda cluster, ctx: [f"{name}=" for name in _topic_configs(cluster, ctx)])
