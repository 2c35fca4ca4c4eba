"""HMB's performance consumer: reads a topic from its beginning as fast as it goes, with the lines of Kafka's.

python -m hmb.bench.load.perf_consumer --bootstrap-server HOST:PORT --topic t --num-records 1000000 [--mode arrow]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import hmb
from hmb.protocol.errors import KafkaError

MIB = 1024 * 1024
PATIENCE = 10.0  # seconds without a record
HEADING = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def read_records(consumer: hmb.Consumer) -> Iterator[tuple[int, int]]:
    """(records, bytes of values) poll by poll; the values are looked at, since a program would."""
    while records := consumer.poll(PATIENCE):
        yield len(records), sum([len(record.value or b"") for record in records])


def read_arrow(consumer: hmb.Consumer) -> Iterator[tuple[int, int]]:
    while (batch := consumer.poll_arrow(PATIENCE)) is not None:
        yield batch.num_rows, batch.column("value").nbytes


READERS = {"records": read_records, "arrow": read_arrow}


def consume(consumer: hmb.Consumer, mode: str, wanted: int) -> str:
    """Read them; Kafka's line."""
    start, begun = time.time(), time.perf_counter()
    records = size = 0
    for count, some in READERS[mode](consumer):
        records, size = records + count, size + some
        if records >= wanted:
            break
    seconds = time.perf_counter() - begun
    megabytes = size / MIB
    rates = f"{megabytes / seconds:.4f}, {records}, {records / seconds:.4f}"
    fetch = f"0, {seconds * 1000:.0f}, {megabytes / seconds:.4f}, {records / seconds:.4f}"
    return f"{_moment(start)}, {_moment(time.time())}, {megabytes:.4f}, {rates}, {fetch}"


def _moment(at: float) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(at))}:{int(at * 1000) % 1000:03d}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Read a topic as fast as it goes, and say how fast that was.")
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--num-records", type=int, required=True)
    parser.add_argument("--mode", choices=list(READERS), default="records")
    options = parser.parse_args()
    try:
        with hmb.Consumer(options.bootstrap_server, options.topic) as consumer:
            print(HEADING)
            print(consume(consumer, options.mode, options.num_records))
    except (KafkaError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
