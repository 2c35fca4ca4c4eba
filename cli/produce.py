"""`hmb produce`: lines from standard input become records."""

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import click

from .common import CliError, bootstrap_option

if TYPE_CHECKING:
    from hmb.client import RecordMetadata

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
BATCH_SIZE = 128 * 1024
DELIVERY_TIMEOUT = 30.0  # seconds
PROGRESS_INTERVAL = 0.2  # seconds


class Line(NamedTuple):
    """One record to send."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int | None
    partition: int | None = None


class Tally:
    """Counts what the producer's thread reports."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the two below
        self.delivered = 0
        self.error: BaseException | None = None

    def settle(self, future: "Future[RecordMetadata]") -> None:
        error = future.exception()
        with self._lock:
            if error is None:
                self.delivered += 1
            else:
                self.error = self.error or error


@click.command()
@click.argument("topic")
@bootstrap_option
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Each line is key, TEXT, value; without TEXT: no key.")
@click.option("-p", "--partition", type=click.IntRange(0), help="Send all to this partition.  [default: by key]")
@click.option("-z", "--codec", type=click.Choice(CODECS), default="none", show_default=True, help="Compress with this.")
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True, help="Who must have a record.")
@click.option("--json", "as_json", is_flag=True, help="Lines are JSON, as `hmb consume --json` prints them.")
def command(
    topic: str,
    servers: str,
    key_delimiter: str | None,
    partition: int | None,
    codec: str,
    acks: str,
    as_json: bool,
) -> None:
    """Send lines from standard input to TOPIC.

    A line is a record's value, without its newline. With --json a line has key, value, headers, timestamp and
    partition; all but the value may be missing.
    """
    from hmb.client import Producer

    if key_delimiter is not None and as_json:
        raise click.UsageError("--key-delimiter and --json exclude each other: JSON has the key in it")
    read = _json_lines if as_json else _plain_lines
    tally = Tally()
    started = time.monotonic()
    producer = Producer(
        servers, ACKS[acks], codec, batch_size=BATCH_SIZE, delivery_timeout=DELIVERY_TIMEOUT, max_block=DELIVERY_TIMEOUT
    )
    try:
        for line in _with_progress(read(sys.stdin.buffer, (key_delimiter or "").encode()), tally):
            chosen = line.partition if partition is None else partition
            future = producer.send(topic, line.value, line.key, chosen, line.headers, line.timestamp)
            future.add_done_callback(tally.settle)
            if tally.error:
                break
    finally:
        producer.close()
        seconds = time.monotonic() - started
        click.echo(f"{tally.delivered} records sent to {topic} in {seconds:.1f} s", err=True)
    if tally.error:
        raise tally.error


def _plain_lines(stdin: BinaryIO, delimiter: bytes) -> Iterator[Line]:
    for line in stdin:
        value = line.removesuffix(b"\n")
        if not delimiter:
            yield Line(None, value, [], None)
            continue
        key, found, rest = value.partition(delimiter)
        yield Line(key, rest, [], None) if found else Line(None, value, [], None)


def _json_lines(stdin: BinaryIO, _delimiter: bytes) -> Iterator[Line]:
    from .record_json import from_json

    for number, line in enumerate(stdin, 1):
        if line.strip():
            try:
                yield Line(*from_json(line))
            except ValueError as error:
                raise CliError(f"standard input, line {number}: {error}") from error


def _with_progress(lines: Iterator[Line], tally: Tally) -> Iterator[Line]:
    """Shows how far it is, where both ends are worth it: input from a file or a pipe, standard error on a terminal."""
    if not sys.stderr.isatty() or sys.stdin.isatty():
        yield from lines
        return
    from rich.console import Console

    with Console(stderr=True).status("sending ...") as status:
        shown = time.monotonic()
        for sent, line in enumerate(lines):
            yield line
            if time.monotonic() - shown > PROGRESS_INTERVAL:
                shown = time.monotonic()
                status.update(f"{sent + 1} records sent, {tally.delivered} acknowledged")
