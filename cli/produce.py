"""`hmb produce`: lines from standard input become records."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from .arguments import delimiter, topic_argument
from .common import CliError, bootstrap_option
from .lines import Lines
from .patience import Patience

if TYPE_CHECKING:
    from hmb.client import Producer, RecordMetadata

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
BATCH_SIZE = 128 * 1024
DELIVERY_TIMEOUT = 30.0  # seconds
GRACE = 1.0  # seconds for what is on its way, when something has gone wrong
PROGRESS_INTERVAL = 0.2  # seconds


class Line(NamedTuple):
    """One record to send, and the number of its line."""

    number: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int | None
    partition: int | None = None


class Tally:
    """Which lines have arrived, and which have not; `on_error` is called at the first that will not."""

    def __init__(self, on_error: Callable[[], None]) -> None:
        self._on_error = on_error
        self._settled = threading.Condition()  # guards all below
        self._missing: dict[int, None] = {}  # lines that have not arrived (yet), in order
        self.delivered = 0
        self.error: BaseException | None = None

    def begin(self, number: int) -> None:
        with self._settled:
            self._missing[number] = None

    def settle(self, number: int, future: "Future[RecordMetadata]") -> None:
        """What became of a line; the producer's thread calls this."""
        error = future.exception()
        with self._settled:
            if error is None:
                self.delivered += 1
                del self._missing[number]
                if len(self._missing) <= 1:
                    self._settled.notify_all()
                return
            first, self.error = self.error is None, self.error or _of_line(number, error)
            self._settled.notify_all()
        if first:
            self._on_error()

    def wait(self, besides: int = 0) -> None:
        """Until all lines have arrived, besides this one, or one will not."""
        with self._settled:
            self._settled.wait_for(lambda: self.error is not None or not self._missing.keys() - {besides})

    @property
    def oldest(self) -> int | None:
        """The first line that has not arrived."""
        with self._settled:
            return next(iter(self._missing), None)

    @property
    def missing(self) -> str:
        with self._settled:
            return f"; {len(self._missing)} not, from line {next(iter(self._missing))} on" if self._missing else ""


def _of_line(number: int, error: BaseException) -> BaseException:
    """What is wrong with a record, with its line; a broker that is not there is no line's fault."""
    from hmb.protocol.errors import KafkaError

    if isinstance(error, KafkaError):
        return KafkaError(error.code, f"standard input, line {number}: {error.message}")
    return error


@click.command()
@topic_argument
@bootstrap_option
@click.option(
    "-K",
    "--key-delimiter",
    type=delimiter,
    metavar="TEXT",
    help=r"Each line is key, TEXT (\t, \n, \0, \xHH too), value; without TEXT: no key.",
)
@click.option("-p", "--partition", type=click.IntRange(0), help="Send all to this partition.  [default: by key]")
@click.option("-z", "--codec", type=click.Choice(CODECS), default="none", show_default=True, help="Compress with this.")
@click.option("--acks", type=click.Choice(list(ACKS)), default="all", show_default=True, help="Who must have a record.")
@click.option("--json", "as_json", is_flag=True, help="Lines are JSON, as `hmb consume --json` prints them.")
def command(
    topic: str,
    servers: str,
    key_delimiter: bytes | None,
    partition: int | None,
    codec: str,
    acks: str,
    as_json: bool,
) -> None:
    """Send lines from standard input to TOPIC.

    A line is a record's value, without its newline. With --json a line has key, value, headers, timestamp and
    partition; all but the value may be missing. Ends at the first record that cannot be delivered.
    """
    from hmb.client import Producer

    if key_delimiter is not None and as_json:
        raise click.UsageError("--key-delimiter and --json exclude each other: JSON has the key in it")
    lines = Lines(sys.stdin.buffer)
    tally = Tally(lines.stop)
    records = _json_records(lines) if as_json else _plain_records(lines, key_delimiter)
    started = time.monotonic()
    producer = Producer(
        servers, ACKS[acks], codec, batch_size=BATCH_SIZE, delivery_timeout=DELIVERY_TIMEOUT, max_block=DELIVERY_TIMEOUT
    )
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: with a tally
    try:
        with Patience(partial(_awaited, servers, tally, producer), lambda: tally.oldest):
            _send(producer, topic, partition, _with_progress(records, tally), tally)
    finally:
        with suppress(TimeoutError):
            producer.close(GRACE)
        lines.close()
        signal.signal(signal.SIGTERM, before)
        seconds = time.monotonic() - started
        click.echo(f"{tally.delivered} records sent to {topic} in {seconds:.1f} s{tally.missing}", err=True)
    if tally.error:
        raise tally.error


def _send(producer: "Producer", topic: str, partition: int | None, lines: Iterator[Line], tally: Tally) -> None:
    """Send all, and see it delivered; ends at once when a delivery fails.

    A line that cannot be sent is the last one, and those before it are delivered.
    """
    from hmb.protocol.errors import KafkaError

    try:
        for line in lines:
            if tally.error:
                return
            chosen = line.partition if partition is None else partition
            tally.begin(line.number)
            future = producer.send(topic, line.value, line.key, chosen, line.headers, line.timestamp)
            future.add_done_callback(partial(tally.settle, line.number))
    except CliError:
        tally.wait()
        raise
    except KafkaError as error:
        tally.wait(besides=line.number)
        raise _of_line(line.number, error) from error
    tally.wait()


def _awaited(servers: str, tally: Tally, producer: "Producer") -> str:
    trouble = f" ({producer.trouble})" if producer.trouble else ""
    return f"{servers} to take line {tally.oldest}{trouble}, {DELIVERY_TIMEOUT:g} s at most"


def _plain_records(lines: Lines, delimiter: bytes | None) -> Iterator[Line]:
    for number, value in enumerate(lines, 1):
        if not delimiter:
            yield Line(number, None, value, [], None)
            continue
        key, found, rest = value.partition(delimiter)
        yield Line(number, key, rest, [], None) if found else Line(number, None, value, [], None)


def _json_records(lines: Lines) -> Iterator[Line]:
    from .record_json import from_json

    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield Line(number, *from_json(line))
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
