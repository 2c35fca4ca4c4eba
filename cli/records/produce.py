"""`hmb produce`: lines or files become records.

Lines go off in the portions in which they come, each with one call of `Producer.send_many`; a portion remembers which
lines it has, so that an error names the guilty one and what was acknowledged is counted exactly.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ..shared.client_config import chosen_servers
from ..shared.common import USAGE, CliError
from ..shared.interruption import uninterrupted
from ..shared.option_groups import GroupedCommand
from ..shared.patience import Patience, patience_with
from .produce_input import Input, with_progress
from .produce_options import Options, produce_options
from .tally import Portion, Tally, of_place

if TYPE_CHECKING:
    from hmb.client import Producer
    from hmb.client.producing.delivery import Deliveries, Delivery

    from .line_formats import Header

BATCH_SIZE = 256 * 1024
DELIVERY_TIMEOUT = 30.0  # seconds
GRACE = 1.0  # seconds for what is on its way, when something has gone wrong: for the next answer, ...
LONGEST_GRACE = 5.0  # ... and for all; 32 MB wait at most, which a slow disk takes in that time
ABORT_GRACE = 5.0  # seconds for a transaction, likewise
LARGE = 256 * 1024  # bytes; the size of a value that goes alone, for it may be one too many
TICK = 0.1  # seconds of records that go together when their rate is limited


@click.command(cls=GroupedCommand)
@produce_options
def command(**given: Any) -> None:
    """Send lines from standard input to TOPIC, or FILES, each of which is a value (-l: which have lines).

    A line is a record's value, without its newline. With --json a line has key, value, headers, timestamp and
    partition; all but the value may be missing. Ends at the first record that cannot be delivered.
    """
    options = Options(**given)
    topic, files = options.topic_and_files()
    source = Input(files, options.in_lines(), options.record_delimiter or b"\n", options.parse(), options.as_json)
    keywords = options.keywords()
    servers = chosen_servers(keywords, options.servers, options.settings)
    tally = Tally(source.stop)
    producer = _producer(servers, keywords)
    transaction = Transaction(producer, options.abort) if "transactional_id" in keywords else nullcontext("")
    started = time.monotonic()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: with a tally
    try:
        patience = keywords.get("delivery_timeout", DELIVERY_TIMEOUT)
        with Patience(partial(_awaited, servers, tally, producer, patience), lambda: tally.oldest), transaction:
            _send_all(producer, topic, options, source, tally)
            _raise_error(tally, topic)
        if not tally.delivered:
            _reach(servers)
    finally:
        tally.wait_for_the_rest(GRACE, LONGEST_GRACE)
        with suppress(TimeoutError):
            producer.close(GRACE)
        signal.signal(signal.SIGTERM, before)
        if not options.quiet or tally.missing:
            count, seconds = tally.delivered, time.monotonic() - started
            what = f"{count} record{'s' * (count != 1)} sent to {topic} in {seconds:.1f} s"
            fate = transaction.fate if isinstance(transaction, Transaction) else ""
            click.echo(what + fate + tally.missing, err=True)


class Transaction(AbstractContextManager[None]):
    """One around all: committed if everything went well and nobody wants otherwise, else aborted."""

    def __init__(self, producer: "Producer", abort: bool) -> None:
        self._producer, self._abort = producer, abort
        self.fate = ""

    def __enter__(self) -> None:
        self._producer.init_transactions()
        self._producer.begin_transaction()
        self.fate = "; what became of their transaction is not known"

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self._take_back_soon()
            return
        try:
            self._take_back() if self._abort else self._commit()
        except BaseException:
            self._take_back_soon()
            raise

    def _commit(self) -> None:
        self._producer.commit_transaction()
        self.fate = " and committed"

    def _take_back_soon(self) -> None:
        """Whoever pressed Ctrl-C does not wait for a broker that says nothing; it aborts by itself in a minute."""
        aborting = threading.Thread(target=self._take_back_quietly, daemon=True)
        aborting.start()
        aborting.join(ABORT_GRACE)

    def _take_back(self) -> None:
        self._producer.abort_transaction()
        self.fate = " and taken back: the transaction was aborted"

    def _take_back_quietly(self) -> None:
        with suppress(Exception):  # the first error is the one to tell
            self._take_back()


def _producer(servers: str, keywords: dict[str, Any]) -> "Producer":
    from hmb.client import Producer

    defaults = {"batch_size": BATCH_SIZE, "delivery_timeout": DELIVERY_TIMEOUT, "max_block": DELIVERY_TIMEOUT}
    try:
        return Producer(servers, **(defaults | keywords))
    except ValueError as error:  # what an option or a setting says cannot be
        raise CliError(str(error), USAGE) from error


def _reach(servers: str) -> None:
    """Nothing was sent, so nobody has met the broker yet: say if it is not there."""
    from hmb.client import Cluster

    cluster = Cluster(servers, timeout=DELIVERY_TIMEOUT)
    with patience_with(servers):
        cluster.topics()
    cluster.close()


def _awaited(servers: str, tally: Tally, producer: "Producer", patience: float) -> str:
    trouble = f" ({producer.last_error})" if producer.last_error else ""
    oldest = (tally.oldest or "").removeprefix("standard input, ")
    return f"{servers} to take {oldest}{trouble}, {patience:g} s at most"


def _send_all(producer: "Producer", topic: str, options: Options, source: Input, tally: Tally) -> None:
    """Send all, and see it delivered; ends at once when a delivery fails.

    A line that cannot be sent is the last one, and those before it are delivered.
    """
    from hmb.protocol.errors import KafkaError

    partition = None if options.partition == -1 else options.partition
    portions = _cut(with_progress(source, tally), partition, options.count)
    if options.rate is not None:
        portions = _paced(portions, options.rate, tally)
    try:
        for portion, number in portions:
            if tally.error:
                return
            with uninterrupted(GRACE):  # else nobody would hear what becomes of records that are queued already
                tally.begin(portion)
                try:
                    _send(producer, topic, portion, number, options.headers, tally)
                except (KafkaError, ConnectionError) as error:  # before any of them is queued
                    tally.settle(portion, range(len(portion)))
                    hint = f"here: -X max.request.size=..., {_alter(topic)}"
                    raise of_place(portion.where(0), _with_hint(error, hint)) from None
    except (CliError, KafkaError):
        tally.wait()
        raise
    tally.wait()


def _raise_error(tally: Tally, topic: str) -> None:
    from hmb.protocol.errors import KafkaError

    try:
        tally.raise_error()
    except KafkaError as error:
        raise _with_hint(error, f"{_alter(topic)} raises that") from None


def _with_hint(error: Exception, hint: str) -> Exception:
    """What to do about a record that is too large."""
    from hmb.protocol.errors import ErrorCode, KafkaError

    if isinstance(error, KafkaError) and error.code is ErrorCode.MESSAGE_TOO_LARGE:
        return KafkaError(error.code, f"{error.message}; {hint}")
    return error


def _alter(topic: str) -> str:
    return f"`hmb topics alter {topic} --config max.message.bytes=...`"


def _cut(portions: Iterator[Portion], partition: int | None, count: int | None) -> Iterator[tuple[Portion, int | None]]:
    """Portions that can go in one call: of one partition, no more than `count` in all, and what is large alone."""
    left = count
    for portion in portions:
        some = portion if left is None else portion[:left]
        if len(some):
            if max(map(len, filter(None, some.values)), default=0) > LARGE:
                pieces = [some[row : row + 1] for row in range(len(some))]
            else:
                pieces = [some]
            for piece in pieces:
                yield from ([(piece, partition)] if partition is not None else _by_partition(piece))
        if left is not None:
            left -= len(some)
            if not left:
                return


def _by_partition(portion: Portion) -> Iterator[tuple[Portion, int | None]]:
    """As the records themselves say, which JSON can."""
    records, lines = portion.records, portion.lines
    if records is None or lines is None or all(record.partition is None for record in records):
        yield portion, None
        return
    by_partition: dict[int | None, list[int]] = {}
    for row, record in enumerate(records):
        by_partition.setdefault(record.partition, []).append(row)
    for partition, rows in by_partition.items():
        some = [records[row] for row in rows]
        yield Portion(portion.source, [lines[row] for row in rows], [it.value for it in some], some), partition


def _paced(
    portions: Iterator[tuple[Portion, int | None]], rate: float, tally: Tally
) -> Iterator[tuple[Portion, int | None]]:
    """So many records a second: a tick's worth of them together, and a pause behind them."""
    width = max(1, int(rate * TICK))
    due = time.monotonic()
    for portion, number in portions:
        for first in range(0, len(portion), width):
            piece = portion[first : first + width]
            now = time.monotonic()
            if due > now:
                tally.pause(due - now)
            due = max(due, now) + len(piece) / rate
            yield piece, number


def _send(
    producer: "Producer", topic: str, portion: Portion, number: int | None, headers: "tuple[Header, ...]", tally: Tally
) -> None:
    records = portion.records
    if len(portion) == 1:
        (value,) = portion.values
        key, timestamp = (records[0].key, records[0].timestamp) if records else (None, None)
        own = records[0].headers if records else ()
        producer.send(topic, value, key, number, (*headers, *own), timestamp, partial(_settle_one, tally, portion))
        return
    keys = timestamps = all_headers = None
    if records is not None:
        keys = [record.key for record in records]
        if any(record.headers for record in records):
            all_headers = [(*headers, *record.headers) for record in records]
        if any(record.timestamp is not None for record in records):
            now = time.time_ns() // 1_000_000
            timestamps = [now if record.timestamp is None else record.timestamp for record in records]
    if headers and all_headers is None:
        all_headers = [headers] * len(portion)
    sent = producer.send_many(topic, portion.values, keys, number, all_headers, timestamps)
    sent.add_done_callback(partial(_settle_many, tally, portion))


def _settle_one(tally: Tally, portion: Portion, delivery: "Delivery") -> None:
    error = delivery.exception()
    tally.settle(portion, () if error is None else (0,), 0, error)


def _settle_many(tally: Tally, portion: Portion, deliveries: "Deliveries") -> None:
    failures = deliveries.failures()
    if not failures:
        tally.settle(portion)
        return
    lost = [row for failure in failures for row in failure.rows]
    first = min(failures, key=lambda failure: failure.caused_elsewhere)
    tally.settle(portion, lost, first.failed_row, first.error, first.caused_elsewhere)
