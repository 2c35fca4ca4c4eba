"""`hmb demo`: everything at work once, on real data, in some seconds.

A broker in a temporary directory; the data set streamed in by the producer and read back by the consumer, compared
record by record; a look-up by time, answered by the broker; then the broker stops, and what it left on disk is
looked at: segments, and one look-up in an offset index, step by step. The segments are small (256 KiB, where Kafka's
default is 1 GiB), so that there are several.
"""

import contextlib
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from . import demo_data
from .broker import running_broker
from .shared.common import DAMAGE, CliError, NewPath, json_option, print_json

if TYPE_CHECKING:
    from hmb.storage.segment import Segment

PARTITIONS = 3
BATCH_SIZE = 4096  # small, so that an index has some entries
TOPIC_CONFIG = {
    "segment.bytes": str(256 * 1024),
    "segment.ms": str(20 * 365 * 24 * 3600 * 1000),  # the data are of six years: no new segment for each week of them
    "retention.ms": "-1",  # and old: keep them
}
PACIFIC = timezone(timedelta(hours=-8))
WANTED_TIME = datetime(2012, 12, 24, tzinfo=PACIFIC)
CITY = b"Seattle"
SHOWN = 12  # segments

T = TypeVar("T")


@dataclass
class Findings:
    """What `--json` prints."""

    records: int = 0
    bytes: int = 0
    produce_seconds: float = 0.0
    consume_seconds: float = 0.0
    same: bool = False
    segments: list[dict[str, object]] = field(default_factory=list)


@click.command()
@click.option("--data-dir", type=NewPath(path_type=Path), help="Keep the log here, to look at it afterwards.")
@json_option
def command(data_dir: Path | None, as_json: bool) -> None:
    """See it all: a broker, real data through it, its log."""
    for stop in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(stop) is not signal.SIG_IGN:
            signal.signal(stop, signal.default_int_handler)  # as Ctrl-C, so that what is temporary is removed
    if data_dir is not None and any(data_dir.glob(f"{demo_data.TOPIC}-*")):
        raise CliError(
            f"{data_dir} has a topic {demo_data.TOPIC!r} already, of an earlier demo perhaps; "
            "remove the directory or choose another"
        )
    found = Findings()
    with contextlib.ExitStack() as stack:
        if as_json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        directory = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hmb-demo-")))
        through_the_broker(directory, found)
        segments = show_segments(directory, found)
        show_lookup(segments)
    hmb = "hmb" if shutil.which("hmb") else sys.argv[0]
    if as_json:
        print_json(vars(found))
    elif data_dir:
        click.echo(f"\nThe log stays in {data_dir}; look at it with:\n  {hmb} dump-log {segments[0].path}")
    else:
        click.echo(f"\nNow you, in three terminals:\n  {hmb} broker\n  {hmb} consume events\n  {hmb} produce events")


def through_the_broker(directory: Path, found: Findings) -> None:
    """Produce, consume, compare, look up."""
    started = time.monotonic()
    with running_broker(directory, "127.0.0.1", 0, {}) as broker:
        servers = broker.bootstrap_servers
        seconds = time.monotonic() - started
        step(f"A broker listens on {servers}, {seconds:.2f} s after the start. Its data is in")
        click.echo(f"  {directory}")
        create_topic(servers)
        events = list(demo_data.events())
        found.records, found.bytes = len(events), sum(len(event.value) for event in events)
        produce(servers, events, found)
        consume(servers, events, found)
        look_up_by_time(servers)
    step("The broker is stopped.")


def create_topic(servers: str) -> None:
    from hmb.client import Cluster
    from hmb.client.metadata import topic_error
    from hmb.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

    new_topic = CreateTopicsRequest.CreatableTopic
    configs = [new_topic.CreatableTopicConfig(name=name, value=value) for name, value in TOPIC_CONFIG.items()]
    new = new_topic(name=demo_data.TOPIC, num_partitions=PARTITIONS, replication_factor=1, configs=configs)
    response: CreateTopicsResponse = Cluster(servers).send(CreateTopicsRequest(topics=[new], timeout_ms=10_000))
    for topic in response.topics:
        if topic.error_code:
            raise topic_error(topic.name, topic.error_code, topic.error_message)


def produce(servers: str, events: list[demo_data.Event], found: Findings) -> None:
    from hmb.client import Producer

    started = time.monotonic()
    with Producer(servers, linger_ms=20, batch_size=BATCH_SIZE) as producer:
        futures = [
            producer.send(demo_data.TOPIC, event.value, event.key, timestamp=event.timestamp)
            for event in progress(events, "producing")
        ]
        producer.flush()
    for future in futures:
        future.result()
    found.produce_seconds = time.monotonic() - started
    what = f"{found.records:,} weather events ({found.bytes / 1e6:.1f} MB)"
    step(f"Produced {what} in {found.produce_seconds:.1f} s, each acknowledged.")


def consume(servers: str, events: list[demo_data.Event], found: Findings) -> None:
    from hmb.client import Consumer

    started = time.monotonic()
    received: dict[bytes, list[demo_data.Event]] = {event.key: [] for event in events}
    with Consumer(servers, demo_data.TOPIC, until="end") as consumer:
        for record in progress(consumer, "consuming", len(events)):
            event = demo_data.Event(record.key or b"", record.value or b"", record.timestamp)
            received.setdefault(event.key, []).append(event)
    found.consume_seconds = time.monotonic() - started
    found.same = all(mine == [event for event in events if event.key == key] for key, mine in received.items())
    count = sum(map(len, received.values()))
    if not found.same or count != len(events):
        raise CliError(f"{count:,} records came back, and they are not the ones that were sent", DAMAGE)
    step(f"Consumed {count:,} records in {found.consume_seconds:.1f} s: the same, byte for byte, each key in order.")


def look_up_by_time(servers: str) -> None:
    """The time index: from a timestamp to an offset, then one record from there."""
    from hmb.client import Cluster, Consumer, TopicPartition
    from hmb.client.offsets import list_offsets
    from hmb.client.producing.partitioner import partition_of_key

    partition = TopicPartition(demo_data.TOPIC, partition_of_key(CITY, PARTITIONS))
    asked = int(WANTED_TIME.timestamp() * 1000)
    offset = list_offsets(Cluster(servers), [partition], asked)[partition]
    with Consumer(servers, demo_data.TOPIC, offset=offset, partitions=[partition.partition]) as consumer:
        record = next(iter(consumer))
    step(f"The first record at or after {WANTED_TIME:%Y-%m-%d} in {partition} has offset {offset:,}:")
    for line in re.findall(r".{1,76}(?:,|$)", (record.value or b"").decode()):  # broken behind commas
        click.echo(f"  {line}")


def show_segments(directory: Path, found: Findings) -> "list[Segment]":
    """What is on disk: one line a segment."""
    from hmb.storage.config import LogConfig
    from hmb.storage.segment import Segment

    folders = sorted(directory.glob(f"{demo_data.TOPIC}-*"))
    segments = [
        Segment(folder, int(log.stem), LogConfig()) for folder in folders for log in sorted(folder.glob("*.log"))
    ]
    segments = [segment for segment in segments if segment.size]
    step(f"The log on disk: {len(segments)} segments. A segment is named after the first offset in it.")
    for number, segment in enumerate(segments):
        batches = sum(1 for _ in segment.batches(0, segment.size))
        name = f"{segment.path.parent.name}/{segment.path.name}"
        entries = segment.offset_index.entries
        found.segments.append({"log": name, "bytes": segment.size, "batches": batches, "index_entries": entries})
        if number < SHOWN:
            click.echo(f"  {name} {segment.size:>7,} bytes, {batches:>2} batches, {entries:>2} index entries")
    if len(segments) > SHOWN:
        click.echo(f"  ... and {len(segments) - SHOWN} more")
    return segments


def show_lookup(segments: "list[Segment]") -> None:
    """How the broker finds an offset: the segment by its name, the entry by bisection, the batch by a short scan."""
    segment = segments[len(segments) // 2]
    last = [batch.last_offset for _, batch in segment.batches(0, segment.size)][-1]
    wanted = (segment.base_offset + last) // 2 + 1
    step(f"To find offset {wanted:,} in {segment.path.parent.name}:")
    click.echo(f"  1. the segment: {segment.path.name}, the last to begin at or before it")
    entry = segment.offset_index.lookup(wanted)
    entries = segment.offset_index.entries
    found = f"offset {entry.offset:,} is at byte {entry.position:,}"
    click.echo(f"  2. its index, {entries} entries, by bisection: {found}")
    for steps, (position, batch) in enumerate(segment.batches(entry.position, segment.size)):
        if batch.last_offset >= wanted:
            held = f"offsets {batch.base_offset:,} to {batch.last_offset:,} at byte {position:,}"
            click.echo(f"  3. batch by batch from there, {steps + 1} read: {held}")
            break


def step(text: str) -> None:
    click.secho("* ", fg="green", nl=False)
    click.echo(text)


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """The items, with a bar on standard error where that is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return iter(track(items, what, total, console=console, transient=True, disable=not console.is_terminal))
