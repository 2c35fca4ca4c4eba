"""The workload of a performance client: how many records it sends or reads, and how large they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Self

MESSAGE_OVERHEAD = 28  # the bytes that the thesis counts for a message in addition to its value

NO_SECURITY: Mapping[str, str] = MappingProxyType({})  # the security settings of a client that uses no security


@dataclass(frozen=True)
class Workload:
    """The number of records, the size of a record's value in bytes, and the size of a batch in bytes."""

    message_bytes: int
    batch_bytes: int
    records: int

    def __str__(self) -> str:
        return f"{self.message_bytes} B, batch {self.batch_bytes}"

    @property
    def parameters(self) -> dict[str, float | str]:
        """A dict with the message size (bytes), the batch size (bytes) and the number of records."""
        return {"message_bytes": self.message_bytes, "batch_bytes": self.batch_bytes, "records": self.records}

    def rates(self, records_per_second: float) -> dict[str, float]:
        """Convert records/s to two rates in MB/s (1 MB = 1,000,000 bytes).

        The first rate counts only the message itself. The second rate also counts MESSAGE_OVERHEAD bytes for each
        message.
        """
        return {
            "payload_mb_per_second": records_per_second * self.message_bytes / 1e6,
            "wire_mb_per_second": records_per_second * (self.message_bytes + MESSAGE_OVERHEAD) / 1e6,
        }

    def scaled(self, factor: float) -> Self:
        """Return a workload with `factor` times as many records. The new workload has at least one record."""
        return replace(self, records=max(1, int(self.records * factor)))


WARM_UP = Workload(100, 16_384, 400_000)
