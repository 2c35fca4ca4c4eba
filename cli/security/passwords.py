"""Reads a password: from a prompt, a file or standard input.

A password in an option is not secret. Other users of the computer can see the command line of a running
process, and the shell stores the command in its history. The command therefore prints a warning.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..shared.errors import CliError
from ..shared.parameters import NewPath


def password_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for a password to a command that takes `password` and `password_file`."""
    file = click.option(
        "--password-file", type=NewPath(), metavar="FILE",
        help="The file whose first line is the password. Use - to read the password from standard input.",
    )  # fmt: skip
    return file(click.option("--password", help="The password. Other users of this computer can see it.")(command))


def read_password(password: str | None, password_file: str | None) -> str:
    """Return the password from an option, a file or standard input, or ask the user. Raises CliError, UsageError."""
    if password is not None and password_file is not None:
        raise click.UsageError("--password and --password-file cannot be combined")
    if password is not None:
        click.echo("hmb: other users of this computer can see a password in an option; use --password-file", err=True)
        return _checked(password)
    if password_file == "-" or (password_file is None and not sys.stdin.isatty()):
        return _checked(sys.stdin.readline().rstrip("\r\n"))
    if password_file is None:
        return _checked(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    try:
        return _checked(Path(password_file).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r"))
    except OSError as error:
        raise CliError(f"cannot read {password_file}: {error.strerror}") from error


def _checked(password: str) -> str:
    if not password:
        raise CliError("the password is empty")
    return password
