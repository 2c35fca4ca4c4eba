"""Finds the position of each partition when a mirror starts.

The mirror commits offsets at the target, as a consumer does. The group of these offsets is the *mirror's
group*. Each committed offset is the position of the mirror in a partition of the source. The mirror continues
at this offset. If the group has no offset for a partition, the partition is new, so the mirror begins with the
partition's first record.

With each committed offset, the broker can store a short text. In this text, the mirror stores the *runs* of
the partition. A run maps consecutive offsets of the source to consecutive offsets of the copy, for example 4
and 5 to 3 and 4 (see `translation`).

A mirror without transactions can crash after it has written records, but before it has committed its position.
In the next example, the committed position is the offset of c, and the mirror has already written c, d and e.
When the mirror starts again, it compares the records from c on in both clusters, and skips the equal records:
    source          a  b  c  d  e  f  g        committed position: the offset of c
    copy            a  b  c  d  e              equal: c, d, e; the mirror continues with f

If another program has written into the copy, a record of the copy differs from the next record of the source.
At the first such record, the mirror ends the comparison. It appends the remaining records of the source to the
end of the copy. In the copy, these records get other offsets than at the source (see `translation`).
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
    """A partition of the source cluster, its copy in the target cluster, and the mirror's progress.

    - `position` is the source offset of the next record to copy.
    - `end` is the last stable offset of the source partition. The mirror copies only records below this offset.
    - `has_markers` is true if the mirror writes in transactions. Each transaction then adds a marker to the copy.
    - `lost` is the number of offsets that the source deleted before the mirror had copied them.
    - `foreign` is normally 0. A mirror without transactions looks for records of other programs in the copy when it
      starts. If it finds one, `foreign` is the number of offsets from this record to the end of the copy.
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
    """Return the partitions with their positions.

    `partitions` maps source partitions to their copies. The mirror commits positions for the group `group`.

    If a mirror without transactions crashes, the copy can contain records after the committed position. `resume`
    compares them with the source, and moves the position past the equal records, up to the first difference.

    Raises MirrorError in these cases:

    - A program that is not a mirror has committed an offset for `group`.
    - The source partition ends before the position, because the topic was deleted and created again.
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
    """Move the position of `partition` past the source records that the copy already contains.

    The function compares the copy's records after the last commit with the next source records: timestamps, keys,
    values and headers.

    A record of the copy that does not match the next source record comes from another program. At this record, the
    function stops. It sets `partition.foreign` to the number of offsets from this record (included) to the end of the
    copy.
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
            f"target: the committed offset of group {group!r} for partition {copy} does not come from a mirror; "
            "choose another group with --group"
        ) from None
