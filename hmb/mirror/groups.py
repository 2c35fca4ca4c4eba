"""Copies the committed offsets of consumer groups to the target, so that a group can continue there.

Every few seconds, the mirror reads the committed offsets of each group at the source, and translates them. The mirror
commits a translated offset at the target if two conditions hold. The group has no members at the target. Its offset at
the target is smaller than the translated offset, so a group that already reads at the target does not go back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hmb.client.admin import Admin
from hmb.client.group.interface import OffsetAndMetadata
from hmb.mirror.resuming import MirroredPartition
from hmb.protocol.enums import GroupType
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition


class TranslatedOffset(NamedTuple):
    """A committed offset of a group: its partition and its offset, at the source and at the target."""

    group: str
    partition: TopicPartition
    offset: int
    target: TopicPartition
    target_offset: int
    metadata: str


def translated_offsets(
    source: Admin, partitions: Mapping[TopicPartition, MirroredPartition], chosen: re.Pattern[str], own_group: str
) -> list[TranslatedOffset]:
    """Return the committed offsets of the chosen groups, translated."""
    found = []
    for listed in source.list_groups(types=[GroupType.CLASSIC, GroupType.CONSUMER]):
        group = listed.group_id
        if not chosen.fullmatch(group) or group == own_group:
            continue
        for partition, committed in source.list_group_offsets(group).items():
            it = partitions.get(partition)
            if it is not None:
                offset = it.translation.translate(committed.offset)
                found.append(
                    TranslatedOffset(group, partition, committed.offset, it.target, offset, committed.metadata)
                )
    return found


def commit_translated(target: Admin, offsets: Iterable[TranslatedOffset]) -> list[TranslatedOffset]:
    """Commit translated offsets at the target. Return the offsets that have changed there."""
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
