"""The list of topics on disk, with the properties that the directories of the partitions do not contain.

For each topic that this broker created, `topics.json` in the data directory holds the settings that differ from the
broker's, and the number of partitions::

    {"events": {"partitions": 3, "configs": {"segment.bytes": "1048576"}}}

A new topic of three partitions needs three directories, and the broker may be killed before all three exist. So the
broker writes this file first, in one step. The next start creates the listed partitions that have no directory. A
deletion begins with the renaming of a directory, because a deletion must not need room on the disk (state/trash.py).

The file does not list topics that another broker created. Their settings are unknown, so HMB uses the settings ADOPTED
for them, which delete no records, until a client sets their settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.manifest import DamagedStateFile, Manifest

ADOPTED = {"retention.ms": "-1", "retention.bytes": "-1"}


@dataclass(frozen=True, slots=True)
class StoredTopic:
    partitions: int  # 0 means as many partitions as directories exist
    configs: dict[str, str] = field(default_factory=dict)


class TopicStore:
    """The file `topics.json`. Not thread-safe: `Topics` uses it only under its lock."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self._manifest = manifest

    def read(self) -> dict[str, StoredTopic]:
        """Return the topics by name. Raises DataDirectoryError."""
        try:
            self._manifest.check(self.path)
            if not self.path.exists():
                return {}
            entries = json.loads(self.path.read_text(encoding="utf-8"))
            return {name: _stored(entry) for name, entry in entries.items()}
        except (DamagedStateFile, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise DataDirectoryError(
                f"cannot use the list of topics {self.path}: {error}; restore it from a copy, or move it and "
                f"{self._manifest.path} away: then the broker takes its own settings for all topics and deletes none "
                "of their records"
            ) from error

    def write(self, topics: Mapping[str, StoredTopic]) -> None:
        """Replace the file. Raises OSError."""
        entries = {name: asdict(topic) for name, topic in topics.items()}
        self._manifest.replace_file(self.path, json.dumps(entries, indent=2, sort_keys=True) + "\n")


def _stored(entry: dict[str, object]) -> StoredTopic:
    partitions, configs = entry["partitions"], entry["configs"]
    if not (isinstance(partitions, int) and isinstance(configs, dict)):
        raise ValueError(f"{entry} is not of the form partitions, configs")
    return StoredTopic(partitions, {str(name): str(value) for name, value in configs.items()})
