"""`hmb backup`: copy topics and group offsets of a running broker to a directory or to a .tar file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.interruption import sigterm_as_ctrl_c
from ..shared.output import print_rows
from ..shared.parameters import NewPath
from ..shared.subjects import chosen_partitions, named_topics, no_match, pattern_option, topics_or_patterns_argument

if TYPE_CHECKING:
    from hmb.client import Admin, TopicPartition
    from hmb.client.admin.brokers import Brokers

    from .contents import SavedOffset, SavedPartition, SavedStartOffset
    from .writing import NewBackup

SEGMENT_BYTES = 64 * 1024 * 1024  # A segment of a backup is complete when it has this size.
COLUMNS = ("topic", "partition", "log_start_offset", "log_end_offset", "segments", "bytes")


@click.command()
@click.argument("path", type=NewPath(path_type=Path))
@topics_or_patterns_argument
@pattern_option
@click.option("--verify", is_flag=True, help="Check the checksums of the backup PATH, and make no new backup.")
@cluster_options
def command(
    path: Path, topics: tuple[str, ...], is_pattern: bool, verify: bool, client: ClientConfig, as_json: bool
) -> None:
    """Copy TOPICS to PATH, with the settings of these topics and the offsets of all groups that read them.

    Without TOPICS, copy all topics. For a new backup, PATH must not exist yet. If PATH ends in .tar,
    the backup is one file. Otherwise, it is a directory. `hmb restore` reads the backup.

    Clients can use the broker during the backup. The command first reads the last stable offset of each partition,
    and then copies only the records below this offset. The backup therefore contains no records of open
    transactions.

    --verify checks an existing backup, and needs no broker. The exit code is 5 if a file is damaged or missing.
    """
    if verify:
        if topics or is_pattern:
            raise click.UsageError("--verify checks a whole backup: leave out the topics")
        _verify(path, as_json)
        return
    from .writing import new_backup

    with sigterm_as_ctrl_c(), client.unwatched_admin() as admin:
        names = named_topics(admin, topics, is_pattern) if topics else [it.name for it in admin.list_topics()]
        if is_pattern and not names:
            raise no_match(topics)
        with new_backup(path) as backup:
            rows = _back_up(admin, backup, names)
    print_rows(COLUMNS, rows, as_json)


def _verify(path: Path, as_json: bool) -> None:
    from .reading import opened

    with opened(path) as backup:
        sizes = backup.verify()
        contents = backup.contents()
    row = {"backup": path, "created": contents.created, "topics": len(contents.topics), "files": len(sizes)}
    print_rows((*row, "bytes"), [row | {"bytes": sum(sizes.values())}], as_json)


def _back_up(admin: Admin, backup: NewBackup, names: list[str]) -> list[dict[str, Any]]:
    """Write the files of a backup. Return one row for each partition, for the output of the command."""
    from .contents import CONTENTS, BackupContents, SavedTopic

    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    contents = BackupContents(admin.describe_cluster().cluster_id, now)
    partitions = chosen_partitions(admin, [(name, None) for name in names])
    # Read the committed offsets before the end offsets. Suppose that the command read the end offset 100 first. A group
    # could then read new records and commit offset 105. The backup would contain the committed offset 105, but not the
    # records 100 to 104.
    contents.groups, contents.share_groups = _committed(admin, set(partitions)), _start_offsets(admin, set(partitions))
    starts, ends = _offsets(admin, partitions, "earliest"), _offsets(admin, partitions, "latest")
    rows = []
    for name in names:
        contents.topics[name] = topic = SavedTopic(_settings(admin, name), [])
        for partition in (each for each in partitions if each.topic == name):
            saved, size = _save(admin.brokers, backup, partition, starts[partition], ends[partition])
            topic.partitions.append(saved)
            values = (*partition, saved.log_start_offset, saved.log_end_offset, len(saved.segments), size)
            rows.append(dict(zip(COLUMNS, values, strict=True)))
    with backup.file(CONTENTS) as file:
        file.write(contents.encode())
    return rows


def _save(
    brokers: Brokers, backup: NewBackup, partition: TopicPartition, start: int, end: int
) -> tuple[SavedPartition, int]:
    """Write the records of a partition to segments in the backup.

    Return the description of the partition, and the number of bytes written.
    """
    from .contents import SavedPartition
    from .fetching import batches

    saved, size = SavedPartition(partition.partition, start, end), 0
    waiting = batches(brokers, partition, start, end)
    batch = next(waiting, None)
    while batch is not None:
        name = f"{partition}/{batch.base_offset:020}.log"
        saved.segments.append(name)
        with backup.file(name) as file:
            while batch is not None and (not file.size or file.size + batch.size <= SEGMENT_BYTES):
                file.write(batch.view)
                batch = next(waiting, None)
        size += file.size
    return saved, size


def _committed(admin: Admin, partitions: set[TopicPartition]) -> dict[str, list[SavedOffset]]:
    """Return the offsets that groups have committed for `partitions`, as a dict: group name -> offsets.

    The result contains no share groups, because share groups commit no offsets.
    """
    from hmb.protocol.enums import GroupType

    from .contents import SavedOffset

    groups: dict[str, list[SavedOffset]] = {}
    for group in admin.list_groups():
        if group.type == GroupType.SHARE:
            continue
        for partition, committed in sorted(admin.list_group_offsets(group.group_id).items()):
            if partition in partitions:
                saved = SavedOffset(*partition, committed.offset, committed.metadata)
                groups.setdefault(group.group_id, []).append(saved)
    return groups


def _start_offsets(admin: Admin, partitions: set[TopicPartition]) -> dict[str, list[SavedStartOffset]]:
    """Return the start offsets of all share groups in these partitions, by group."""
    from hmb.protocol.enums import GroupType

    from .contents import SavedStartOffset

    groups: dict[str, list[SavedStartOffset]] = {}
    for group in admin.list_groups(types=[GroupType.SHARE]):
        for partition, found in sorted(admin.list_share_offsets(group.group_id).items()):
            if partition in partitions and found.start_offset is not None:
                groups.setdefault(group.group_id, []).append(SavedStartOffset(*partition, found.start_offset))
    return groups


def _offsets(admin: Admin, partitions: Iterable[TopicPartition], spec: Any) -> dict[TopicPartition, int]:
    """Return the log start offsets ("earliest") or the last stable offsets ("latest") of partitions."""
    from hmb.client.admin import raised

    found = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level="read_committed")
    return {partition: raised(listed).offset for partition, listed in found.items()}


def _settings(admin: Admin, topic: str) -> dict[str, str]:
    from hmb.client.admin import ConfigResource, ResourceType

    from ..cluster.topic_description import own_settings

    found = own_settings(admin, ConfigResource(ResourceType.TOPIC, topic))
    return {name: value for name, value in found.items() if value is not None}
