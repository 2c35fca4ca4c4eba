"""`hmb help consume`: print the same help as `hmb consume --help`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from .shared.parameters import did_you_mean


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    return ctx.find_root().command.shell_complete(ctx, incomplete)


@click.command()
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_complete)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, for example: hmb help consume, or hmb help topics create."""
    context = ctx.find_root()
    for word in words:
        group = context.command
        if not isinstance(group, click.Group):
            raise click.UsageError(f"{context.command_path} has no subcommands")
        found = group.get_command(context, word)
        if found is None:
            raise click.UsageError(
                f"{context.command_path} has no command {word!r}; {did_you_mean(word, group.list_commands(context))}"
            )
        context = click.Context(found, info_name=word, parent=context)
    click.echo(context.get_help())
