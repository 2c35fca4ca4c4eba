"""What a consumer says and does about its partitions one by one: positions, seeking, pausing, and the log's ends."""

from collections.abc import Iterable
from typing import Never

from hmb.client.arguments import check_partition, list_of_partitions
from hmb.client.consuming.guard import Guard
from hmb.client.consuming.reader import Reader
from hmb.client.offsets import NOT_FOUND, AtTime, Offset, check_offset, check_time
from hmb.protocol.enums import EARLIEST, LATEST
from hmb.protocol.topics import TopicPartition


class AssignedPartitions:
    """The half of a consumer's interface that groups, topics and records do not come into."""

    def __init__(self, reader: Reader, guard: Guard) -> None:
        self._reader, self._guard = reader, guard

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that will be handed out; also of a consumer that was closed."""
        if self._guard.is_closed:
            return self._reader.position(partition).consumed
        with self._guard:
            return self._reader.settled(partition).consumed

    def seek(self, partition: TopicPartition, offset: Offset, *more: Never) -> None:
        """Go on from there. Whether the offset is in the log is found out by the next poll."""
        if more:
            its_own = f"TopicPartition({partition!r}, {offset!r})"
            raise TypeError(f"a partition is one argument: seek({its_own}, {more[0]!r})")
        check_partition(partition)
        check_offset(offset)
        with self._guard:
            self._reader.seek({partition: offset})

    def seek_to_time(self, timestamp: int, *partitions: TopicPartition) -> None:
        """Go on from the first record at or after a time (ms since 1970), or the end; all partitions if none is given.

        Against brokers before 0.10.1: from the beginning of a segment that may hold older records, too.
        """
        self._seek_all(AtTime(timestamp), partitions)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on from the first record that there is."""
        self._seek_all("earliest", partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on from what comes from now on."""
        self._seek_all("latest", partitions)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these, until `resume`; what has been fetched of them is fetched again then."""
        with self._guard:
            for partition in partitions:
                self._reader.pause(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        with self._guard:
            for partition in partitions:
                self._reader.resume(partition)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(partition for partition, it in self._reader.positions.items() if it.is_paused)

    # -- about the log

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that there is."""
        return self._list_offsets(partitions, EARLIEST)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record; with read_committed, of those that no open transaction may change."""
        return self._list_offsets(partitions, LATEST)

    def offsets_for_time(
        self, timestamp: int, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """The offset of the first record at or after a time (ms since 1970); None where no record is that young."""
        check_time(timestamp)
        found = self._list_offsets(partitions, timestamp)
        return {partition: None if offset == NOT_FOUND else offset for partition, offset in found.items()}

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets are left to hand out, as of the last answer of the leader; None before the first."""
        return self._reader.lag(partition)

    def _seek_all(self, offset: Offset, partitions: Iterable[TopicPartition]) -> None:
        check_offset(offset)
        with self._guard:
            self._reader.seek(dict.fromkeys(partitions or self._reader.positions, offset))

    def _list_offsets(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        wanted = list_of_partitions(partitions)
        with self._guard:
            return self._reader.list_offsets(wanted, timestamp)
