"""The methods of a consumer that concern single partitions: positions, seeking, pausing, and the offsets of the log.

`Consumer` inherits the methods of this module. They use only the reader of the partitions, and neither groups nor
subscriptions.
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
    """The part of a consumer's interface that concerns single partitions."""

    def __init__(self, reader: AssignmentReader, thread_check: SingleThreadCheck) -> None:
        self._reader, self._thread_check = reader, thread_check

    def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that `poll` will return. The method also works on a closed consumer."""
        if self._thread_check.is_closed:
            return self._reader.position(partition).consumed
        with self._thread_check:
            return self._reader.position_with_offset(partition).consumed

    def seek(self, partition: TopicPartition, offset: Offset, *more: Never) -> None:
        """Continue at `offset`. The next poll raises an error if the log does not have this offset."""
        if more:
            its_own = f"TopicPartition({partition!r}, {offset!r})"
            raise TypeError(f"a partition is one argument: seek({its_own}, {more[0]!r})")
        check_partition(partition)
        check_offset(offset)
        with self._thread_check:
            self._reader.seek({partition: offset})

    def seek_to_time(self, timestamp: int, *partitions: TopicPartition) -> None:
        """Continue at the first record at or after a time (ms since 1970), or at the end if no such record exists.

        Without `partitions`, all partitions move. Brokers before Kafka 0.10.1 only find the beginning of a segment,
        which may contain older records, too.
        """
        self._seek_all(AtTime(timestamp), partitions)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the first record of each partition."""
        self._seek_all("earliest", partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue at the end of each partition. The next poll returns records that are produced after this call."""
        self._seek_all("latest", partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`.

        The consumer then fetches the buffered records again.
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
        """Return the offset after the last record of each partition.

        With `read_committed`, the end is the last stable offset: the first offset of the oldest open transaction.
        """
        return self._list_offsets(partitions, LATEST)

    def offsets_for_time(
        self, timestamp: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """Return the offset of the first record at or after a time (ms since 1970), None if all records are older."""
        check_time(timestamp)
        found = self._list_offsets(partitions, timestamp)
        return {partition: None if offset == NOT_FOUND else offset for partition, offset in found.items()}

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets from the position to the end of the log in the leader's last response.

        None before the first response.
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
