"""`hmb completion`: print the script with which a shell completes the words of a command line.

The user's shell runs the script of `hmb completion` when the shell starts. When the user presses Tab, the script calls
`hmb` with the environment variable `_HMB_COMPLETE`. If this variable is set, click runs no command, but prints the
words that can complete the line. Some words, such as the names of topics, are known only to a broker. The functions in
`shared/completion.py` ask the broker for these words.

bash divides a line into words at spaces, colons and equals signs, so it would pass `localhost:9092` to
click as three words. To avoid this, the script for bash passes the whole line up to the cursor, and click
divides the line at spaces.

When bash completes a word, it replaces only the text after the last colon or equals sign. `hmb` therefore
prints only the new text for this part, not the whole word. In these three examples, the user presses Tab at
the end of the line:
    the line                     bash replaces   hmb prints        the completed line
    hmb groups describe team:re  re              readers           hmb groups describe team:readers
    hmb topics create t -c cl    cl              cleanup.policy=   hmb topics create t -c cleanup.policy=
    hmb offsets ev:0 --topic=a   a               a-topic           hmb offsets ev:0 --topic=a-topic
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
COMPLETION_VARIABLE = "_HMB_COMPLETE"  # click makes this name from the name `hmb`.


@add_completion_class
class WholeLineBashComplete(BashComplete):
    """The completion for bash: it reads the line up to the cursor, and prints the completed words.

    When bash completes a word with a colon or an equals sign, it keeps the text up to the last of these characters, and
    replaces only the rest. The class therefore prints only the rest of each completed word. For example, bash keeps
    `name=` of the word `name=va`, and the class prints `value`.
    """

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
        # Bash replaces only the text after the last `:` or `=`. For `localhost:90`, `_kept` is 10, the length of
        # `localhost:`.
        self._kept = max(incomplete.rfind(":"), incomplete.rfind("=")) + 1
        if incomplete.startswith("--"):
            # The library click returns the value of an option without `--option=`, so `_kept` must not count these
            # characters. For example, of `--option=localhost:90`, bash keeps the 19 characters `--option=localhost:`.
            # Of these, 9 are `--option=`, so `_kept` is 19 - 9 = 10.
            self._kept = max(self._kept - incomplete.find("=") - 1, 0)
        return words, incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        return f"{item.type},{item.value[self._kept :] if item.type == 'plain' else item.value}"


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script that lets SHELL complete commands, options, topics and groups.

    For example, you type `hmb consume -b HOST:PORT ev` and press Tab. The script then asks the broker at HOST:PORT
    for the names of its topics.
    """
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(f"# {SHELLS[shell]}")
    click.echo(complete(ctx.find_root().command, {}, "hmb", COMPLETION_VARIABLE).source().lstrip())
