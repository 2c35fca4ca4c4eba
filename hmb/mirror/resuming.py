"""Finds the position of each partition when a mirror starts.

At the target, the mirror commits its position of each partition as the offset of a group, the *mirror's group*. If this
group has no offset for a partition, the partition is new. The mirror then begins with the first record of this
partition at the source. If the group has an offset, the mirror continues at this offset.

A commit of offsets can store a text next to each offset. In this text, the mirror has stored the *runs* of the
partition. The runs show which source offsets belong to which offsets of the copy (see `translation`).

If a mirror uses no transactions, a crash can happen after the target has written records and before the mirror has
committed their position. When the mirror starts again, it reads these records from the copy, and compares them with the
next records of the source. Equal records are already copied, and the mirror skips them:
    source          a  b  c  d  e  f  g        committed position: c
    copy            a  b  c  d  e              equal: c, d, e; the mirror continues with f

If another program has written into the copy, the mirror finds a record in the copy that differs from the next record of
the source. The comparison ends at this record. The mirror then appends the remaining records of the source at the end
of the copy. In the copy, these records have other offsets than at the source (see `translation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hmb.client.admin import Admin, raised
from hmb.client.group.interface import OffsetAndMetadata
from hmb.mirror.errors import MirrorError
from hmb.mirror.source import read_records
from hmb.mirror.translation import CopiedRun, Translation
from hmb.protocol.topics import TopicPartition
from hmb.records import Record


@dataclass(slots=True)
class MirroredPartition:
    """A partition of the source, its copy at the target, and the position up to which the mirror has copied it.

    `position` is the source offset of the next record to copy. `end` is the last stable offset of the source: the
    mirror copies only records below this offset. `has_markers` is true if the mirror writes in transactions, because
    each transaction adds a marker to the copy.

    `lost` is the number of offsets that the source deleted before the mirror could copy them. `foreign` is 0 if only
    the mirror has written into the copy. If another program has written into it, `foreign` is the number of offsets
    from the first record of the other program to the end of the copy.
    """

    source: TopicPartition
    target: TopicPartition
    position: int
    end: int
    translation: Translation
    has_markers: bool
    foreign: int = 0
    lost: int = 0
    records: int = 0
    bytes: int = 0

    @property
    def keeps_offsets(self) -> bool:
        """Whether each record has the same offset in the copy as at the source.

        This is false if the mirror writes markers into the copy, because each marker also uses an offset of the copy.
        """
        return self.translation.keeps_offsets and not self.has_markers

    @property
    def lag(self) -> int:
        """The number of offsets between the position and the end of the source."""
        return max(self.end - self.position, 0)

    @property
    def committed(self) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.position, str(self.translation))


def resume(
    source: Admin,
    target: Admin,
    group: str,
    partitions: Mapping[TopicPartition, TopicPartition],
    *,
    transactional: bool,
) -> list[MirroredPartition]:
    """Return the partitions with their positions. `partitions` maps each partition of the source to its copy.

    If the mirror uses no transactions, a copy may contain records after the committed position. `resume` compares these
    records with the source, and moves the position past the equal records. With transactions, a crash leaves no such
    records.

    Raises MirrorError if the group's offsets were committed by a program that is not a mirror. Raises MirrorError if
    the source ends before a position.
    """
    committed = target.list_group_offsets(group, partitions.values(), require_stable=True)
    first = source.list_offsets(dict.fromkeys(partitions, "earliest"))
    last = source.list_offsets(dict.fromkeys(partitions, "latest"), isolation_level="read_committed")
    ends = target.list_offsets(dict.fromkeys(partitions.values(), "latest"))
    found = []
    for partition, copy in partitions.items():
        start, end, target_end = (raised(it).offset for it in (first[partition], last[partition], ends[copy]))
        if copy in committed:
            position, runs = committed[copy].offset, _parsed(group, copy, committed[copy])
        else:
            position, runs = start, Translation([CopiedRun(start, target_end, 0)])
        lost = max(start - position, 0)
        it = MirroredPartition(partition, copy, position + lost, end, runs, transactional, lost=lost)
        if it.position > it.end:
            raise MirrorError(
                f"source: {partition} ends at offset {it.end}, but the mirror has copied offsets up to {it.position}; "
                f"the topic was deleted and created again: delete its copy {copy.topic!r} at the target"
            )
        if not transactional and target_end > runs.target_end:
            skip_copied(source, target, it, target_end)
        found.append(it)
    return found


def skip_copied(source: Admin, target: Admin, partition: MirroredPartition, target_end: int) -> None:
    """Compare the last records of the copy with the next records of the source, and skip those that are equal.

    Skipping means that the position moves past the equal records. The target already has them.
    """
    theirs = read_records(source.cluster, partition.source, partition.position, partition.end)
    for copy in read_records(target.cluster, partition.target, partition.translation.target_end, target_end):
        original = next(theirs, None)
        if original is None or _content(original) != _content(copy):
            partition.foreign = target_end - copy.offset
            break
        partition.translation.add(original.offset, copy.offset, 1)
        partition.position = original.offset + 1


def _content(record: Record) -> tuple[object, ...]:
    return record.timestamp, record.key, record.value, record.headers


def _parsed(group: str, copy: TopicPartition, committed: OffsetAndMetadata) -> Translation:
    try:
        return Translation.parse(committed.metadata)
    except ValueError:
        raise MirrorError(
            f"target: the offset of group {group!r} for {copy} was not committed by a mirror; choose another --group"
        ) from None
