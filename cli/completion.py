r"""`hmb completion`: the script that lets a shell complete the words of a command line.

The user runs the script when the shell starts. When the user presses Tab, the script calls `hmb` with the environment
variable `_HMB_COMPLETE`. click then prints the matching words. The functions in `shared/completion.py` provide names
that only a broker knows.

bash divides words at colons and equals signs, so `-b localhost:9092` would reach click as three words. The script for
bash therefore sends the whole line up to the cursor, and click finds the words. bash, however, replaces only the part
of a word after its last colon or equals sign. So the script answers with that part alone. Three examples, in which the
user presses Tab at the end of the line:

    the line                     click completes       bash replaces     the script answers
    hmb consume -b a:1 ev        ev                    ev                events
    hmb topics create t -c cl    cl                    cl                cleanup.policy=
    hmb offsets ev:0 --topic=a   a                     a                 a-topic
"""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

SHELLS = {
    "bash": 'Add to ~/.bashrc:  eval "$(hmb completion bash)"',
    "zsh": 'Add to ~/.zshrc, after compinit:  eval "$(hmb completion zsh)"',
    "fish": "Run once:  hmb completion fish > ~/.config/fish/completions/hmb.fish",
}
COMPLETION_VARIABLE = "_HMB_COMPLETE"  # click derives this name from the name of the command.


@add_completion_class
class WholeLineBashComplete(BashComplete):
    """The completion for bash: it reads the whole line, and answers with the part of a word that bash replaces."""

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
        # The number of characters that bash keeps: the part of the word up to its last colon or equals sign.
        self._kept = max(incomplete.rfind(":"), incomplete.rfind("=")) + 1
        if incomplete.startswith("--"):
            # click returns only the value of the option, without `--option=`. So these characters are already missing
            # from the answer.
            self._kept = max(self._kept - incomplete.find("=") - 1, 0)
        return words, incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type},{item.value[self._kept :] if item.type == 'plain' else item.value}"


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, topics and groups.

    With this script, `hmb consume ev<Tab>` asks the broker for its topics (the broker of -b, if the line has one).
    """
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(f"# {SHELLS[shell]}")
    click.echo(complete(ctx.find_root().command, {}, "hmb", COMPLETION_VARIABLE).source().lstrip())
