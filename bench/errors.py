"""Errors that end a benchmark with one line for its user: `hmb: message`, and exit code 1."""

from __future__ import annotations

from typing import IO, Any

import click


class BenchmarkError(click.ClickException):
    """A benchmark cannot continue. The message names the cause and, if a user can repair it, the repair."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message in the same form as all commands of `hmb`."""
        click.echo(f"hmb: {self.message}", err=True)


class PeerUnavailable(BenchmarkError):
    """Something that a peer needs is not installed. A test that needs the peer is skipped."""


class PeerFailed(BenchmarkError):
    """A broker or a client program did not start, ended early, or produced a wrong result."""


class InvalidSamples(BenchmarkError):
    """A file is not a file of samples, or no samples exist."""
