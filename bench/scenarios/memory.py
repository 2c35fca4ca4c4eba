"""What memory a broker holds: idle, and after 10 GB have gone through it.

    hmb bench memory                         # HMB and Kafka 4.3.0, by default but for peers.AS_A_PEER
    hmb bench memory --gigabytes 1           # a quick look

A gigabyte at a time is produced (records of 1,000 B, by HMB's producer) and consumed, each on a topic of its own that
is deleted then.  Resident memory is VmRSS, its peak VmHWM, both of /proc (Linux); the page cache, which keeps the logs'
newest bytes, is the kernel's and not in it.  Idle is right after the start.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from .. import peers
from ..load.consumers import HmbConsumer
from ..load.producers import HmbProducer
from ..peers import topics
from ..peers.targets import kinds_here
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by, median, text
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run
from ..thesis.cells import Cell

GIGABYTE = Cell(1_000, 65_536, 1_000_000, (0, 0, 0, 0))


def pass_through(bootstrap: str, topic: str) -> None:
    """Produce and consume a gigabyte."""
    topics.create(bootstrap, topic)
    HmbProducer().run(bootstrap, topic, GIGABYTE)
    HmbConsumer("arrow").run(bootstrap, topic, GIGABYTE.records)
    topics.delete(bootstrap, topic)


def table(options: argparse.Namespace, _: ExitStack, samples: Samples) -> Iterator[str]:
    kinds = kinds_here()
    progress = Progress(len(kinds) * options.repeat * options.gigabytes)
    for turn, kind in in_turns(kinds, options.repeat):
        with kind() as broker:
            idle = peers.resident_bytes(broker.pid)
            for number in range(options.gigabytes):
                progress.step(f"turn {turn + 1}, {kind.name}, gigabyte {number + 1}")
                pass_through(broker.bootstrap, f"hmb-bench-{number}")
            figures = {
                "idle_bytes": float(idle),
                "resident_bytes": float(peers.resident_bytes(broker.pid)),
                "most_bytes": float(peers.resident_bytes(broker.pid, "VmHWM")),
            }
        samples.add(Sample("memory", kind.name, "HMB", turn, {"gigabytes": options.gigabytes}, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    rows = [["broker", "idle MB", "MB afterwards", "most MB"]]
    for name, runs in by(samples, lambda run: run.broker).items():
        rows.append([name, *(median(runs, each, 1e6) for each in ("idle_bytes", "resident_bytes", "most_bytes"))])
    return [Table(f"Memory of a broker, and after {samples[0].parameters['gigabytes']} GB", rows)]


def main() -> int:
    parser = argparse.ArgumentParser(description="What memory a broker holds, idle and after 10 GB.")
    parser.add_argument("--gigabytes", type=at_least_one, default=10)
    add_suite_options(parser)
    parser.set_defaults(repeat=1)
    return run("memory", parser.parse_args(), table)


if __name__ == "__main__":
    sys.exit(main())
