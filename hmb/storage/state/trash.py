"""Deleted logs: directories under another name, until their files are removed.

A topic with three partitions has three directories. A deletion takes time, and the broker may be killed during it.
After the next start either all partitions must exist, or none of them. A deletion must also work on a full disk, so it
cannot begin with a write. Renaming needs no space. So the broker deletes a topic in these steps::

    1. events-0  ->  events-0.<topic id>-delete      from this step on, the topic is deleted
       events-1  ->  events-1.<topic id>-delete
    2. the files in these directories are removed    this frees space
    3. topics.json is written without the topic
    4. the directories are removed

A start that finds a name with `-delete` deletes the topic with this id. The start renames the partitions of the topic
that still have their own names, and does the remaining steps. A topic that was created again under the same name has
another id, so the start keeps it.

Kafka deletes a log in the same way, but with a random id.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hmb.protocol.topics import TopicPartition

SUFFIX = "-delete"
LONGEST = 200  # characters of the topic's name in the new name; a file name has at most 255
NAME = re.compile(r"(.+)\.([0-9a-f]{32})" + SUFFIX)


class DeletedLog(NamedTuple):
    """The directory of a deleted log. `name` is what `shortened` returns for the log."""

    path: Path
    name: str
    topic_id: uuid.UUID


def path_of(directory: Path, name: TopicPartition, topic_id: uuid.UUID) -> Path:
    """Return the path to which a log's directory is renamed when the log is deleted."""
    return directory / f"{shortened(name)}.{topic_id.hex}{SUFFIX}"


def shortened(name: TopicPartition) -> str:
    """Return the part of a log's name that its directory keeps when the log is deleted."""
    return f"{name.topic[:LONGEST]}-{name.partition}"


def find(directory: Path) -> list[DeletedLog]:
    """Return the deleted logs of a data directory. Raises OSError."""
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
                shutil.rmtree(path)
            else:
                path.unlink()


def remove(directories: Iterable[Path]) -> None:
    """Remove these directories, which are empty. Raises OSError."""
    for directory in directories:
        directory.rmdir()
