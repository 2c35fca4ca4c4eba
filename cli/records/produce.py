r"""`hmb produce`: send lines or files as records.

`hmb produce` reads its input in chunks: one line from a terminal, or thousands of lines from a file. The command sends
each chunk with one call of `Producer.send_many`. The `Tally` knows the line numbers of each chunk. An error message
therefore names the line of the record that could not be delivered. At the end, the command prints how many records the
broker has acknowledged:
    $ printf 'one\ntwo\n' | hmb produce weather
    2 records sent to weather in 0.1 s
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hmb.units import now_ms

from ..shared.errors import USAGE, CliError
from ..shared.headings import GroupedCommand
from ..shared.interruption import sigterm_as_ctrl_c, uninterrupted
from ..shared.waiting_notice import WaitingNotice, notice_about
from .produce_input import RecordInput, with_progress
from .produce_options import BY_KEY, ProduceOptions, produce_options
from .tally import Chunk, Tally, with_position

if TYPE_CHECKING:
    from hmb.client import Producer
    from hmb.client.producing.delivery import Deliveries, Delivery

    from .line_formats import HeaderPair

    # One pair (records, partition) for each call of the producer. If the partition is None, the producer selects it.
    Batches = Iterator[tuple[Chunk, int | None]]

DELIVERY_TIMEOUT = 30.0  # seconds
GRACE = 1.0  # seconds; after an error, the command waits at most this long for the next response
LONGEST_GRACE = 5.0  # seconds; after an error, the command waits at most this long for all missing responses
ABORT_GRACE = 5.0  # seconds; the command waits at most this long until the transaction is aborted
# An error for a whole chunk can name the wrong record. If a chunk contains a value above this size (bytes), send each
# record alone.
LARGE = 256 * 1024
TICK = 0.1  # seconds; with --rate, the command sends the records of each tick together


@click.command(cls=GroupedCommand)
@produce_options
def command(**given: Any) -> None:
    """Send each line of standard input to TOPIC as a record. With FILES, send each file as one record.

    With FILES and -l, send each line of the files as a record. The value is the line without its newline.

    With --json, each line is a JSON object with a value, and optionally key, headers, timestamp and partition.

    The command ends at the first record that cannot be delivered.
    """
    options = ProduceOptions(**given)
    topic, files = options.topic_and_files()
    source = RecordInput(files, options.in_lines(), options.record_delimiter or b"\n", options.parse(), options.as_json)
    keywords, servers = options.keywords(), options.client.servers
    tally = Tally(source.stop)
    producer = _open(servers, keywords)
    transaction = ProduceTransaction(producer, options.abort) if "transactional_id" in keywords else None
    started = time.monotonic()
    try:
        with sigterm_as_ctrl_c(), _closing(producer, tally):
            limit = keywords.get("delivery_timeout", DELIVERY_TIMEOUT)
            notice = WaitingNotice(partial(_awaited, servers, tally, producer, limit), lambda: tally.oldest)
            with notice, transaction or nullcontext():
                _send_all(producer, topic, options, source, tally)
                _raise_error(tally, topic)
            if not tally.delivered:
                _check_servers(servers)
    finally:
        if not options.quiet or tally.missing:
            count, seconds = tally.delivered, time.monotonic() - started
            outcome = "" if transaction is None else transaction.outcome
            sent = f"{count} record{'s' * (count != 1)} sent to {topic} in {seconds:.1f} s"
            click.echo(f"{sent}{outcome}{tally.missing}", err=True)


class ProduceTransaction(AbstractContextManager[None]):
    """One transaction, which contains all records that the command sends.

    At the end, the command commits the transaction. After an error, or with the option --abort, the command aborts the
    transaction instead.
    """

    def __init__(self, producer: Producer, abort: bool) -> None:
        self._producer, self._abort = producer, abort
        self.outcome = ""  # what happened to the transaction, for the last line that the command prints

    def __enter__(self) -> None:
        self._producer.init_transactions()
        self._producer.begin_transaction()
        self.outcome = "; it is unknown whether their transaction was committed"

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self._abort_within_grace()
            return
        try:
            if self._abort:
                self._abort_now()
            else:
                self._producer.commit_transaction()
                self.outcome = " and committed"
        except BaseException:
            self._abort_within_grace()
            raise

    def _abort_now(self) -> None:
        self._producer.abort_transaction()
        self.outcome = "; their transaction was aborted"

    def _abort_within_grace(self) -> None:
        """Abort the transaction, but wait at most ABORT_GRACE seconds until it is aborted.

        If the broker receives no abort request, the broker itself aborts the transaction after one minute.
        """
        aborting = threading.Thread(target=self._abort_silently, daemon=True)
        aborting.start()
        aborting.join(ABORT_GRACE)

    def _abort_silently(self) -> None:
        with suppress(Exception):  # The command reports only the error that caused the abort.
            self._abort_now()


def _open(servers: str, keywords: dict[str, Any]) -> Producer:
    from hmb.client import Producer

    defaults = {"delivery_timeout": DELIVERY_TIMEOUT, "max_block": DELIVERY_TIMEOUT}
    try:
        return Producer(servers, **(defaults | keywords))
    except ValueError as error:  # The value of an option or a setting is out of range.
        raise CliError(str(error), USAGE) from error


@contextmanager
def _closing(producer: Producer, tally: Tally) -> Iterator[None]:
    """At the end of a `with` block, wait a short time for the records in flight, and close the producer."""
    try:
        yield
    finally:
        tally.wait_for_the_rest(GRACE, LONGEST_GRACE)
        with suppress(TimeoutError):
            producer.close(GRACE)


def _check_servers(servers: str) -> None:
    """Connect to the broker, so that a wrong address causes an error even if the input is empty.

    With an empty input, the producer sends no record, and so does not connect to a broker.
    """
    from hmb.client import Cluster

    cluster = Cluster(servers, timeout=DELIVERY_TIMEOUT)
    with notice_about(servers):
        cluster.topics()
    cluster.close()


def _awaited(servers: str, tally: Tally, producer: Producer, limit: float) -> str:
    trouble = f" ({producer.last_error})" if producer.last_error else ""
    oldest = (tally.oldest or "").removeprefix("standard input, ")
    return f"{servers} to take {oldest}{trouble}, {limit:g} s at most"


def _send_all(producer: Producer, topic: str, options: ProduceOptions, source: RecordInput, tally: Tally) -> None:
    """Send all records, and wait until they are delivered. If the delivery of a record fails, return at once.

    If a line cannot be parsed, or if the producer refuses the record of a line, wait for the records of all earlier
    lines. Then raise the error.
    """
    from hmb.protocol.errors import KafkaError

    chunks = _divide(with_progress(source, tally, options.quiet), options.partition, options.count)
    if options.rate is not None:
        chunks = _at_rate(chunks, options.rate, tally)
    try:
        for chunk, number in chunks:
            if tally.error:
                return
            with uninterrupted(GRACE):  # Ctrl-C must not leave records that are queued but not counted.
                tally.begin(chunk)
                try:
                    _send(producer, topic, chunk, number, options.headers, tally)
                except (KafkaError, ConnectionError) as error:  # In this case, no record was queued.
                    tally.finish(chunk, range(len(chunk)))
                    raise with_position(chunk.where(0), _with_hint(error, topic, number, is_here=True)) from None
    except (CliError, KafkaError):
        tally.wait()
        raise
    tally.wait()


def _raise_error(tally: Tally, topic: str) -> None:
    from hmb.protocol.errors import KafkaError

    try:
        tally.raise_error()
    except KafkaError as error:
        raise _with_hint(error, topic, None, is_here=False) from None


def _with_hint(error: Exception, topic: str, partition: int | None, *, is_here: bool) -> Exception:
    """Return the error. For some errors, the message also contains advice for the user.

    `is_here` is true if the producer in this process has refused the record, and false if the broker has refused
    the record. `partition` is the partition that the user has chosen. It is None if the user has chosen no
    partition.
    """
    from hmb.protocol.errors import ErrorCode, KafkaError

    if not isinstance(error, KafkaError):
        return error
    hint = ""
    if error.code is ErrorCode.MESSAGE_TOO_LARGE:
        alter = f"`hmb topics alter {topic} --config max.message.bytes=...`"
        hint = f"; here: -X max.request.size=..., {alter}" if is_here else f"; {alter} raises that"
    elif error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and partition is not None:
        hint = f"; `-p {BY_KEY}` sends each record to the partition of its key"
    return KafkaError(error.code, error.message + hint)


def _divide(chunks: Iterator[Chunk], partition: int | None, count: int | None) -> Batches:
    """Divide chunks (lists of records) into parts. The producer sends each part with one call.

    The function yields each part with the number of its partition. The number is None if the key of each record
    selects the partition. If a chunk contains a large value, the function divides the chunk into single records. If
    `count` is not None, the function stops after `count` records.
    """
    left = count
    for chunk in chunks:
        some = chunk if left is None else chunk[:left]
        if len(some):
            if max(map(len, filter(None, some.values)), default=0) > LARGE:
                pieces = [some[index : index + 1] for index in range(len(some))]
            else:
                pieces = [some]
            for piece in pieces:
                if partition is None:
                    yield from _by_partition(piece)
                else:
                    yield piece, None if partition == BY_KEY else partition
        if left is not None:
            left -= len(some)
            if not left:
                return


def _by_partition(chunk: Chunk) -> Batches:
    """Divide a chunk into smaller chunks, one for each partition.

    A line of JSON can name the partition of its record. The records of all other lines form one chunk, with the
    partition None.
    """
    records, lines = chunk.records, chunk.lines
    if records is None or lines is None or all(record.partition is None for record in records):
        yield chunk, None
        return
    by_partition: dict[int | None, list[int]] = {}
    for index, record in enumerate(records):
        by_partition.setdefault(record.partition, []).append(index)
    for partition, indexes in by_partition.items():
        some = [records[index] for index in indexes]
        yield Chunk(chunk.source, [lines[index] for index in indexes], [it.value for it in some], some), partition


def _at_rate(chunks: Batches, rate: float, tally: Tally) -> Batches:
    """Yield records in small parts, so that the command sends at most `rate` records per second.

    The function waits between two parts. For example, with a rate of 100 and a TICK of 0.1 s, it yields 10 records
    every 0.1 s.
    """
    width = max(1, int(rate * TICK))
    due = time.monotonic()
    for chunk, number in chunks:
        for first in range(0, len(chunk), width):
            piece = chunk[first : first + width]
            now = time.monotonic()
            if due > now:
                tally.pause(due - now)
            due = max(due, now) + len(piece) / rate
            yield piece, number


def _send(
    producer: Producer, topic: str, chunk: Chunk, number: int | None, headers: tuple[HeaderPair, ...], tally: Tally
) -> None:
    """Queue the records of a chunk. Later, `tally` counts each record as delivered or lost."""
    records = chunk.records
    if len(chunk) == 1:  # The error of `send` is shorter than the error of `send_many`.
        (value,) = chunk.values
        key, timestamp = (records[0].key, records[0].timestamp) if records else (None, None)
        own = records[0].headers if records else ()
        producer.send(topic, value, key, number, (*headers, *own), timestamp, partial(_finish_one, tally, chunk))
        return
    keys = timestamps = all_headers = None
    if records is not None:
        keys = [record.key for record in records]
        if any(record.headers for record in records):
            all_headers = [(*headers, *record.headers) for record in records]
        if any(record.timestamp is not None for record in records):
            now = now_ms()
            timestamps = [now if record.timestamp is None else record.timestamp for record in records]
    if headers and all_headers is None:
        all_headers = [headers] * len(chunk)
    sent = producer.send_many(topic, chunk.values, keys, number, all_headers, timestamps)
    sent.add_done_callback(partial(_finish_many, tally, chunk))


def _finish_one(tally: Tally, chunk: Chunk, delivery: Delivery) -> None:
    error = delivery.exception()
    tally.finish(chunk, () if error is None else (0,), 0, error)


def _finish_many(tally: Tally, chunk: Chunk, deliveries: Deliveries) -> None:
    failures = deliveries.failures()
    if not failures:
        tally.finish(chunk)
        return
    lost = [row for failure in failures for row in failure.rows]
    first = min(failures, key=lambda failure: failure.caused_elsewhere)
    tally.finish(chunk, lost, first.failed_row, first.error, first.caused_elsewhere)
