"""A member of a share group: it reads a topic as a queue until the queue is empty, and prints what it has read.

This command is an example:
    python -m hmb.bench.load.share_member --bootstrap-server HOST:PORT --topic t --group g --start TIME [--explicit]

All members of a run get the same start time (seconds since 1970). Each member joins the group immediately, but
sends its first ShareFetch request only at the start time. At this time, all members already have their
assignments, so they all begin to read together.

The last line of the output contains three numbers: the number of records, and the times (seconds since 1970) of the
first and of the last poll that returned records. The member ends when no record arrives for IDLE seconds.

With `--explicit`, the member acknowledges each record with a separate call. Without `--explicit`, each poll
acknowledges all records of the previous poll.
"""

from __future__ import annotations

import argparse
import sys
import time

import hmb

from .exit_code import exit_code_of

IDLE = 3.0  # seconds


def read(consumer: hmb.ShareConsumer, *, explicit: bool) -> tuple[int, float, float]:
    """Read until the queue is empty. Return the number of records, and the times of the first and the last arrival."""
    count, first, last = 0, 0.0, 0.0
    while records := consumer.poll(IDLE):
        last = time.time()
        first = first or last
        count += len(records)
        if explicit:
            for record in records:
                consumer.acknowledge(record)
    return count, first, last


def main() -> int:
    parser = argparse.ArgumentParser(description="Read a topic as a queue, and print the number of records.")
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--start", type=float, required=True)
    parser.add_argument("--explicit", action="store_true")
    options = parser.parse_args()

    def work() -> None:
        with hmb.ShareConsumer(
            options.bootstrap_server,
            options.topic,
            group=options.group,
            acknowledgement="explicit" if options.explicit else "implicit",
        ) as consumer:
            time.sleep(max(0.0, options.start - time.time()))
            print(*read(consumer, explicit=options.explicit))

    return exit_code_of(work)


if __name__ == "__main__":
    sys.exit(main())
