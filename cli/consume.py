"""`hmb consume`: records become lines on standard output."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import click

from .common import bootstrap_option

if TYPE_CHECKING:
    from hmb.client import ConsumerRecord
    from hmb.client.consumer import Offset

POLL_TIMEOUT = 1.0  # seconds
RETRY_FOR = 30.0  # seconds that a connection may be lost


def start(text: str) -> "Offset":
    """Where to begin: a word, an offset, or so many before the end."""
    if text in ("earliest", "beginning"):
        return "earliest"
    if text in ("latest", "end"):
        return "latest"
    try:
        return int(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is none of: earliest, latest, an offset, -N (N before the end)") from None


@click.command()
@click.argument("topic")
@bootstrap_option
@click.option("--from-beginning", is_flag=True, help="Start with the oldest record.")
@click.option("-o", "--offset", type=start, help="Start at: earliest, latest, an offset, or -N (N before the end).")
@click.option("-p", "--partition", "partitions", type=click.IntRange(0), multiple=True, help="Only this partition.")
@click.option("-c", "--count", type=click.IntRange(1), help="Stop after so many records.")
@click.option("-e", "--exit", "to_end", is_flag=True, help="Stop at the end of the log; starts at the oldest record.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Print the key and TEXT before each value.")
@click.option("--json", "as_json", is_flag=True, help="Print all of a record as JSON, one a line.")
def command(
    topic: str,
    servers: str,
    from_beginning: bool,
    offset: "Offset | None",
    partitions: tuple[int, ...],
    count: int | None,
    to_end: bool,
    key_delimiter: str | None,
    as_json: bool,
) -> None:
    """Print the records of TOPIC, one a line.

    Starts with the records that come from now on, unless an option says otherwise, and goes on until Ctrl-C.
    """
    from hmb.client import Consumer

    if from_beginning and offset is not None:
        raise click.UsageError("--from-beginning and --offset exclude each other")
    if key_delimiter is not None and as_json:
        raise click.UsageError("--key-delimiter and --json exclude each other: JSON has the key in it")
    if offset is None:
        offset = "earliest" if from_beginning or to_end else "latest"
    write = _writer(key_delimiter, as_json)
    left = count
    until: Literal["end"] | None = "end" if to_end else None
    with Consumer(
        servers, topic, offset=offset, until=until, partitions=partitions or None, retry_for=RETRY_FOR
    ) as consumer:
        while not consumer.at_end and (left is None or left > 0):
            records = consumer.poll(POLL_TIMEOUT)
            if left is not None:
                records = records[:left]
                left -= len(records)
            if records:
                write(records)


def _writer(key_delimiter: str | None, as_json: bool) -> "Callable[[list[ConsumerRecord]], None]":
    """Writes many records at once, and sees them off: whoever reads them should not wait."""
    from .record_json import to_json

    delimiter = None if key_delimiter is None else key_delimiter.encode()

    def write(records: "list[ConsumerRecord]") -> None:
        if as_json:
            lines = [to_json(record).encode() for record in records]
        elif delimiter is None:
            lines = [record.value or b"" for record in records]
        else:
            lines = [(record.key or b"") + delimiter + (record.value or b"") for record in records]
        sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
        sys.stdout.buffer.flush()

    return write
