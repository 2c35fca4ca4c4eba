"""`hmb consume`: print the records of topics.

`hmb consume` writes all records of a poll with one call of write(), which makes the cost for each record small.
For example, a poll returns 3,000 records. The command converts them to one bytes object, and writes this object
to standard output. The command uses no buffer that could hold records back. A program that reads the output
therefore receives the records immediately after the poll.

If a topic does not exist yet, `hmb consume` does not end with an error, because users often start a consumer
before the producer. The command prints a note and waits until somebody creates the topic. By default, `hmb
consume` prints only records that are newer than its own start. All records of the new topic are newer, so the
command prints all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ..shared.errors import USAGE, CliError
from ..shared.headings import GroupedCommand
from ..shared.interruption import sigterm_as_ctrl_c
from ..shared.streams import write_out
from ..shared.waiting_notice import WaitingNotice
from .commits import GRACE, GroupCommits
from .consume_options import ConsumeOptions, consume_options
from .consume_share import consume_share
from .filters import record_filter
from .idle_limit import IdleLimit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hmb.client import Consumer, ConsumerRecord, TopicPartition
    from hmb.client.offsets import Until

Write = Callable[[list["ConsumerRecord"]], bytes]

RETRY_FOR = 30.0  # seconds for which the command tries to reconnect to a broker
# A broker without new records responds after `fetch.max.wait.ms`. If this time is at most SOON (ms), three seconds
# without a response show a problem. The command then prints that it is waiting for the broker.
SOON = 1000
POLL_RECORDS = 10_000  # the maximum number of records that one poll returns (Kafka's default is 500)


@click.command(cls=GroupedCommand)
@consume_options
def command(**given: Any) -> None:
    """Print the records of TOPICS, one record per line.

    By default, print only records that are written after the command starts, until the user presses Ctrl-C. If a
    topic does not exist yet, wait until it is created.
    """
    options = ConsumeOptions(**given)
    options.check()
    write = writer(options)
    if options.share is not None:
        consume_share(options, write)
        return
    keywords = options.keywords()
    answers_soon = keywords.get("max_wait_ms", 0) <= SOON
    progress = ReadProgress(keywords.get("until"), in_group="group" in keywords, answers_soon=answers_soon)
    servers = options.client.servers
    joining = f"group {keywords.get('group')} to assign partitions"
    notice = WaitingNotice(
        lambda: joining if progress.is_joining else f"{servers} to answer, {RETRY_FOR:g} s at most", progress.state
    )
    with notice, _consumer(options, keywords) as (consumer, commits):
        _print_missing(options, consumer)
        _copy(consumer, write, options, progress, commits)
        missing = set(options.topics) - consumer.subscription
        if missing:  # --timeout-ms or --count ended the command before the topic existed.
            raise _no_such_topic(min(missing))


def writer(options: ConsumeOptions) -> Write:
    """Return the function that turns records into the bytes that the command prints."""
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
class ReadProgress:
    """Counts what the command has read and printed.

    If the counts do not change for some seconds, the thread `WaitingNotice` prints that the command is still waiting.
    """

    until: Until
    in_group: bool
    answers_soon: bool  # Whether the broker responds within SOON, even if it has no new records.
    printed: int = 0
    polled: int = 0
    answers: int = 0
    is_waiting: bool = True
    is_joining: bool = False  # Whether the member waits until the group assigns partitions to it.

    def state(self) -> tuple[int, int] | None:
        """Return the number of received records and the number of received responses, or None.

        At least one of these numbers changes each time the broker responds. If both stay the same for some seconds, the
        command prints that it is still waiting. None means that the command is not waiting for a response.
        """
        return (self.polled, self.answers) if self.is_waiting else None


@contextmanager
def _consumer(options: ConsumeOptions, keywords: dict[str, Any]) -> Iterator[tuple[Consumer, GroupCommits | None]]:
    """Open a consumer, and close it at the end of the `with` block.

    A consumer that belongs to a group commits the offsets of the printed records at the end of the block, and then
    leaves the group. It does both even after an error. With `enable.auto.commit=false`, it commits nothing.
    """
    if "group" not in keywords:
        consumer = _open(options, **keywords)
        yield consumer, None
        consumer.close()  # Not necessary after an error: the process ends, and its connections close.
        return
    commits = GroupCommits() if keywords.pop("auto_commit", True) else None
    if commits is not None:
        keywords["on_revoked"] = lambda partitions: commits.before_revocation(member, partitions)
    keywords.setdefault("max_poll_records", POLL_RECORDS)
    member: Consumer = _open(options, auto_commit=False, **keywords)
    with sigterm_as_ctrl_c():
        try:
            yield member, commits
        finally:
            if commits is not None:
                commits.finish(member)
            member.close(GRACE)


def _open(options: ConsumeOptions, **keywords: Any) -> Consumer:
    from hmb.client import Consumer

    try:
        return Consumer(options.client.servers, *dict.fromkeys(options.topics), retry_for=RETRY_FOR, **keywords)
    except ValueError as error:  # The value of an option or a setting is out of range.
        raise CliError(str(error), USAGE) from error


def _print_missing(options: ConsumeOptions, consumer: Consumer) -> None:
    """Print a note for each topic that does not exist yet, and a note if the pattern matches no topic."""
    for topic in dict.fromkeys(options.topics):
        if topic not in consumer.subscription:
            hint = "waiting for it (Ctrl-C ends, --no-wait does not wait)"
            click.echo(f"hmb: topic {topic!r} does not exist yet; {hint}", err=True)
    if options.pattern is not None and not consumer.subscription:
        click.echo(f"hmb: no topic matches {options.pattern.pattern!r}", err=True)


def _no_such_topic(name: str) -> Exception:
    from hmb.client.metadata import topic_error
    from hmb.protocol.errors import ErrorCode

    return topic_error(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _copy(
    consumer: Consumer, write: Write, options: ConsumeOptions, progress: ReadProgress, commits: GroupCommits | None
) -> None:
    """Print the records that `consumer` reads.

    These options set a limit:

    - `-o FROM:TO`: read each partition from FROM to TO. `12:40` means offsets 12 to 39.
    - `--exit`, `--tail`: read each partition up to the current end of its log.
    - `--count`: print at most this number of records.
    - `--timeout-ms`: end if no record arrives for this time (ms).
    """
    keep = record_filter(options.filter_keys, options.filter_values, options.filter_headers)
    notes = EndNotes() if not options.quiet and (options.verbose or sys.stderr.isatty()) else None
    idle = IdleLimit(options.timeout_ms)
    is_enough = _end_of_log(consumer, progress)
    while not consumer.at_end and not is_enough() and (options.count is None or progress.printed < options.count):
        left = None if options.count is None else options.count - progress.printed
        progress.is_joining = progress.in_group and not consumer.assignment and bool(consumer.subscription)
        is_reading = progress.answers_soon and bool(consumer.assignment)
        progress.is_waiting = progress.until is not None or progress.is_joining or is_reading
        records = consumer.poll(idle.poll_timeout, left)
        progress.is_waiting = False
        progress.answers = consumer.metrics().fetches
        progress.polled += len(records)
        with nullcontext() if commits is None else commits.printing(consumer):
            shown = records if keep is None else keep(records)
            if shown:
                write_out(write(shown))
            progress.printed += len(shown)
        if notes is not None:
            notes.print_new(consumer)
        if idle.is_over(has_records=bool(records)):
            return


def _end_of_log(consumer: Consumer, progress: ReadProgress) -> Callable[[], bool]:
    """Return a function that checks whether the command has read all partitions up to TO (`-o FROM:TO`).

    A log can end before the offset TO. For example, TO is 100, but the log ends at offset 60 when the command
    starts. The command reads this partition only up to offset 60. Otherwise it would wait for records that do not
    exist yet.

    If the command runs in a group, or if TO is not an offset, the returned function always returns False.
    """
    until = progress.until
    if progress.in_group or not isinstance(until, int):
        return lambda: False
    ends = consumer.end_offsets(consumer.assignment)
    if any(consumer.position(it) > end for it, end in ends.items()):
        return lambda: False  # The log ends before FROM. The first poll raises an error.
    return lambda: all(consumer.position(it) >= min(until, end) for it, end in ends.items())


class EndNotes:
    """Prints a note each time the consumer reaches the end of a partition. kcat prints the same text."""

    def __init__(self) -> None:
        self._printed: dict[TopicPartition, int] = {}

    def print_new(self, consumer: Consumer) -> None:
        for partition in consumer.assignment:
            if consumer.lag(partition) != 0:
                continue
            position = consumer.position(partition)
            if self._printed.get(partition) != position:
                self._printed[partition] = position
                topic, number = partition
                click.echo(f"% Reached end of topic {topic} [{number}] at offset {position}", err=True)
