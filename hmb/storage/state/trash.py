"""Deleted logs: directories under another name, until their files are removed.

A topic of three partitions has three directories. Deleting it takes time, and the broker may be killed in between. Then
the topic must be gone as a whole, or be there as a whole. And deleting must work on a full disk, so it may not begin
with a write. Renaming needs no space. So the broker deletes a topic in these steps::

    1. events-0  ->  events-0.<topic id>-delete      the topic is deleted from here on
       events-1  ->  events-1.<topic id>-delete
    2. the files in these directories are removed    there is space now
    3. topics.json is written without the topic
    4. the directories are removed

A start that finds such a name knows that the topic with this id is deleted. It renames the partitions of the topic that
still have their own names, and does the steps that are left. A topic that was created again under the same name has
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
LONGEST = 200  # characters of the topic's name that stay: a file name has 255 at most
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
    """Remove what is in these directories. Raises OSError."""
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
