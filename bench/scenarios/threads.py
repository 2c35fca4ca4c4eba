"""The thesis' thread layout beside a thread a connection: the same broker, the same producers, in turns.

    hmb bench threads                                   # handlers 1, 2, 4, 8; one producer and three at once
    hmb bench threads --handlers 1 8 --producers 1 4

The thesis' broker passed each request through a channel to an API handler and its answer through another one to a
responder, and used one core of four; its authors blamed the single handler (ch. 10.2.5).  Here the layout is a setting,
`threading=staged` (hmb/broker/network/staged.py), with num.io.threads handlers, so that this can be tried: small
requests, where the way of a request is all there is, and large ones, where the bytes are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass

from .. import peers
from ..load.producers import PerfProducer
from ..peers.targets import Target
from ..progress import Progress
from ..report.samples import Sample, Samples
from ..report.tables import Table, by_parameters, median, over, spread, text, told
from ..report.turns import in_turns
from ..suite import add_suite_options, at_least_one, run
from ..thesis.cells import CELLS, WARM_UP, Cell
from .produce import CLIENTS, produce

SMALL, LARGE = CELLS[0], CELLS[4]
RATE = "records_per_second"


@dataclass(frozen=True)
class Layout:
    """A broker with its threads arranged in one way."""

    handlers: int | None  # None: a thread a connection
    target: Target

    def __str__(self) -> str:
        if self.handlers is None:
            return "a thread a connection"
        return f"staged, {self.handlers} handler{'s' * (self.handlers != 1)}"


def layouts(handlers: Sequence[int], stack: ExitStack) -> list[Layout]:
    brokers = {None: peers.Hmb()} | {
        count: peers.Hmb(config={"threading": "staged", "num.io.threads": str(count)}) for count in handlers
    }
    return [Layout(count, Target.of(stack.enter_context(broker))) for count, broker in brokers.items()]


def together(layout: Layout, producer: PerfProducer, cell: Cell, producers: int, topic: str) -> dict[str, float]:
    """The figures of some producers at once, each with a topic and a share of the cell's records of its own."""
    share = cell.scaled(1 / producers)
    before = layout.target.cpu_seconds()
    with ThreadPoolExecutor(producers) as pool:
        runs = list(pool.map(lambda n: produce(layout.target, producer, share, f"{topic}-{n}"), range(producers)))
    rate = sum(run["records_per_second"] for run in runs)
    return {"records_per_second": rate, "p99_ms": max(run["p99_ms"] for run in runs), **layout.target.costs(before)}


def measure(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    contestants = layouts(options.handlers, stack)
    producer = CLIENTS[options.client]()
    cells = [cell.scaled(options.scale) for cell in (SMALL, LARGE)]
    progress = Progress(len(contestants) * (1 + options.repeat * len(cells) * len(options.producers)))
    for layout in contestants:
        progress.step(f"warm-up, {layout}")
        produce(layout.target, producer, WARM_UP, "warm-up")
    for cell in cells:
        for producers in options.producers:
            for turn, layout in in_turns(contestants, options.repeat):
                progress.step(f"{cell}, {producers} at once, {layout}")
                figures = together(
                    layout, producer, cell, producers, f"t-{cell.message}-{cell.batch}-{producers}-{turn}"
                )
                parameters: dict[str, float | str] = {"layout": str(layout), "handlers": layout.handlers or 0}
                parameters |= {"message_bytes": cell.message, "batch_bytes": cell.batch, "producers": producers}
                samples.add(Sample("threads", "HMB", producer.name, turn, parameters, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    found = []
    for (size, batch, producers), runs in by_parameters(samples, "message_bytes", "batch_bytes", "producers").items():
        layouts = by_parameters(runs, "layout", "handlers")
        alone = next((each for (_, handlers), each in layouts.items() if not handlers), [])
        rows = [["threads of the broker", "records/s", "over a thread a connection", "p99 ms", "broker CPU s"]]
        for (layout, _), of_layout in sorted(layouts.items(), key=lambda each: each[0][1]):
            ratio = "" if of_layout is alone else told(over(of_layout, alone, RATE))
            costs = median(of_layout, "p99_ms", form=",.0f"), median(of_layout, "broker_cpu_seconds", form=",.2f")
            rows.append([str(layout), str(spread(of_layout, RATE)), ratio, *costs])
        at_once = f"{producers} producer{'s' * (producers != 1)} of {runs[0].client}"
        found.append(Table(f"{size} B, batch {batch}, {at_once}", rows))
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The thesis' thread layout beside a thread a connection.")
    parser.add_argument("--handlers", type=at_least_one, nargs="+", default=[1, 2, 4, 8], help="of the staged layout")
    parser.add_argument("--producers", type=at_least_one, nargs="+", default=[1, 3], help="at once")
    parser.add_argument("--client", choices=list(CLIENTS), default="4.3.0", help="Kafka's producer, or HMB's")
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("threads", parse(), measure)


if __name__ == "__main__":
    sys.exit(main())
