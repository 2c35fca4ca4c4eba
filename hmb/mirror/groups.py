"""Copies the committed offsets of consumer groups to the target, so that a group can continue there.

Every few seconds, the mirror reads the committed offsets of the selected groups at the source, and translates
them. The mirror commits a translated offset at the target if two conditions hold:

- The group has no members at the target. Otherwise, the target refuses the commit.
- The group has no committed offset at the target, or its committed offset there is smaller than the translated
  offset. The mirror never moves a group back.

The mirror remembers *runs* of copied records. In a run, the offset grows by one from record to record, both at
the source and at the target (see `translation`). For a committed offset in a run, the mirror computes the
offset at the target.

The mirror can forget runs. For a committed offset in the gap between two runs, it counts records. For example,
it remembers that source offset 500 corresponds to target offset 300. A group has committed offset 560 at the
source. The source has 40 records at the offsets 500 to 559. At the target, the mirror skips 40 records from
offset 300 on. The group continues at the next record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from itertools import islice
from typing import NamedTuple

from hmb.client.admin import Admin
from hmb.client.group.interface import OffsetAndMetadata
from hmb.mirror.resuming import MirroredPartition
from hmb.mirror.source import read_records
from hmb.mirror.translation import TranslationGap
from hmb.protocol.enums import CONSUMER_GROUP_TYPES
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition

# To translate some committed offsets, the mirror counts the records in a range of offsets. If the range has more
# offsets than this limit, the mirror does not count, because counting would delay the copy.
MAX_COUNTED_OFFSETS = 200_000
# `OffsetTranslator` remembers the results of at most this number of counts. At the limit, it forgets all results.
MAX_REMEMBERED_COUNTS = 10_000


class OffsetTranslator:
    """Translates committed offsets of the source to offsets at the target.

    For some offsets, the translator must count records, which is slow. It therefore remembers the results of these
    translations.
    """

    def __init__(self, source: Admin, target: Admin) -> None:
        self._source, self._target = source.cluster, target.cluster
        self._counted: dict[tuple[TopicPartition, int], int] = {}

    def translate(self, partition: MirroredPartition, offset: int) -> int:
        """Return the target cluster's offset that matches `offset`, a committed offset in the source cluster."""
        gap = partition.translation.gap_at(offset)
        if gap is None or offset - gap.source > MAX_COUNTED_OFFSETS:
            return partition.translation.translate(offset)
        key = partition.source, offset
        if key not in self._counted:
            if len(self._counted) >= MAX_REMEMBERED_COUNTS:
                self._counted.clear()
            try:
                self._counted[key] = self._count(partition, gap, offset)
            except KafkaError:  # The source has deleted records that `_count` must count.
                self._counted[key] = gap.target
        return self._counted[key]

    def _count(self, partition: MirroredPartition, gap: TranslationGap, offset: int) -> int:
        with closing(read_records(self._source, partition.source, gap.source, offset)) as originals:
            count = sum(1 for _ in originals)
        with closing(read_records(self._target, partition.target, gap.target, gap.target_end)) as copies:
            return next((copy.offset for copy in islice(copies, count, None)), gap.target_end)


class TranslatedOffset(NamedTuple):
    """A group's committed offset in a source partition, and the matching offset in the partition's copy."""

    group: str
    partition: TopicPartition
    offset: int
    target: TopicPartition
    target_offset: int
    metadata: str


def translated_offsets(
    source: Admin,
    partitions: Mapping[TopicPartition, MirroredPartition],
    translator: OffsetTranslator,
    chosen: re.Pattern[str],
    own_group: str,
) -> list[TranslatedOffset]:
    """Return the committed offsets of consumer groups at the source, with the matching offsets at the target.

    The same record can have different offsets in the two clusters. The result contains only the partitions in
    `partitions`, which the mirror copies. It contains only groups whose complete names match `chosen`, and not the
    mirror's own group (`own_group`).
    """
    found = []
    for listed in source.list_groups(types=CONSUMER_GROUP_TYPES):
        group = listed.group_id
        if not chosen.fullmatch(group) or group == own_group:
            continue
        for partition, committed in source.list_group_offsets(group).items():
            it = partitions.get(partition)
            if it is not None:
                offset = translator.translate(it, committed.offset)
                found.append(
                    TranslatedOffset(group, partition, committed.offset, it.target, offset, committed.metadata)
                )
    return found


def commit_translated(target: Admin, offsets: Iterable[TranslatedOffset]) -> list[TranslatedOffset]:
    """Commit each translated offset, unless the group already has the same or a higher offset at the target.

    Return the offsets that were committed. An offset that the target refuses, for example because the group has
    members, is not in the result.
    """
    by_group: dict[str, list[TranslatedOffset]] = {}
    for each in offsets:
        by_group.setdefault(each.group, []).append(each)
    changed = []
    for group, its_offsets in by_group.items():
        now = target.list_group_offsets(group, [it.target for it in its_offsets])
        new = {it.target: it for it in its_offsets if it.target not in now or now[it.target].offset < it.target_offset}
        if not new:
            continue
        positions = {partition: OffsetAndMetadata(it.target_offset, it.metadata) for partition, it in new.items()}
        answers = target.alter_group_offsets(group, positions)
        changed += [new[partition] for partition, answer in answers.items() if not isinstance(answer, KafkaError)]
    return changed
