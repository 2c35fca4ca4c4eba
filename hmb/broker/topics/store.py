"""The list of topics on disk: what the partitions' directories cannot say.

`topics.json` in the data directory holds for each topic that was made here its settings (those that differ from the
broker's) and its number of partitions::

    {"events": {"partitions": 3, "configs": {"segment.bytes": "1048576"}, "deleting": false}}

Making a topic of three partitions is three directories, and so is deleting one; a crash may come in between.  So the
file, replaced in one step, is written first: a topic that it lists is complete after the next start (what is missing is
made, it is empty), and one that it lists as `deleting` is gone.

A directory that the file does not name was written by another broker.  Its settings were kept elsewhere, so none of its
records are deleted until somebody sets them: ADOPTED.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hmb.storage.files import replace_file
from hmb.storage.log_manager import DataDirectoryError

ADOPTED = {"retention.ms": "-1", "retention.bytes": "-1"}


@dataclass(frozen=True, slots=True)
class StoredTopic:
    partitions: int  # 0: as many as there are directories
    configs: dict[str, str] = field(default_factory=dict)
    deleting: bool = False


class TopicStore:
    """The file, and what it held last.  Not thread-safe: `Topics` calls it under its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, StoredTopic]:
        """Raises DataDirectoryError."""
        if not self.path.exists():
            return {}
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))
            return {name: _stored(entry) for name, entry in entries.items()}
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise DataDirectoryError(
                f"cannot read the list of topics {self.path}: {error}; mend it, or move it away to go on with the "
                "topics that there are and the broker's settings, deleting nothing"
            ) from error

    def write(self, topics: Mapping[str, StoredTopic]) -> None:
        """Raises OSError."""
        entries = {name: asdict(topic) for name, topic in topics.items()}
        replace_file(self.path, json.dumps(entries, indent=2, sort_keys=True) + "\n")


def _stored(entry: dict[str, object]) -> StoredTopic:
    partitions, configs, deleting = entry["partitions"], entry["configs"], entry["deleting"]
    if not (isinstance(partitions, int) and isinstance(configs, dict) and isinstance(deleting, bool)):
        raise ValueError(f"{entry} is not of the form partitions, configs, deleting")
    return StoredTopic(partitions, {str(name): str(value) for name, value in configs.items()}, deleting)
