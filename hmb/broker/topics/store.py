"""The list of topics on disk. It holds what the partitions' directories do not contain.

For each topic that this broker created, `topics.json` in the data directory holds the settings that differ from the
broker's, and the number of partitions::

    {"events": {"partitions": 3, "configs": {"segment.bytes": "1048576"}}}

A new topic of three partitions needs three directories, and the broker may be killed in between. So it writes this file
first, in one step. The next start creates the partitions that the file lists and that have no directory. A deletion is
decided by the directories, because it must not begin with a write (storage/trash.py).

Another broker wrote the directories of topics that the file does not list. Their settings were kept elsewhere, so none
of their records are deleted until somebody sets them: ADOPTED.
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
    partitions: int  # 0: the number of the directories
    configs: dict[str, str] = field(default_factory=dict)


class TopicStore:
    """The file `topics.json`. Not thread-safe: `Topics` calls it under its lock."""

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
