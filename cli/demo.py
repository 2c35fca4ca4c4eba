"""`hmb demo`: show in a few seconds how a broker handles real data.

The demo starts a broker in a temporary directory. A producer sends the data set. A consumer reads the records back, and
the demo compares them with the records that were sent. The demo also asks the broker for the first record at or after a
given time. After that, the demo stops the broker and shows the log on disk: its segments, and the steps of a look-up in
an offset index.

In the demo, a segment has at most 256 KiB, so that the log has several segments. Kafka's default is 1 GiB.
"""

from __future__ import annotations

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

from hmb.defaults import DEFAULT_HOST

from . import demo_data
from .broker import running_broker
from .shared.errors import DAMAGE, CliError
from .shared.output import json_option, print_json
from .shared.parameters import NewPath

if TYPE_CHECKING:
    from hmb.storage.segment import Segment

PARTITIONS = 3
BATCH_SIZE = 4096  # bytes; the batches are small, so that each index has several entries
TOPIC_CONFIG = {
    "segment.bytes": str(256 * 1024),
    # With the default (a week), the demo would start a segment for each week of its six years of data. So set 20 years.
    "segment.ms": str(20 * 365 * 24 * 3600 * 1000),
    "retention.ms": "-1",  # The records are years old. By default, the broker would delete them.
}
PACIFIC = timezone(timedelta(hours=-8))
LOOKED_UP_TIME = datetime(2012, 12, 24, tzinfo=PACIFIC)
CITY = b"Seattle"
MAX_SHOWN = 12  # the demo prints at most this number of segments

T = TypeVar("T")


@dataclass
class DemoResult:
    """The results of the demo. `--json` prints them."""

    records: int = 0
    bytes: int = 0
    produce_seconds: float = 0.0
    consume_seconds: float = 0.0
    same: bool = False
    segments: list[dict[str, object]] = field(default_factory=list)


@click.command()
@click.option(
    "--data-dir", type=NewPath(path_type=Path),
    help="Store the broker's files in this directory, and keep them after the demo.",
)
@json_option
def command(data_dir: Path | None, as_json: bool) -> None:
    """Start a broker, send real data to it, and show its log."""
    for stop in (signal.SIGTERM, signal.SIGHUP):
        # Let SIGTERM and SIGHUP raise KeyboardInterrupt, so that the demo removes its temporary directory.
        if signal.getsignal(stop) is not signal.SIG_IGN:
            signal.signal(stop, signal.default_int_handler)
    if data_dir is not None and any(data_dir.glob(f"{demo_data.TOPIC}-*")):
        raise CliError(
            f"{data_dir} contains a topic {demo_data.TOPIC!r} already, perhaps from an earlier demo; "
            "remove the directory or choose another"
        )
    result = DemoResult()
    with contextlib.ExitStack() as stack:
        if as_json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        directory = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hmb-demo-")))
        run_broker(directory, result)
        segments = show_segments(directory, result)
        show_lookup(segments)
    hmb = "hmb" if shutil.which("hmb") else sys.argv[0]
    if as_json:
        print_json(vars(result))
    elif data_dir:
        click.echo(f"\nThe log stays in {data_dir}. Look at it with:\n  {hmb} dump-log {segments[0].path}")
    else:
        click.echo(
            f"\nContinue in three terminals:\n  {hmb} broker\n  {hmb} consume events\n  {hmb} produce events"
        )


def run_broker(directory: Path, result: DemoResult) -> None:
    """Start a broker, send and read data, find the first record at or after a date, and stop the broker."""
    started = time.monotonic()
    with running_broker(directory, DEFAULT_HOST, 0, {}) as broker:
        servers = broker.bootstrap_servers
        seconds = time.monotonic() - started
        step(f"A broker listens on {servers}, {seconds:.2f} s after the start. Its files are in")
        click.echo(f"  {directory}")
        create_topic(servers)
        events = list(demo_data.events())
        result.records, result.bytes = len(events), sum(len(event.value) for event in events)
        produce(servers, events, result)
        consume(servers, events, result)
        look_up_by_time(servers)
    step("The broker is stopped.")


def create_topic(servers: str) -> None:
    from hmb.client import Admin, NewTopic
    from hmb.client.admin import raised

    with Admin(servers) as admin:
        raised(admin.create_topics([NewTopic(demo_data.TOPIC, PARTITIONS, configs=TOPIC_CONFIG)])[demo_data.TOPIC])


def produce(servers: str, events: list[demo_data.WeatherEvent], result: DemoResult) -> None:
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
    result.produce_seconds = time.monotonic() - started
    what = f"{result.records:,} weather events ({result.bytes / 1e6:.1f} MB)"
    step(f"A producer sent {what} in {result.produce_seconds:.1f} s, all acknowledged.")


def consume(servers: str, events: list[demo_data.WeatherEvent], result: DemoResult) -> None:
    from hmb.client import Consumer

    started = time.monotonic()
    received: dict[bytes, list[demo_data.WeatherEvent]] = {event.key: [] for event in events}
    with Consumer(servers, demo_data.TOPIC, until="end") as consumer:
        for record in progress(consumer, "consuming", len(events)):
            event = demo_data.WeatherEvent(record.key or b"", record.value or b"", record.timestamp)
            received.setdefault(event.key, []).append(event)
    result.consume_seconds = time.monotonic() - started
    result.same = all(mine == [event for event in events if event.key == key] for key, mine in received.items())
    count = sum(map(len, received.values()))
    if not result.same or count != len(events):
        raise CliError(f"{count:,} records were read, and they differ from those that were sent", DAMAGE)
    step(f"A consumer read {count:,} records in {result.consume_seconds:.1f} s: the same bytes, each key in order.")


def look_up_by_time(servers: str) -> None:
    """Ask the broker for the first offset at or after a time, and read the record at this offset."""
    from hmb.client import Cluster, Consumer, TopicPartition
    from hmb.client.offsets import list_offsets
    from hmb.client.producing.partitioner import partition_of_key

    partition = TopicPartition(demo_data.TOPIC, partition_of_key(CITY, PARTITIONS))
    timestamp = int(LOOKED_UP_TIME.timestamp() * 1000)
    offset = list_offsets(Cluster(servers), [partition], timestamp)[partition]
    with Consumer(servers, demo_data.TOPIC, offset=offset, partitions=[partition.partition]) as consumer:
        record = next(iter(consumer))
    step(f"The first record at or after {LOOKED_UP_TIME:%Y-%m-%d} in {partition} has offset {offset:,}:")
    # Divide the text into lines of at most 77 characters. Each line except the last one ends with a comma.
    for line in re.findall(r".{1,76}(?:,|$)", (record.value or b"").decode()):
        click.echo(f"  {line}")


def show_segments(directory: Path, result: DemoResult) -> list[Segment]:
    """Print a line for each segment of the log on disk. Return the segments."""
    from hmb.storage.config import LogConfig
    from hmb.storage.segment import Segment

    folders = sorted(directory.glob(f"{demo_data.TOPIC}-*"))
    segments = [
        Segment(folder, int(log.stem), LogConfig()) for folder in folders for log in sorted(folder.glob("*.log"))
    ]
    segments = [segment for segment in segments if segment.size]
    step(f"The log on disk has {len(segments)} segments. The name of a segment is its first offset.")
    for number, segment in enumerate(segments):
        batches = sum(1 for _ in segment.batches(0, segment.size))
        name = f"{segment.path.parent.name}/{segment.path.name}"
        entries = segment.offset_index.entries
        result.segments.append({"log": name, "bytes": segment.size, "batches": batches, "index_entries": entries})
        if number < MAX_SHOWN:
            click.echo(f"  {name} {segment.size:>7,} bytes, {batches:>2} batches, {entries:>2} index entries")
    if len(segments) > MAX_SHOWN:
        click.echo(f"  ... and {len(segments) - MAX_SHOWN} more")
    return segments


def show_lookup(segments: list[Segment]) -> None:
    """Print the three steps in which the broker finds an offset: segment, index entry, batch."""
    segment = segments[len(segments) // 2]
    last = [batch.last_offset for _, batch in segment.batches(0, segment.size)][-1]
    wanted = (segment.base_offset + last) // 2 + 1
    step(f"The broker finds offset {wanted:,} of {segment.path.parent.name} in three steps:")
    click.echo(f"  1. segment {segment.path.name}, the last that begins at or below it")
    entry = segment.offset_index.lookup(wanted)
    entries = segment.offset_index.entries
    found = f"offset {entry.offset:,} is at byte {entry.position:,}"
    click.echo(f"  2. binary search in {entries} index entries: {found}")
    for steps, (position, batch) in enumerate(segment.batches(entry.position, segment.size), 1):
        if batch.last_offset >= wanted:
            contents = f"offsets {batch.base_offset:,} to {batch.last_offset:,} at byte {position:,}"
            click.echo(f"  3. scan of {steps} batches from there: {contents}")
            break


def step(text: str) -> None:
    click.secho("* ", fg="green", nl=False)
    click.echo(text)


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield the items. If standard error is a terminal, show a progress bar there."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return iter(track(items, what, total, console=console, transient=True, disable=not console.is_terminal))
