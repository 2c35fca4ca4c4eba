"""What can be set for a topic's logs, under Kafka's names for topics (`segment.bytes` is `LogConfig.segment_bytes`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

MIB = 1024 * 1024
DAY_MS = 24 * 60 * 60 * 1000
NEVER = 2**63 - 1
INT_MAX = 2**31 - 1
POLICIES = ("delete", "compact", "compact,delete", "delete,compact")


def _key(
    default: object, doc: str, minimum: float = -math.inf, maximum: float = NEVER, choices: tuple[str, ...] = ()
) -> Any:
    return field(default=default, metadata={"doc": doc, "minimum": minimum, "maximum": maximum, "choices": choices})


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one log.  Sizes in bytes, times in ms; defaults are Kafka's."""

    # fmt: off
    segment_bytes: int          = _key(1024 * MIB, "start a new segment when this one would grow larger", 14, INT_MAX)
    segment_ms: int             = _key(7 * DAY_MS, "start a new segment when its first record is older", minimum=1)
    segment_index_bytes: int    = _key(10 * MIB, "start a new segment when an index would grow larger", 24, INT_MAX)
    index_interval_bytes: int   = _key(4096, "bytes of log between two index entries", 0, INT_MAX)
    max_message_bytes: int      = _key(MIB + 12, "largest batch that is taken", 0, INT_MAX)
    message_timestamp_type: str = _key("CreateTime", "whose clock", choices=("CreateTime", "LogAppendTime"))
    cleanup_policy: str         = _key("delete", "how old records go", choices=POLICIES)
    delete_retention_ms: int    = _key(DAY_MS, "keep tombstones in a compacted log for", minimum=0)
    min_compaction_lag_ms: int  = _key(0, "do not compact records that are younger", minimum=0)
    max_compaction_lag_ms: int  = _key(NEVER, "compact records at the latest after", minimum=1)
    min_cleanable_dirty_ratio: float = _key(0.5, "compact when so much of it is dirty, 0 to 1", minimum=0, maximum=1)
    retention_ms: int           = _key(7 * DAY_MS, "delete segments that are older; -1: never", minimum=-1)
    retention_bytes: int        = _key(-1, "delete the oldest segments while the log is larger; -1: never", minimum=-1)
    file_delete_delay_ms: int   = _key(60_000, "remove a deleted segment's files after", minimum=0)
    flush_messages: int         = _key(NEVER, "sync after so many records, whatever the producers want", minimum=1)
    flush_ms: int               = _key(NEVER, "sync after so much time", minimum=0)
    # fmt: on

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy
