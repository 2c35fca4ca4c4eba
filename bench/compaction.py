"""How long compaction takes: HMB's cleaner beside Kafka 4.3.0's, on the very same segments, in turns.

    hmb bench compaction                                   # 1 GB, uncompressed and lz4, three turns
    hmb bench compaction --size 100000000 --codecs none --repeat 1

The log: records with values of 100 B, keys drawn at random of which there are a tenth as many as records, in batches of
16 KB before compression, in segments of 100 MB.  It is written once, and put into each broker's data directory before
the broker starts: a topic of one partition that was never compacted.  One record more, in a segment of its own, is the
active segment, which a cleaner leaves alone.

Neither broker is asked for the time.  The topic starts with a `min.compaction.lag.ms` that forbids its compaction; the
clock starts when a request sets it to 0, and stops when `cleaner-offset-checkpoint` says that all up to the active
segment is clean, which both write when the new segments are in place.  CPU is that of the broker's process between the
two.  Before, each has compacted another topic, of a third of the size, because Kafka's JIT compiler needs a warm-up.

Both clean with one thread, unthrottled, with a buffer for keys of 128 MB (the defaults), and look for work every 20 ms.
A run counts only if the log then holds one record of each key.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hmb.records import Codec, Record, RecordBatch, encode_batch
from hmb.storage.checkpoints import TopicPartition, read_offsets
from hmb.storage.config import LogConfig
from hmb.storage.dump.segment_files import walk
from hmb.storage.manifest import DamagedStateFile
from hmb.storage.segment import Segment
from hmb.storage.time_index import TimestampOffset

from . import peers, topics
from .progress import Progress
from .samples import Sample, Samples
from .suite import add_suite_options, at_least_one, run
from .tables import Table, by, by_parameters, median, over, spread, text, told
from .targets import kinds_here
from .turns import in_turns

TOPIC, WARM_UP = "events", "warm-up"
VALUE_BYTES, BATCH_BYTES, SEGMENT_BYTES = 100, 16_384, 100_000_000
RECORD_BYTES = VALUE_BYTES + 21  # with a key of 13 bytes
DUPLICATES = 10  # records per key
ROUND_SECONDS = 600.0
LAG, FOREVER = "min.compaction.lag.ms", str(2**63 - 1)
CLEANER = {
    "log.cleanup.policy": "compact",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.backoff.ms": "20",
    "log.segment.bytes": str(SEGMENT_BYTES),
}
CONFIG = LogConfig(segment_bytes=SEGMENT_BYTES)
CODECS = {codec.name.lower(): codec for codec in Codec}


@dataclass(frozen=True)
class Original:
    """A log as its producers left it, in a directory of its own."""

    directory: Path
    size: int  # bytes of its segments, the active one left out
    keys: int
    end: int  # where the active segment begins: the offset up to which a cleaner gets


@dataclass(frozen=True)
class Run:
    """One round of a broker's cleaner."""

    seconds: float
    cpu_seconds: float
    size: int  # bytes left


def write(directory: Path, size: int, codec: Codec) -> Original:
    """A log whose records come to `size` bytes before compression."""
    directory.mkdir()
    timestamp = time.time_ns() // 1_000_000
    choose = random.Random(size)
    values = [choose.randbytes(VALUE_BYTES // 2) + b"." * (VALUE_BYTES // 2) for _ in range(1_000)]
    count = size // RECORD_BYTES
    keys = [f"user-{choose.randrange(count // DUPLICATES):08d}".encode() for _ in range(count)]
    in_batch = BATCH_BYTES // RECORD_BYTES
    segments = [Segment(directory, 0, CONFIG)]
    for offset in range(0, count, in_batch):
        records = [Record(0, timestamp, key, choose.choice(values)) for key in keys[offset : offset + in_batch]]
        append(segments, offset, records, codec)
    before = sum(segment.size for segment in segments)
    segments.append(Segment(directory, count, CONFIG))
    append(segments, count, [Record(0, timestamp, b"the last one", b"")], codec)
    for segment in segments:
        segment.close()
    return Original(directory, before, len(set(keys)), count)


def append(segments: list[Segment], offset: int, records: list[Record], codec: Codec) -> None:
    batch = encode_batch(records, base_offset=offset, codec=codec, leader_epoch=0)
    newest = TimestampOffset(records[0].timestamp, offset + len(records) - 1)
    if segments[-1].is_full(len(batch), newest.offset, newest.timestamp):
        segments.append(Segment(segments[0].path.parent, offset, CONFIG))
    segments[-1].append([batch], newest.offset, newest)


def clean(broker: peers.Peer, original: Original, warm_up: Original) -> Run:
    """Put the logs into the broker's data directory, start it, and measure the round of the first one."""
    with broker:
        topics.create(broker.bootstrap, TOPIC, {LAG: FOREVER})
        topics.create(broker.bootstrap, WARM_UP)
        broker.stop()
        put(original, broker.data_dir / f"{TOPIC}-0")
        put(warm_up, broker.data_dir / f"{WARM_UP}-0")
        os.sync()  # so that nobody writes back what we have copied while the clock runs
        broker.start()
        await_clean(broker, WARM_UP, warm_up.end)
        started, cpu = time.perf_counter(), peers.cpu_seconds(broker.pid)
        topics.alter(broker.bootstrap, TOPIC, LAG, "0")
        await_clean(broker, TOPIC, original.end)
        run = Run(time.perf_counter() - started, peers.cpu_seconds(broker.pid) - cpu, left(broker, original))
        broker.stop()
        return run


def put(original: Original, directory: Path) -> None:
    """Replace the segments of a topic partition, whose broker is not running."""
    for path in directory.glob("0*"):
        path.unlink()
    shutil.copytree(original.directory, directory, dirs_exist_ok=True)


def await_clean(broker: peers.Peer, topic: str, end: int) -> None:
    deadline = time.monotonic() + ROUND_SECONDS
    while clean_up_to(broker, topic) != end:
        if time.monotonic() > deadline:
            raise peers.PeerFailed(f"{broker.name} did not compact {topic}; its log ends:\n{broker.log_tail()}")
        time.sleep(0.005)


def clean_up_to(broker: peers.Peer, topic: str) -> int | None:
    try:
        return read_offsets(broker.data_dir / "cleaner-offset-checkpoint").get(TopicPartition(topic, 0))
    except DamagedStateFile:
        return None  # Kafka makes an empty file first


def left(broker: peers.Peer, original: Original) -> int:
    """The bytes that a round has left, if they are one record of each key."""
    size = records = 0
    for path in sorted((broker.data_dir / f"{TOPIC}-0").glob("*.log")):
        if int(path.stem) < original.end:
            with path.open("rb") as log:
                records += sum(at.batch.records_count for at in walk(log) if isinstance(at.batch, RecordBatch))
            size += path.stat().st_size
    if records != original.keys:
        raise peers.PeerFailed(f"{broker.name} left {records} records of {original.keys} keys")
    return size


def table(options: argparse.Namespace, _: ExitStack, samples: Samples) -> Iterator[str]:
    kinds = kinds_here()
    progress = Progress(len(options.codecs) * len(kinds) * options.repeat)
    for name in options.codecs:
        with tempfile.TemporaryDirectory(prefix="hmb-compaction-") as temporary:
            original = write(Path(temporary) / TOPIC, options.size, CODECS[name])
            warm_up = write(Path(temporary) / WARM_UP, options.size // 3, CODECS[name])
            for turn, kind in in_turns(kinds, options.repeat):
                progress.step(f"{name}, turn {turn + 1}, {kind.name}")
                done = clean(kind(config=CLEANER), original, warm_up)
                figures = {"seconds": done.seconds, "cpu_seconds": done.cpu_seconds, "left_bytes": float(done.size)}
                parameters = {"codec": name, "bytes": options.size, "log_bytes": original.size, "keys": original.keys}
                samples.add(Sample("compaction", kind.name, "", turn, parameters, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    rows = [["codec", "log MB", "broker", "MB left", "seconds", "HMB's speed over it", "CPU seconds", "by CPU"]]
    for (codec, size), runs in by_parameters(samples, "codec", "log_bytes").items():
        brokers = by(runs, lambda run: run.broker)
        ours = brokers[peers.Hmb.name]
        for name, theirs in brokers.items():
            left, log = median(theirs, "left_bytes", 1e6, ",.0f"), f"{float(size) / 1e6:,.0f}"
            seconds, cpu = (
                (str(spread(theirs, figure)), "" if theirs is ours else told(over(theirs, ours, figure)))
                for figure in ("seconds", "cpu_seconds")
            )
            rows.append([str(codec), log, name, left, *seconds, *cpu])
    return [Table("One round of the cleaner, on the same segments", rows)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hmb bench compaction", description="HMB's cleaner beside Kafka 4.3.0's.")
    parser.add_argument("--size", type=at_least_one, default=10**9, help="bytes before compression (default: 1 GB)")
    parser.add_argument("--codecs", nargs="+", choices=list(CODECS), default=["none", "lz4"])
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("compaction", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
