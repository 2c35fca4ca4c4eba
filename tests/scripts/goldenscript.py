"""Goldenscripts: tests that read like a session at a terminal.

A script is a text file of blocks, with an empty line between them.  A block is a few commands, a line `---`, and what
they print::

    # A comment is kept.
    join a
    ---
    a: MEMBER_ID_REQUIRED a-1

A test runs the commands and compares the whole text; where it differs, pytest shows the lines.  `key=value` words of a
command are options.  How the idea works is shown by toydb, which has such scripts for each of its layers.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

Execute = Callable[[str, list[str], dict[str, str]], Iterable[str]]  # command, words, options -> the lines it prints


def run(path: Path, execute: Execute) -> str:
    """The script's text as it should be."""
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
