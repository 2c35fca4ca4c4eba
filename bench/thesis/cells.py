"""The cells of the thesis' two benchmarks, and what the thesis measured in them (chapter 10, tables 10.3 and 10.5).

Messages of 100 B in batches of five sizes, and messages of five sizes in batches of 12,800 B; acks=1, one partition,
buffer.memory 67108864.  The thesis counted bytes on the wire, where a message of Kafka 0.8.2 costs 28 B beside its
payload, and it averaged over some 10 s on Ethernet of 1 Gb/s, which no column can exceed.
"""

from __future__ import annotations

from dataclasses import dataclass

MESSAGE_OVERHEAD = 28  # bytes, as the thesis counts


@dataclass(frozen=True)
class Cell:
    """Message and batch size in bytes, how many records take some 5 to 8 s, and the thesis' MB/s by scenario."""

    message: int
    batch: int
    records: int
    thesis: tuple[int, int, int, int]

    def __str__(self) -> str:
        return f"{self.message} B, batch {self.batch}"

    def payload_rate(self, records_per_second: float) -> float:
        """MB/s of what the program sent."""
        return records_per_second * self.message / 1e6

    def wire_rate(self, records_per_second: float) -> float:
        """MB/s as the thesis counts them."""
        return records_per_second * (self.message + MESSAGE_OVERHEAD) / 1e6

    def scaled(self, factor: float) -> Cell:
        """The same with fewer or more records."""
        return Cell(self.message, self.batch, max(1, int(self.records * factor)), self.thesis)


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
WARM_UP = Cell(100, 16_384, 400_000, (0, 0, 0, 0))
