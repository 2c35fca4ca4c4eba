"""Goldenscripts: tests that read like a session in a terminal.

A script is a text file with blocks, separated by empty lines. A block contains some commands, a line `---`, and the
output of the commands::

    # A comment is kept.
    join a
    ---
    a: MEMBER_ID_REQUIRED a-1

A test runs the commands of a script, and builds a new text with the actual output. If this text is not equal to the
script, pytest shows the lines that differ. In a command, a word of the form `key=value` is an option.

The idea comes from the database toydb, which tests each of its layers with goldenscripts.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

# (command, words, options) -> the lines of the command's output
Execute = Callable[[str, list[str], dict[str, str]], Iterable[str]]


def run(path: Path, execute: Execute) -> str:
    """Run the commands of a script, and return the script with their actual output."""
    blocks = path.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    return "\n\n".join(_run_block(block.partition("\n---")[0], execute) for block in blocks) + "\n"


def _run_block(commands: str, execute: Execute) -> str:
    printed = [commands, "---"]
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        if words:
            options = dict(word.split("=", 1) for word in words[1:] if "=" in word)
            printed += execute(words[0], [word for word in words[1:] if "=" not in word], options)
    has_commands = any(not line.startswith("#") for line in commands.splitlines())
    return "\n".join(printed if has_commands else [commands])
