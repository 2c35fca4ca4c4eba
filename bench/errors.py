"""Errors that end a benchmark. The user sees one line, `hmb: message`, and the exit code is 1."""

from __future__ import annotations

from typing import IO, Any

import click


class BenchmarkError(click.ClickException):
    """An error that ends a benchmark. The message explains the problem and, if possible, how to solve it."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message in the form that all commands of `hmb` use."""
        click.echo(f"hmb: {self.message}", err=True)


class PeerUnavailable(BenchmarkError):
    """The error for a broker or client program that cannot run, because required software is not installed.

    For example, Kafka's broker cannot run without Java. If a test gets this error, pytest skips the test.
    """


class PeerFailed(BenchmarkError):
    """The error for a broker or a client program that did not start, ended too early, or returned a wrong result."""


class InvalidSamples(BenchmarkError):
    """The error for a file that does not contain samples, or for a missing file of samples."""
