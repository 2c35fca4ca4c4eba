"""Restore a backup: create its topics in another cluster, send their records, and set the offsets of groups.

A restore has five steps:
1. Check that the target cluster has none of the topics in the backup, and that none of the restored groups has members.
2. Create the topics, but without the settings in POSTPONED. With these settings, the broker could refuse old records.
3. Send the batches of each partition to its leader.
4. Set the postponed settings.
5. Commit the offsets of consumer groups, and set the start offsets of share groups. If the records have new offsets,
   first translate the offsets of the groups.

If an error ends the restore after it has begun to create topics, the new topics may be incomplete. The error message
then names these topics, so that the user can delete them and run the command again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from hmb.client.admin import Admin, ConfigResource, GroupDescription, NewTopic, ResourceType, raised
from hmb.client.connection import ConnectionFailed
from hmb.client.group.interface import OffsetAndMetadata
from hmb.mirror.translation import Translation
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.records import Batch

from ..shared.errors import CliError
from .contents import BackupContents, SavedPartition, SavedTopic
from .producing import send_batches
from .reading import Backup
from .renumbering import aborted_transactions, new_offsets, restorable

POSTPONED = {
    "cleanup.policy",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
}
"""With these settings, a broker could refuse old records, or replace their timestamps."""


class RestoredPartition(NamedTuple):
    """A restored partition, with the old and the new offsets of its records."""

    partition: TopicPartition
    offsets: Translation


def check_target(admin: Admin, contents: BackupContents) -> None:
    """Check that a restore changes no existing topic and no active group of the target cluster.

    Raises CliError if a topic in `contents` already exists in the target cluster, or if a group in `contents` has
    members in the target cluster.
    """
    existing = {topic.name for topic in admin.list_topics(internal=True)}
    if taken := sorted(existing & contents.topics.keys()):
        raise CliError(f"the target already has {', '.join(taken)}; delete these topics, or restore only other topics")
    groups = [*contents.groups, *contents.share_groups]
    for group, described in admin.describe_groups(groups).items():
        if isinstance(described, GroupDescription) and described.is_active:
            raise CliError(f"group {group!r} has members in the target; stop them before the restore")


def restore_topics(admin: Admin, backup: Backup, contents: BackupContents) -> Iterator[RestoredPartition]:
    """Create the topics of a backup, and restore their records, their settings and the offsets of the groups.

    Yield each partition when its records are restored. The offsets of the groups come last. Raises CliError.
    """
    offsets: dict[TopicPartition, Translation] = {}
    try:
        _create(admin, contents.topics)
        for name, topic in contents.topics.items():
            for saved in topic.partitions:
                restored = _restore(admin, backup, TopicPartition(name, saved.partition), saved)
                offsets[restored.partition] = restored.offsets
                yield restored
            if postponed := {key: value for key, value in topic.configs.items() if key in POSTPONED}:
                admin.alter_configs(ConfigResource(ResourceType.TOPIC, name), set=postponed)
        _commit(admin, contents, offsets)
        _set_start_offsets(admin, contents, offsets)
    except (KafkaError, ConnectionFailed) as error:
        what = error.message if isinstance(error, KafkaError) else str(error)
        names = " ".join(contents.topics)
        hint = f"run `hmb topics delete {names}`, and then restore again"
        raise CliError(f"{what}; the restored topics are incomplete: {hint}") from error


def _create(admin: Admin, topics: Mapping[str, SavedTopic]) -> None:
    new = [
        NewTopic(name, len(topic.partitions), configs=_without(topic.configs, POSTPONED))
        for name, topic in topics.items()
    ]
    for result in admin.create_topics(new).values():
        raised(result)
    partitions = [TopicPartition(name, it.partition) for name, topic in topics.items() for it in topic.partitions]
    # The restore needs a leader for each new partition. The method `list_offsets` waits for these leaders.
    for listed in admin.list_offsets(dict.fromkeys(partitions, "latest")).values():
        raised(listed)


def _restore(admin: Admin, backup: Backup, partition: TopicPartition, saved: SavedPartition) -> RestoredPartition:
    def batches() -> Iterator[Batch]:
        return chain.from_iterable(map(backup.batches, saved.segments))

    offsets = new_offsets()
    new = restorable(batches(), aborted_transactions(batches()), saved.log_start_offset, offsets)
    with admin.cluster.connect(admin.cluster.leader(partition)) as connection:
        send_batches(connection, partition, new, admin.brokers.timeout_ms)
    return RestoredPartition(partition, offsets)


def _commit(admin: Admin, contents: BackupContents, offsets: Mapping[TopicPartition, Translation]) -> None:
    for group, committed in contents.groups.items():
        new = {
            (partition := TopicPartition(it.topic, it.partition)): OffsetAndMetadata(
                offsets[partition].translate(it.offset), it.metadata
            )
            for it in committed
        }
        for result in admin.alter_group_offsets(group, new).values():
            raised(result)


def _set_start_offsets(
    admin: Admin, contents: BackupContents, offsets: Mapping[TopicPartition, Translation]
) -> None:
    for group, saved in contents.share_groups.items():
        partitions = [(TopicPartition(it.topic, it.partition), it.offset) for it in saved]
        new = {partition: offsets[partition].translate(offset) for partition, offset in partitions}
        admin.alter_share_offsets(group, new)


def _without(configs: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if name not in names}
