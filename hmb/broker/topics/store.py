"""The file `topics.json`: a list of topics, with the number of partitions and the settings of each topic.

The file `topics.json` is in the data directory. For each topic, it contains only the settings that a client has set:
    {"events": {"partitions": 3, "configs": {"segment.bytes": "1048576"}}}

Each partition of a topic has its own directory. If the broker is killed while it creates a topic, some of these
directories do not exist yet. The broker therefore first writes the new topic into `topics.json`, in one step. When the
broker starts again, it creates each directory that is missing for the topics in this file.

To delete a topic, the broker first renames the topic's directories (storage/state/trash.py). A rename needs no
disk space, so a deletion works even if the disk is full. Next, the broker deletes the files in these
directories, which frees space. Only then does the broker write `topics.json` without the topic.

Another broker, for example Kafka, may have created topics in this data directory. HMB does not know the settings of
these topics, because `topics.json` does not contain them. HMB adds the topics to this file with the settings ADOPTED.
With these settings, it keeps all records of the topics until a client changes their retention.
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
    """The entry of one topic in `topics.json`. `configs` contains only the settings that a client has set."""

    partitions: int  # 0 if the number is unknown; the broker opens the partitions for which it finds directories
    configs: dict[str, str] = field(default_factory=dict)


class TopicStore:
    """Reads and writes the file `topics.json`. Not thread-safe: the caller, `Topics`, holds a lock."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self._manifest = manifest

    def read(self) -> dict[str, StoredTopic]:
        """Read the file, and return its topics by name. Raises DataDirectoryError."""
        try:
            self._manifest.check(self.path)
            if not self.path.exists():
                return {}
            entries = json.loads(self.path.read_text(encoding="utf-8"))
            return {name: _stored(entry) for name, entry in entries.items()}
        except (DamagedStateFile, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise DataDirectoryError(
                f"cannot use the list of topics {self.path}: {error}. Restore the file from a copy. If you have no "
                f"copy, move this file and {self._manifest.path} to another directory. Your topics then have the "
                "default settings, but the broker keeps all records (retention.ms=-1, retention.bytes=-1)"
            ) from error

    def write(self, topics: Mapping[str, StoredTopic]) -> None:
        """Replace the content of the file with these topics. Raises OSError."""
        entries = {name: asdict(topic) for name, topic in topics.items()}
        self._manifest.replace_file(self.path, json.dumps(entries, indent=2, sort_keys=True) + "\n")


def _stored(entry: dict[str, object]) -> StoredTopic:
    partitions, configs = entry["partitions"], entry["configs"]
    if not (isinstance(partitions, int) and isinstance(configs, dict)):
        raise ValueError(f'{entry} must contain the keys "partitions" (a number) and "configs" (a JSON object)')
    return StoredTopic(partitions, {str(name): str(value) for name, value in configs.items()})
