"""What every suite does around its runs: options, samples, lines for people or JSON, and an end without a traceback."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from hmb.protocol.errors import KafkaError

from . import peers
from .report.samples import DIRECTORY, Samples, collect

Lines = Callable[[argparse.Namespace, ExitStack, Samples], Iterator[str]]


def add_suite_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeat", type=at_least_one, default=3, help="turns; default: 3")
    parser.add_argument("--results", type=Path, default=DIRECTORY, help=f"keep every run here; default: {DIRECTORY}")
    parser.add_argument("--publish", metavar="HOST:PORT", help="send the runs to the topic hmb.bench of this broker")
    parser.add_argument(
        "--kafka-dir", type=Path, metavar="DIR", help="Kafka's jars: of `hmb bench fetch-kafka`, or one Kafka's libs"
    )
    parser.add_argument("--json", action="store_true", help="print the runs as JSON, at the end")


def at_least_one(text: str) -> int:
    """The type of an option: a number of things."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def run(suite: str, options: argparse.Namespace, lines: Lines) -> int:
    """Print the lines of a suite as they come; the exit code.

    What the suite starts on the stack is stopped at the end, whichever it is.
    """
    try:
        if options.kafka_dir is not None:
            peers.use_kafka(options.kafka_dir)
        with ExitStack() as stack, collect(suite, options.results, options.publish) as samples:
            for line in lines(options, stack, samples):
                if not options.json:
                    print(line, flush=True)
    except (peers.PeerUnavailable, peers.PeerFailed, KafkaError, OSError) as problem:
        return complain(problem)
    if options.json:
        print(json.dumps(samples.document, indent=1))
    print(f"every run: {samples.path}", file=sys.stderr)
    return 0


def complain(problem: Exception) -> int:
    """One line and the exit code, as all commands have them: 4 for a broker that cannot be reached, 3 for no file."""
    print(f"hmb: {problem}", file=sys.stderr)
    if isinstance(problem, ConnectionError | TimeoutError):
        return 4
    return 3 if isinstance(problem, FileNotFoundError) else 1
