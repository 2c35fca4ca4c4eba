"""`hmb consume`: records become lines on standard output.

What a poll gives is printed at once and as one piece, so that nobody who reads it waits for more, and a line costs
little. A group's offsets are committed by this command and not by the consumer: only what has been printed counts as
consumed, whatever ends the command.
"""

import signal
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ..shared.client_config import chosen_servers
from ..shared.common import USAGE, CliError
from ..shared.option_groups import GroupedCommand
from ..shared.patience import Patience
from ..shared.streams import reader_has_left, write_out
from .consume_options import Options, consume_options
from .filters import record_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hmb.client import Consumer, ConsumerRecord, TopicPartition
    from hmb.client.offsets import Until

Write = Callable[[list["ConsumerRecord"]], bytes]

POLL_TIMEOUT = 1.0  # seconds
RETRY_FOR = 30.0  # seconds that a connection may be lost
PROMPT = 1000  # ms that a broker may wait for records and is not said to be silent
POLL_RECORDS = 10_000  # in a group, too, where Kafka's default leaves time for each record
COMMIT_INTERVAL = 5.0  # seconds
GRACE = 5.0  # seconds to commit and to leave the group at the end


@click.command(cls=GroupedCommand)
@consume_options
def command(**given: Any) -> None:
    """Print the records of TOPICS, one a line.

    Starts with the records that come from now on, unless an option says otherwise, and goes on until Ctrl-C.
    """
    options = Options(**given)
    options.check()
    keywords = options.keywords()
    write = writer(options)
    is_prompt = keywords.get("max_wait_ms", 0) <= PROMPT
    reading = Reading(keywords.get("until"), in_group="group" in keywords, is_prompt=is_prompt)
    servers = chosen_servers(keywords, options.servers, options.settings)
    joining = f"group {keywords.get('group')} to share out its partitions"
    patience = Patience(
        lambda: joining if reading.is_joining else f"{servers} to answer, {RETRY_FOR:g} s at most", reading.progress
    )
    with patience, _consumer(servers, options, keywords) as (consumer, commits):
        _copy(consumer, write, options, reading, commits)


def writer(options: Options) -> Write:
    """From records to what is printed."""
    if options.as_json:
        from .record_json import to_json

        return lambda records: "".join([f"{to_json(record)}\n" for record in records]).encode()
    null = b"NULL" if options.null else b""
    if options.format is not None:
        return options.format.writer(null)
    if options.properties:
        from .kafka_format import kafka_format

        format_, null = kafka_format(options.properties)
        return format_.writer(null)
    end = b"\n" if options.record_delimiter is None else options.record_delimiter
    between = options.key_delimiter
    if between is None:
        return lambda records: end.join([null if it.value is None else it.value for it in records]) + end
    return lambda records: b"".join(
        [
            b"%b%b%b%b" % (null if it.key is None else it.key, between, null if it.value is None else it.value, end)
            for it in records
        ]
    )


@dataclass
class Reading:
    """How far it is, and whether that is for the broker to change, and soon."""

    until: "Until"
    in_group: bool
    is_prompt: bool  # a broker that is there answers soon, if only that there is nothing
    printed: int = 0
    polled: int = 0
    answers: int = 0
    awaited: bool = True
    is_joining: bool = False  # a group that has not said yet what is to be read

    def progress(self) -> tuple[int, int] | None:
        return (self.polled, self.answers) if self.awaited else None


class Commits:
    """Commits what has been printed, and nothing that a poll gave and Ctrl-C or a closed pipe kept from the printer."""

    def __init__(self) -> None:
        self._printed: dict[TopicPartition, int] = {}  # next offsets
        self._committed: dict[TopicPartition, int] = {}
        self._unanswered = 0
        self._told = self._is_finished = False
        self._at = time.monotonic()

    @contextmanager
    def printing(self, consumer: "Consumer") -> "Iterator[None]":
        """Around the printing of what was polled last; now and then it commits."""
        settled = (it for it in consumer.assignment if consumer.lag(it) is not None)
        positions = {partition: consumer.position(partition) for partition in settled}
        yield
        self._printed = positions
        if time.monotonic() - self._at >= COMMIT_INTERVAL:
            self._at = time.monotonic()
            self._send(consumer, consumer.assignment)

    def before_giving_up(self, consumer: "Consumer", partitions: "Iterable[TopicPartition]") -> None:
        """Commit these now; whoever gets them goes on from there."""
        from hmb.protocol.errors import KafkaError

        offsets = {} if self._is_finished else self._news(partitions)
        try:
            if offsets:
                consumer.commit(offsets)
                self._told = False
            self._committed |= offsets
        except (KafkaError, ConnectionError) as error:
            self._tell(error)

    def finish(self, consumer: "Consumer") -> None:
        """Commit what is left, and leave the group; a broker that says nothing is not waited for long."""
        self._send(consumer, consumer.assignment)
        self._is_finished = True  # what this commit cannot do, another one would not do either
        consumer.close(GRACE)
        if self._unanswered:
            self._tell(f"no answer within {GRACE:g} s")

    def _send(self, consumer: "Consumer", partitions: "Iterable[TopicPartition]") -> None:
        offsets = self._news(partitions)
        if offsets:
            self._unanswered += 1
            self._committed |= offsets
            consumer.commit_async(offsets, self._answered)

    def _answered(self, offsets: object, error: Exception | None) -> None:
        self._unanswered -= 1
        if error is None:
            self._told = False
        else:
            self._committed.clear()
            self._tell(error)

    def _tell(self, why: object) -> None:
        """Once, until a commit works again."""
        if self._told:
            return
        self._told = True
        click.echo(f"hmb: what was printed last is not committed, and may be printed again: {why}", err=True)

    def _news(self, partitions: "Iterable[TopicPartition]") -> "dict[TopicPartition, int]":
        return {
            partition: self._printed[partition]
            for partition in partitions
            if partition in self._printed and self._printed[partition] != self._committed.get(partition)
        }


@contextmanager
def _consumer(servers: str, options: Options, keywords: dict[str, Any]) -> "Iterator[tuple[Consumer, Commits | None]]":
    """A consumer; one in a group commits what was printed and leaves, however it ends."""
    from hmb.client import Consumer

    topics = dict.fromkeys((*options.topics, *options.more_topics))
    if "group" not in keywords:
        consumer = _made(Consumer, servers, *topics, **keywords)
        yield consumer, None
        consumer.close()  # after Ctrl-C the end of the process does that, and at once
        return
    commits = Commits() if keywords.pop("auto_commit", True) else None
    if commits is not None:
        keywords["on_revoked"] = lambda partitions: commits.before_giving_up(member, partitions)
    keywords.setdefault("max_poll_records", POLL_RECORDS)
    member: Consumer = _made(Consumer, servers, *topics, auto_commit=False, **keywords)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: it commits and leaves
    try:
        yield member, commits
    finally:
        if commits is not None:
            commits.finish(member)
        member.close(GRACE)
        signal.signal(signal.SIGTERM, before)


def _made(kind: "type[Consumer]", *arguments: str, **keywords: Any) -> "Consumer":
    try:
        return kind(*arguments, retry_for=RETRY_FOR, **keywords)
    except ValueError as error:  # what an option or a setting says cannot be
        raise CliError(str(error), USAGE) from error


def _copy(consumer: "Consumer", write: Write, options: Options, reading: Reading, commits: Commits | None) -> None:
    keep = record_filter(options.filter_keys, options.filter_values, options.filter_headers)
    notes = EndNotes() if not options.quiet and (options.verbose or sys.stderr.isatty()) else None
    idle = None if options.timeout_ms is None else options.timeout_ms / 1000
    last = time.monotonic()
    wait = POLL_TIMEOUT if idle is None else min(POLL_TIMEOUT, idle)
    is_enough = _reached(consumer, reading)
    if options.pattern is not None and not consumer.subscription:
        click.echo(f"hmb: no topic matches {options.pattern!r}", err=True)
    while not consumer.at_end and not is_enough() and (options.count is None or reading.printed < options.count):
        left = None if options.count is None else options.count - reading.printed
        reading.is_joining = reading.in_group and not consumer.assignment
        is_reading = reading.is_prompt and bool(consumer.assignment)
        reading.awaited = reading.until is not None or reading.is_joining or is_reading
        records = consumer.poll(wait, left)
        reading.awaited = False
        reading.answers = consumer.metrics().fetches
        reading.polled += len(records)
        with nullcontext() if commits is None else commits.printing(consumer):
            _print(write, records if keep is None else keep(records), reading)
        if notes is not None:
            notes.tell(consumer)
        if records:
            last = time.monotonic()
        elif reader_has_left():
            raise BrokenPipeError
        elif idle is not None and time.monotonic() - last >= idle:
            return


def _reached(consumer: "Consumer", reading: "Reading") -> Callable[[], bool]:
    """FROM:TO ends where the log does, if that is before TO: the records behind it may never come."""
    until = reading.until
    if reading.in_group or not isinstance(until, int):
        return lambda: False
    ends = consumer.end_offsets(consumer.assignment)
    if any(consumer.position(it) > end for it, end in ends.items()):
        return lambda: False  # there is no such offset, as the first poll will say
    return lambda: all(consumer.position(it) >= min(until, end) for it, end in ends.items())


def _print(write: Write, records: "list[ConsumerRecord]", reading: Reading) -> None:
    """Print many records at once, and see them off: whoever reads them should not wait."""
    if records:
        write_out(write(records))
    reading.printed += len(records)


class EndNotes:
    """Says on standard error, once each time, that a partition is read to its end; kcat has the same words."""

    def __init__(self) -> None:
        self._told: dict[TopicPartition, int] = {}

    def tell(self, consumer: "Consumer") -> None:
        for partition in consumer.assignment:
            if consumer.lag(partition) != 0:
                continue
            position = consumer.position(partition)
            if self._told.get(partition) != position:
                self._told[partition] = position
                topic, number = partition
                click.echo(f"% Reached end of topic {topic} [{number}] at offset {position}", err=True)
