"""The workload of a performance client: the number of its records, and their sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

MESSAGE_OVERHEAD = 28  # bytes of a message of Kafka 0.8.2 on the wire without its payload; the thesis counts them


@dataclass(frozen=True)
class Workload:
    """A number of records, with the size of each message and of a batch in bytes."""

    message_bytes: int
    batch_bytes: int
    records: int

    def __str__(self) -> str:
        return f"{self.message_bytes} B, batch {self.batch_bytes}"

    @property
    def parameters(self) -> dict[str, float | str]:
        """The sizes as the parameters of a sample: parameter name -> value."""
        return {"message_bytes": self.message_bytes, "batch_bytes": self.batch_bytes, "records": self.records}

    def rates(self, records_per_second: float) -> dict[str, float]:
        """Return MB/s of payload, and MB/s with the overhead that the thesis counts (1 MB = 1,000,000 bytes)."""
        return {
            "payload_mb_per_second": records_per_second * self.message_bytes / 1e6,
            "wire_mb_per_second": records_per_second * (self.message_bytes + MESSAGE_OVERHEAD) / 1e6,
        }

    def scaled(self, factor: float) -> Self:
        """Return this workload with `factor` times as many records, but at least one."""
        return replace(self, records=max(1, int(self.records * factor)))


WARM_UP = Workload(100, 16_384, 400_000)
