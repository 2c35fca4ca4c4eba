"""The partitions that a consumer reads: their positions, seeking, pausing, and the offsets of their logs.

Each `Consumer` has an `AssignedPartitions` object, and passes calls about positions to this object. For example,
`Consumer.seek` calls `AssignedPartitions.seek`. The methods work in the same way for consumers with and without a
group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Never

from hmb.client.arguments import check_partition, list_of_partitions
from hmb.client.consuming.reader import AssignmentReader
from hmb.client.consuming.single_thread import SingleThreadCheck
from hmb.client.offsets import NOT_FOUND, AtTime, Offset, check_offset, check_time
from hmb.protocol.enums import EARLIEST, LATEST
from hmb.protocol.topics import TopicPartition


class AssignedPartitions:
    """The partitions that a consumer reads. Only one thread may use this object at a time."""

    def __init__(self, reader: AssignmentReader, thread_check: SingleThreadCheck) -> None:
        self._reader, self._thread_check = reader, thread_check

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that `poll` will return. A closed consumer returns its last position."""
        if self._thread_check.is_closed:
            return self._reader.position(partition).consumed
        with self._thread_check:
            return self._reader.position_with_offset(partition).consumed

    def seek(self, partition: TopicPartition, offset: Offset, *more: Never) -> None:
        """Set the position of a partition to `offset`.

        If the log does not contain this offset, the next step depends on the consumer's settings:

        - If the consumer has no `group`, or if its setting `offset` is a number, `poll` raises an error.
        - Otherwise, its setting `offset` determines the new position. For example, "earliest" means the first
          record.
        """
        if more:
            its_own = f"TopicPartition({partition!r}, {offset!r})"
            raise TypeError(f"pass the topic and the partition number as one object: seek({its_own}, {more[0]!r})")
        check_partition(partition)
        check_offset(offset)
        with self._thread_check:
            self._reader.seek({partition: offset})

    def seek_to_time(self, timestamp: int, *partitions: TopicPartition) -> None:
        """Set each position to the first record at or after the time `timestamp` (ms since 1970).

        If all records of a partition are older, its position becomes the end of the log. Without `partitions`, the
        method sets the positions of all partitions.

        A broker older than Kafka 0.10.1 knows only when each segment file was last changed. It finds the last segment
        that was changed at or before `timestamp`. The position becomes the first offset of this segment, or of the log
        if there is no such segment. So `poll` can first return records that are older than `timestamp`.
        """
        self._seek_all(AtTime(timestamp), partitions)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Set each position to the first record of the partition. Without `partitions`, set all positions."""
        self._seek_all("earliest", partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Set each position to the end of the log. `poll` then returns only records that are written after this call.

        Without `partitions`, the method sets the positions of all partitions.
        """
        self._seek_all("latest", partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        """Pause partitions: until a call of `resume`, `poll` returns no records of these partitions.

        The consumer removes the records of these partitions from its buffer. After `resume`, it fetches these records
        again.
        """
        with self._thread_check:
            for partition in partitions:
                self._reader.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        with self._thread_check:
            for partition in partitions:
                self._reader.resume(partition)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(partition for partition, it in self._reader.positions.items() if it.is_paused)

    # -- offsets of the log

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self._list_offsets(partitions, EARLIEST)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return, for each partition, the end of the records that a consumer can read.

        With `read_uncommitted`, this offset is the high watermark. With `read_committed`, it is the last stable offset:
        the first offset of the oldest open transaction, or the high watermark if no transaction is open.
        """
        return self._list_offsets(partitions, LATEST)

    def offsets_for_time(
        self, timestamp: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """Return, for each partition, the offset of the first record at or after a time (ms since 1970).

        The offset is None if all records of the partition are older than this time.
        """
        check_time(timestamp)
        found = self._list_offsets(partitions, timestamp)
        return {partition: None if offset == NOT_FOUND else offset for partition, offset in found.items()}

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the lag: the number of offsets from the position to the end of the log.

        The leader's last Fetch response contains the end of the log. Before the first response, the result is None.
        With `read_committed`, the end is the last stable offset.
        """
        return self._reader.lag(partition)

    def _seek_all(self, offset: Offset, partitions: Iterable[TopicPartition]) -> None:
        check_offset(offset)
        with self._thread_check:
            self._reader.seek(dict.fromkeys(partitions or self._reader.positions, offset))

    def _list_offsets(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        wanted = list_of_partitions(partitions)
        with self._thread_check:
            return self._reader.list_offsets(wanted, timestamp)
