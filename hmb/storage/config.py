"""The settings of a topic's logs, with Kafka's names: `segment.bytes` is `LogConfig.segment_bytes`."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

from hmb.protocol.enums import INT32_MAX, INT64_MAX
from hmb.records import DEFAULT_LIMIT, Codec, TimestampType
from hmb.records.compression.lz4_frame import DEFAULT_LEVEL as LZ4_LEVEL
from hmb.units import DAY_MS, HOUR_MS, MIB

CREATE_TIME, LOG_APPEND_TIME = TimestampType.CREATE_TIME.label, TimestampType.LOG_APPEND_TIME.label
NEVER = INT64_MAX  # the value of a limit that never applies
POLICIES = ("delete", "compact")
CODECS = {"uncompressed": Codec.NONE, **{codec.name.lower(): codec for codec in Codec if codec is not Codec.NONE}}


def _key(
    default: object,
    doc: str,
    minimum: float = -math.inf,
    maximum: float = INT64_MAX,
    choices: tuple[str, ...] = (),
    is_list: bool = False,
) -> Any:
    metadata = {"doc": doc, "minimum": minimum, "maximum": maximum, "choices": choices, "is_list": is_list}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one log. Sizes are in bytes, and times in ms. The defaults are Kafka's."""

    # fmt: off
    segment_bytes: int          = _key(1024 * MIB, "start a new segment before a file exceeds this size", 14, INT32_MAX)
    segment_ms: int             = _key(7 * DAY_MS, "start a new segment when the first record is this old", minimum=1)
    segment_jitter_ms: int      = _key(0, "start a new segment earlier, by a random time up to this", minimum=0)
    segment_index_bytes: int    = _key(10 * MIB, "start a new segment before an index exceeds this size", 24, INT32_MAX)
    preallocate: bool           = _key(False, "give a new segment file its full size at once")
    index_interval_bytes: int   = _key(4096, "bytes of log between two index entries", 0, INT32_MAX)
    max_message_bytes: int      = _key(MIB + 12, "largest batch that the log accepts", 0, INT32_MAX)
    compression_type: str       = _key("producer", "codec of the batches in the log", choices=("producer", *CODECS))
    compression_gzip_level: int = _key(-1, "compression level of gzip", -1, 9, choices=("-1", *map(str, range(1, 10))))
    compression_lz4_level: int  = _key(LZ4_LEVEL, "compression level of lz4", 1, 17)
    compression_zstd_level: int = _key(3, "compression level of zstd", -131_072, 22)
    message_timestamp_type: str = _key(
        CREATE_TIME, "who sets the timestamps: the producer or the broker", choices=(CREATE_TIME, LOG_APPEND_TIME))
    message_timestamp_before_max_ms: int = _key(NEVER, "refuse records older than this", minimum=0)
    message_timestamp_after_max_ms: int = _key(HOUR_MS, "refuse records this far in the future", minimum=0)
    cleanup_policy: str         = _key("delete", "how the log removes old records", choices=POLICIES, is_list=True)
    delete_retention_ms: int    = _key(DAY_MS, "time for which a compacted log keeps tombstones", minimum=0)
    min_compaction_lag_ms: int  = _key(0, "do not compact records younger than this", minimum=0)
    max_compaction_lag_ms: int  = _key(NEVER, "compact records before they are older than this", minimum=1)
    min_cleanable_dirty_ratio: float = _key(
        0.5, "compact the log when at least this share of its bytes is not yet compacted", minimum=0, maximum=1)
    retention_ms: int           = _key(7 * DAY_MS, "delete segments older than this; -1: never", minimum=-1)
    retention_bytes: int        = _key(-1, "delete the oldest segments while the log is larger than this; -1: never")
    file_delete_delay_ms: int   = _key(60_000, "time from a segment's deletion to the removal of its files", minimum=0)
    flush_messages: int         = _key(NEVER, "sync the log after this number of records", minimum=1)
    flush_ms: int               = _key(NEVER, "sync the log after this time", minimum=0)
    max_decompressed: int       = DEFAULT_LIMIT  # limit (bytes) of one decompressed batch; topics cannot change it
    # Each append reads the next three fields. So `__post_init__` computes them only once, from the settings above.
    max_segment_ms: int         = field(init=False)  # segment.ms; in a compacted log at most max.compaction.lag.ms
    looks_at_records: bool      = field(init=False)  # whether each append must read the records of a batch
    uses_log_append_time: bool  = field(init=False)  # whether the broker sets the timestamps, not the producer
    # fmt: on

    def __post_init__(self) -> None:
        ms = min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms
        object.__setattr__(self, "max_segment_ms", ms)
        limits_age = self.message_timestamp_before_max_ms != NEVER
        object.__setattr__(self, "looks_at_records", limits_age or self.compacts)
        object.__setattr__(self, "uses_log_append_time", self.message_timestamp_type == LOG_APPEND_TIME)

    @property
    def codec(self) -> Codec | None:
        """The codec of all batches in the log; None if each batch keeps the codec that its producer chose."""
        return CODECS.get(self.compression_type)

    @property
    def level(self) -> int | None:
        """The compression level of `codec`; None if the codec has no levels."""
        match self.codec:
            case Codec.GZIP:
                return self.compression_gzip_level
            case Codec.LZ4:
                return self.compression_lz4_level
            case Codec.ZSTD:
                return self.compression_zstd_level
        return None

    def draw_jitter_ms(self) -> int:
        """Return a random time (ms) that is subtracted from `max_segment_ms`, the maximum age of a segment.

        Without the random time, logs created at the same time would all start new segments at the same time.
        """
        most = min(self.segment_jitter_ms, self.max_segment_ms)
        return random.randrange(most) if most else 0

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy
