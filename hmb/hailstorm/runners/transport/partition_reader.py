"""Reads one partition for a spout. Raises an error if unread records have expired, or if the topic was created again.

Two changes of a topic could lead to wrong results. If the reader detects one, it raises an error, which ends
the topology:
- Records have *expired*: retention deleted them before the spout read them. For example, a spout must continue
  at offset 30, but the log begins at offset 40. The setting `allow_expired` prevents the error only at the first
  start of a spout with offset="earliest".
- The topic was *created again*: its log ends before the offset at which the spout has to continue.

The reader cannot always detect that a topic was created again. For example, the spout has to continue at offset
50. A user deletes the topic and creates it again, and producers write 60 records to the new topic. The new
topic has a record at offset 50, so the reader raises no error.

If a user deletes a topic and creates it again, the id of the topic changes. The module `topics` detects this
change.
"""

from __future__ import annotations

from collections.abc import Sequence

from hmb.client import Consumer, ConsumerRecord, KafkaError, TopicPartition
from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.runners.settings import RunSettings
from hmb.hailstorm.spout import Spout


class PartitionReader:
    """Reads one partition from a given offset. Only one thread may use it."""

    def __init__(self, partition: TopicPartition, spout: Spout, settings: RunSettings) -> None:
        self._partition, self._spout, self._settings = partition, spout, settings
        self._consumer = Consumer(
            settings.bootstrap_servers,
            client_id="hailstorm",
            security=settings.security,
            isolation_level=spout.isolation_level,
            max_poll_records=settings.poll_records,
        )
        self._end = self._end_offset() if settings.until == "end" else None

    def first_offset(self) -> int:
        """Return the offset at which the spout begins if no snapshot exists."""
        if self._spout.offset == "latest":
            return self._end_offset()
        return self._consumer.beginning_offsets([self._partition])[self._partition]

    def seek(self, offset: int, *, is_first_start: bool = False) -> None:
        """Continue reading at `offset`. `is_first_start` is true if no snapshot contains this partition.

        Raises TopologyError if `offset` is before the first offset of the log, or after the log's end.

        Also raises TopologyError on the first start of a spout with offset="earliest" if the log begins after
        offset 0, because records have expired. The setting `allow_expired` switches this check off.
        """
        start = self._consumer.beginning_offsets([self._partition])[self._partition]
        must_be_complete = is_first_start and self._spout.offset == "earliest" and not self._settings.allow_expired
        unread = 0 if must_be_complete else offset
        if unread < start:
            raise TopologyError(self._expired(unread, start))
        end = self._end_offset()
        if offset > end:
            raise TopologyError(
                f"{self._partition} ends at offset {end}, but the spout must continue at offset {offset}: the topic "
                "was created again. To read the new topic from its beginning, use an empty snapshot store"
            )
        self._consumer.assign({self._partition: offset})

    def poll(self) -> tuple[Sequence[ConsumerRecord], int]:
        """Return the next records, and the position after them. The position also moves past offsets without records.

        Raises TopologyError if the next records have expired.
        """
        try:
            records = self._consumer.poll(self._settings.poll_timeout)
        except KafkaError as error:
            if error.code.name != "OFFSET_OUT_OF_RANGE":
                raise
            start = self._consumer.beginning_offsets([self._partition])[self._partition]
            raise TopologyError(self._expired(self._consumer.position(self._partition), start)) from error
        return records, self._consumer.position(self._partition)

    def is_at_end(self, position: int) -> bool:
        """Return whether the spout has read all records of a bounded topic. `position` is the spout's next offset."""
        return self._end is not None and position >= self._end

    def close(self) -> None:
        self._consumer.close()

    def _end_offset(self) -> int:
        return self._consumer.end_offsets([self._partition])[self._partition]

    def _expired(self, offset: int, start: int) -> str:
        return (
            f"the records of {self._partition} at offsets {offset} to {start - 1} expired before they were read: "
            f"the log starts at {start}. Results without them would be wrong. "
            f"To leave them out and begin at {start}, use an empty snapshot store and --allow-expired "
            "(in Python: allow_expired=True). A longer retention.ms of the topic keeps records longer"
        )
