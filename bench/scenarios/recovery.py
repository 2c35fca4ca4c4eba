"""How long a log takes to be recovered after a kill: every batch checked, the indexes made anew.

    hmb bench recovery                                # 1 GB in batches of 1, 16 and 100 KB
    hmb bench recovery --size 100000000 --batch 200   # bytes

The log is one segment with no recovery point, so that all of it is checked.  Its batches are an idempotent producer's,
as most clients are, so that the producers' state is made again too; their timestamps grow, so that both indexes are.
The file was just written, so it is in the page cache: what is measured is our own work, and a disk adds its reading.
Goal: 2 s for 1 GB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from struct import Struct

from hmb.records import Record, encode_batch
from hmb.records.batch import CRC_START
from hmb.records.crc import crc32c
from hmb.storage.config import LogConfig
from hmb.storage.log import Log

from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by_parameters, median, spread, text
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run

CONFIG = LogConfig(segment_bytes=2**31 - 1, max_message_bytes=2**30)
RECORD_BYTES = 100
# What differs from batch to batch (records/batch.py has the layout).
BASE_OFFSET, CRC, TIMESTAMPS, BASE_SEQUENCE = Struct(">q"), Struct(">I"), Struct(">qq"), Struct(">i")
TIMESTAMPS_START, BASE_SEQUENCE_START = 27, 53


def fill(directory: Path, size: int, batch_size: int) -> int:
    """Write a log of about `size` bytes; returns the number of batches."""
    value = os.urandom(RECORD_BYTES)
    count = max(1, batch_size // (RECORD_BYTES + 10))
    now = time.time_ns() // 1_000_000
    records = [Record(i, now, None, value) for i in range(count)]
    batch = bytearray(encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=0))
    batches = size // len(batch)
    with (directory / f"{0:020d}.log").open("wb", buffering=1 << 20) as file:
        for number in range(batches):
            BASE_OFFSET.pack_into(batch, 0, number * count)
            TIMESTAMPS.pack_into(batch, TIMESTAMPS_START, now + number, now + number)
            BASE_SEQUENCE.pack_into(batch, BASE_SEQUENCE_START, number * count % 2**31)
            CRC.pack_into(batch, CRC_START - CRC.size, crc32c(memoryview(batch)[CRC_START:]))
            file.write(batch)
    return batches


def measure(size: int, batch_size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="hmb-recovery-") as temporary:
        directory = Path(temporary) / "events-0"
        directory.mkdir()
        batches = fill(directory, size, batch_size)
        start, start_cpu = time.perf_counter(), time.process_time()
        log = Log(directory, CONFIG, clean=False)
        seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        rate = log.size / seconds / 1e6
        return {"seconds": seconds, "cpu_seconds": cpu, "mb_per_second": rate, "us_a_batch": seconds / batches * 1e6}


def table(options: argparse.Namespace, _: ExitStack, samples: Samples) -> Iterator[str]:
    progress = Progress(options.repeat * len(options.batch))
    for turn, batch_size in in_turns(options.batch, options.repeat):
        progress.step(f"batches of {batch_size:,} B")
        figures = measure(options.size, batch_size)
        parameters = {"bytes": options.size, "batch_bytes": batch_size}
        samples.add(Sample("recovery", "HMB", "", turn, parameters, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    found = []
    for (size,), of_size in by_parameters(samples, "bytes").items():
        rows = [["batches of", "seconds", "CPU seconds", "MB/s", "us a batch"]]
        for (batch,), runs in by_parameters(of_size, "batch_bytes").items():
            seconds, cpu = str(spread(runs, "seconds")), str(spread(runs, "cpu_seconds"))
            rate, each = median(runs, "mb_per_second", form=",.0f"), median(runs, "us_a_batch")
            rows.append([f"{batch:,} B", seconds, cpu, rate, each])
        found.append(Table(f"{float(size) / 1e9:g} GB that were not closed", rows))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Recover a log after a kill.")
    parser.add_argument("--size", type=at_least_one, default=10**9, help="bytes; default: 1 GB")
    parser.add_argument("--batch", type=at_least_one, nargs="*", default=[1_000, 16_384, 100_000], help="bytes a batch")
    add_suite_options(parser)
    return run("recovery", parser.parse_args(), table)


if __name__ == "__main__":
    sys.exit(main())
