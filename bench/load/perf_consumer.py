"""Reads a topic with HMB's consumer and prints the speed in the format of kafka-consumer-perf-test.sh.

For example, the following command reads 1,000,000 records of the topic `t` as Arrow batches and prints its speed:
    python -m hmb.bench.load.perf_consumer --bootstrap-server HOST:PORT --topic t --num-records 1000000 --mode arrow

The mode "records" reads record objects with `Consumer.poll`. The mode "arrow" reads Arrow batches with `poll_arrow`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import hmb
from hmb.units import MIB

from .exit_code import exit_code_of

TIMEOUT = 10.0  # The consumer gives up if no record arrives for this time (seconds).
HEADING = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def read_records(consumer: hmb.Consumer) -> Iterator[tuple[int, int]]:
    """Yield (number of records, bytes of their values) for each poll. Read all values, as a real program would."""
    while records := consumer.poll(TIMEOUT):
        yield len(records), sum([len(record.value or b"") for record in records])


def read_arrow(consumer: hmb.Consumer) -> Iterator[tuple[int, int]]:
    """Yield (number of records, bytes of their values) for each Arrow batch."""
    while (batch := consumer.poll_arrow(TIMEOUT)) is not None:
        yield batch.num_rows, batch.column("value").nbytes


READERS = {"records": read_records, "arrow": read_arrow}


def consume(consumer: hmb.Consumer, mode: str, count: int) -> str:
    """Read at least `count` records. Return a line of measurements in the format of kafka-consumer-perf-test.sh.

    If no record arrives for TIMEOUT seconds, the function stops earlier.
    """
    start, started = time.time(), time.perf_counter()
    records = size = 0
    for polled, polled_bytes in READERS[mode](consumer):
        records, size = records + polled, size + polled_bytes
        if records >= count:
            break
    seconds = time.perf_counter() - started
    mib = size / MIB
    rates = f"{mib / seconds:.4f}, {records}, {records / seconds:.4f}"
    fetch = f"0, {seconds * 1000:.0f}, {mib / seconds:.4f}, {records / seconds:.4f}"
    return f"{_timestamp(start)}, {_timestamp(time.time())}, {mib:.4f}, {rates}, {fetch}"


def _timestamp(seconds: float) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}:{int(seconds * 1000) % 1000:03d}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Read a topic as fast as possible and print the rate.")
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--num-records", type=int, required=True)
    parser.add_argument("--mode", choices=list(READERS), default="records")
    options = parser.parse_args()

    def work() -> None:
        with hmb.Consumer(options.bootstrap_server, options.topic) as consumer:
            print(HEADING)
            print(consume(consumer, options.mode, options.num_records))

    return exit_code_of(work)


if __name__ == "__main__":
    sys.exit(main())
