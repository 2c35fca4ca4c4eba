"""`hmb consume`: records become lines on standard output."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from .arguments import delimiter, topic_argument
from .common import bootstrap_option
from .patience import Patience
from .streams import reader_has_left

if TYPE_CHECKING:
    from hmb.client import Consumer, ConsumerRecord
    from hmb.client.consumer import Offset

Write = Callable[[list["ConsumerRecord"]], None]

POLL_TIMEOUT = 1.0  # seconds
RETRY_FOR = 30.0  # seconds that a connection may be lost


def start(text: str) -> "Offset":
    """Where to begin: a word, an offset, or so many before the end."""
    if text in ("earliest", "beginning"):
        return "earliest"
    if text in ("latest", "end"):
        return "latest"
    from hmb.client.consumer import check_offset

    try:
        check_offset(offset := int(text))
    except ValueError:
        raise click.BadParameter(f"{text!r} is none of: earliest, latest, an offset, -N (N before the end)") from None
    return offset


@click.command()
@topic_argument
@bootstrap_option
@click.option("--from-beginning", is_flag=True, help="Start with the oldest record.")
@click.option("-o", "--offset", type=start, help="Start at: earliest, latest, an offset, or -N (N before the end).")
@click.option("-p", "--partition", "partitions", type=click.IntRange(0), multiple=True, help="Only this partition.")
@click.option("-c", "--count", type=click.IntRange(1), help="Stop after so many records.")
@click.option("-e", "--exit", "to_end", is_flag=True, help="Stop at the end of the log; starts at the oldest record.")
@click.option(
    "-K",
    "--key-delimiter",
    type=delimiter,
    metavar="TEXT",
    help=r"Print the key and TEXT (\t, \n, \0, \xHH too) before each value.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all of a record as JSON, one a line.")
def command(
    topic: str,
    servers: str,
    from_beginning: bool,
    offset: "Offset | None",
    partitions: tuple[int, ...],
    count: int | None,
    to_end: bool,
    key_delimiter: bytes | None,
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
    until: Literal["end"] | None = "end" if to_end else None
    reading = Reading()
    with Patience(lambda: f"{servers} to answer, {RETRY_FOR:g} s at most", reading.progress):
        consumer = Consumer(
            servers, topic, offset=offset, until=until, partitions=partitions or None, retry_for=RETRY_FOR
        )
        _copy(consumer, _writer(key_delimiter, as_json), count, to_end, reading)
    consumer.close()  # after Ctrl-C the end of the process does that, and at once


@dataclass
class Reading:
    """How far it is, and whether that is for the broker to change, and soon."""

    records: int = 0
    awaited: bool = True

    def progress(self) -> int | None:
        return self.records if self.awaited else None


def _copy(consumer: "Consumer", write: Write, count: int | None, to_end: bool, reading: Reading) -> None:
    while not consumer.at_end and reading.records != count:
        reading.awaited = to_end
        records = consumer.poll(POLL_TIMEOUT)
        reading.awaited = False
        if count is not None:
            records = records[: count - reading.records]
        reading.records += len(records)
        if records:
            write(records)
        elif reader_has_left():
            raise BrokenPipeError


def _writer(key_delimiter: bytes | None, as_json: bool) -> Write:
    """Writes many records at once, and sees them off: whoever reads them should not wait."""
    from .record_json import to_json

    def write(records: "list[ConsumerRecord]") -> None:
        if as_json:
            lines = [to_json(record).encode() for record in records]
        elif key_delimiter is None:
            lines = [record.value or b"" for record in records]
        else:
            lines = [(record.key or b"") + key_delimiter + (record.value or b"") for record in records]
        sys.stdout.buffer.write(b"\n".join(lines) + b"\n")
        sys.stdout.buffer.flush()

    return write
