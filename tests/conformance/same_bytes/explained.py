"""Why HMB answers otherwise than Kafka, where it does.

Each entry is a pattern on rows, fields and values, and a reason.  An entry that explains nothing (any more) fails the
test, so this list says exactly how HMB differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

# Fields that are each broker's own.
MASKED = frozenset({"throttle_time_ms", "cluster_id", "host", "port"})

# APIs that HMB does not serve: this list may only shrink.
NOT_SERVED: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Explanation:
    """All four are patterns as of a shell (`*`, `?`)."""

    rows: str
    field: str
    ours: str
    kafka: str
    why: str

    def covers(self, row: str, field: str, ours: str, kafka: str) -> bool:
        pairs = ((row, self.rows), (field, self.field), (ours, self.ours), (kafka, self.kafka))
        return all(fnmatchcase(value, pattern) for value, pattern in pairs)


EXPLAINED: list[Explanation] = []
