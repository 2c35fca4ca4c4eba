"""`hmb restore`: copy topics and group offsets from a backup to a broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ..shared.client_options import ClientConfig, cluster_options
from ..shared.errors import NOT_FOUND, CliError
from ..shared.interruption import sigterm_as_ctrl_c
from ..shared.output import print_rows
from ..shared.parameters import NewPath
from ..shared.subjects import optional_topics_argument

if TYPE_CHECKING:
    from .contents import BackupContents, SavedOffset, SavedStartOffset

OffsetT = TypeVar("OffsetT", "SavedOffset", "SavedStartOffset")
COLUMNS = ("topic", "partition", "log_end_offset", "offsets")


@click.command()
@click.argument("path", type=NewPath(path_type=Path))
@optional_topics_argument
@cluster_options
def command(path: Path, topics: tuple[str, ...], client: ClientConfig, as_json: bool) -> None:
    """Restore TOPICS from the backup PATH: their records, their settings, and the offsets of groups.

    Without TOPICS, restore all topics of the backup. The broker must not have these topics yet. First, the command
    checks all checksums of the backup. If a file is damaged, the command changes nothing.

    The last column of the output shows whether the records keep their offsets. If the offsets of a partition do not
    begin at 0, or have gaps, the records get new offsets. The command then also translates the offsets of groups.
    """
    from .reading import opened
    from .restoring import check_target, restore_topics

    with opened(path) as backup:
        backup.verify()
        contents = _selected(backup.contents(), topics, path)
        with sigterm_as_ctrl_c(), client.unwatched_admin() as admin:
            check_target(admin, contents)
            rows = [
                {
                    "topic": it.partition.topic,
                    "partition": it.partition.partition,
                    "log_end_offset": it.offsets.target_end,
                    "offsets": "kept" if it.offsets.keeps_offsets else "translated",
                }
                for it in restore_topics(admin, backup, contents)
            ]
    print_rows(COLUMNS, rows, as_json)


def _selected(contents: BackupContents, topics: tuple[str, ...], path: Path) -> BackupContents:
    """Return the contents of a backup with only these topics, or with all topics if `topics` is empty."""
    if missing := [name for name in topics if name not in contents.topics]:
        raise CliError(f"{path}: the backup has no topic {missing[0]!r}", NOT_FOUND)
    if topics:
        contents.topics = {name: contents.topics[name] for name in topics}
        contents.groups = _in_topics(contents.groups, topics)
        contents.share_groups = _in_topics(contents.share_groups, topics)
    return contents


def _in_topics(groups: dict[str, list[OffsetT]], topics: tuple[str, ...]) -> dict[str, list[OffsetT]]:
    """Return each group's offsets in these topics. Leave out groups that have no offset in these topics."""
    return {
        group: kept
        for group, offsets in groups.items()
        if (kept := [offset for offset in offsets if offset.topic in topics])
    }
