"""The ten workloads of the benchmarks in a bachelor thesis, with the rates that the thesis measured.

The thesis is about a broker in Haskell. The tables 10.3 and 10.5 of the thesis show how many MB/s a
producer sent to a broker. This module contains the rates from both tables.

A cell is a combination of a message size and a batch size. The batch size benchmark sends messages of 100 B in batches
of five sizes. The message size benchmark sends messages of five sizes in batches of 12,800 B. Both benchmarks use
acks=1, one partition, and buffer.memory 67108864.

The thesis gives the rates in MB/s, and counts all bytes of a message: the bytes of its value, and 28 more.
Each rate is the mean over a run of about 10 s. The network had a bandwidth of 1 Gb/s, so no rate can be higher than
125 MB/s.
"""

from __future__ import annotations

from dataclasses import dataclass

import click

from ..load.workload import Workload
from ..measurement import CommaList
from ..report.samples import Sample


@dataclass(frozen=True)
class Cell(Workload):
    """A workload that takes about 5 to 8 s, with the rates that the bachelor thesis reports for it.

    The tuple `thesis` contains four rates in MB/s, one for each of the scenarios 1 to 4. A scenario is a pair of
    a producer and a broker.
    """

    thesis: tuple[int, int, int, int]

    def thesis_ratio(self, scenario: int) -> float:
        """Return the rate that the thesis measured in a scenario, divided by the thesis's rate in scenario 1."""
        return self.thesis[scenario - 1] / self.thesis[0]


BATCH_SIZE_BENCHMARK = (
    Cell(100, 195, 50_000, (9, 8, 10, 9)),
    Cell(100, 1_387, 450_000, (24, 12, 11, 16)),
    Cell(100, 8_192, 1_100_000, (68, 54, 13, 15)),
    Cell(100, 16_384, 1_500_000, (80, 32, 14, 16)),
    Cell(100, 56_769, 2_000_000, (98, 48, 16, 17)),
)
MESSAGE_SIZE_BENCHMARK = (
    Cell(10, 12_800, 3_000_000, (85, 50, 48, 48)),
    Cell(100, 12_800, 1_300_000, (70, 35, 15, 15)),
    Cell(1_000, 12_800, 350_000, (80, 75, 50, 55)),
    Cell(10_000, 12_800, 30_000, (95, 75, 100, 100)),
    Cell(100_000, 12_800, 7_000, (105, 100, 105, 100)),
)
CELLS = BATCH_SIZE_BENCHMARK + MESSAGE_SIZE_BENCHMARK
cells_option = click.option(
    "--cells",
    type=CommaList(click.IntRange(1, len(CELLS))),
    default=list(range(1, len(CELLS) + 1)),
    metavar="N,N,...",
    help="The workloads (cells) to measure. Cells 1 to 5 differ in the batch size, and 6 to 10 in the message size.  "
    "[default: all ten]",
)


def cell_of(sample: Sample) -> Cell:
    """Return the workload that has the same message size and the same batch size as `sample`."""
    sizes = sample.parameters["message_bytes"], sample.parameters["batch_bytes"]
    return next(cell for cell in CELLS if (cell.message_bytes, cell.batch_bytes) == sizes)
