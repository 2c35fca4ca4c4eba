"""Deleted logs: the broker renames their directories at once, and removes the files later.

A topic with three partitions has three directories. It takes time to delete all three, and the broker may be killed
before it has finished. After the next start, all three partitions must exist, or none of them. A deletion must also
work if the disk is full. So the broker begins with a rename, because a rename needs no disk space. The broker deletes a
topic in these steps:
    1. events-0  ->  events-0.<topic id>-delete      from this step on, the topic is deleted
       events-1  ->  events-1.<topic id>-delete
    2. the files in these directories are removed    this frees space
    3. topics.json is written without the topic
    4. the directories are removed

If the broker is killed after the first rename, it completes the deletion at its next start. It then also
renames the other directories with this topic id. A new topic with the same name has another id, so the broker
does not delete the new topic.

Kafka also renames the directory of a deleted log, but uses a random id instead of the topic id.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hmb.protocol.topics import TopicPartition
from hmb.storage.files.disk_reserve import DiskReserve
from hmb.storage.files.virtual import NAMES_LOCK

if TYPE_CHECKING:
    from hmb.storage.log import Log

LOGGER = logging.getLogger(__name__)
SUFFIX = "-delete"
# When the broker deletes a log, it first gives the log's directory a longer name. A file name has at most 255
# characters. So the new name contains at most LONGEST characters of the topic's name.
LONGEST = 200
NAME = re.compile(r"(.+)\.([0-9a-f]{32})" + SUFFIX)


class DeletedLog(NamedTuple):
    """A deleted log whose directory still exists. `name` is, for example, `events-0`; long names are cut."""

    path: Path
    name: str
    topic_id: uuid.UUID


class Deletion(NamedTuple):
    """The result of `rename_all`: the directories to remove, and the topics that could not be deleted."""

    left: list[Path]  # the renamed directories of deleted logs, which must still be removed
    kept: dict[str, OSError]  # for each topic that could not be deleted: the error


def rename_all(
    directory: Path,
    names: Mapping[TopicPartition, uuid.UUID],
    logs: Mapping[TopicPartition, Log],
    reserve: DiskReserve,
) -> Deletion:
    """Delete the logs in `names`: rename the directory of each log. The files are removed later.

    `names` maps each log to its topic id, which becomes part of the directory's new name. `logs` contains all open
    logs.

    If the first rename for a topic fails, the topic is not deleted. If a later rename fails, the topic is deleted,
    but the directory with the old name stays until the next start of the broker.
    """
    result, deleted = Deletion([], {}), set[str]()
    for name, topic_id in names.items():
        if name.topic in result.kept:
            continue
        path = directory / str(name)
        try:
            if path.exists():
                result.left.append(_rename(path, path_of(directory, name, topic_id), logs.get(name), reserve))
            deleted.add(name.topic)
        except OSError as error:
            if name.topic not in deleted:
                result.kept[name.topic] = error
            else:
                LOGGER.error("%s is deleted, but its files stay until the next start: %s", name, error)
    return result


def _rename(path: Path, new_path: Path, log: Log | None, reserve: DiskReserve) -> Path:
    with NAMES_LOCK:
        reserve.write(partial(path.rename, new_path))
        if log is not None:
            log.update_parent_dir(new_path)
    return new_path


def path_of(directory: Path, name: TopicPartition, topic_id: uuid.UUID) -> Path:
    """Return the path to which the broker renames the directory of a log when it deletes the log."""
    return directory / f"{shortened(name)}.{topic_id.hex}{SUFFIX}"


def shortened(name: TopicPartition) -> str:
    """Return `<topic>-<partition>`. The topic's name is cut after LONGEST characters."""
    return f"{name.topic[:LONGEST]}-{name.partition}"


def find(directory: Path) -> list[DeletedLog]:
    """Return the deleted logs whose directories still exist in a data directory. Raises OSError."""
    found = []
    for path in directory.iterdir():
        match = NAME.fullmatch(path.name)
        if match is not None and path.is_dir():
            found.append(DeletedLog(path, match[1], uuid.UUID(match[2])))
    return found


def empty(directories: Iterable[Path]) -> None:
    """Remove all files in these directories. Raises OSError."""
    for directory in directories:
        for path in directory.iterdir():
            if path.is_dir() and not path.is_symlink():
                import shutil  # This import takes 3 ms, and most brokers find no deleted directories at their start.

                shutil.rmtree(path)
            else:
                path.unlink()


def remove(directories: Iterable[Path]) -> None:
    """Remove these directories, which are empty. Raises OSError."""
    for directory in directories:
        directory.rmdir()
