"""The file `backup.json`: it stores everything in a backup except the records.

In the following example, `backup.json` describes one topic with one partition, one consumer group and one share group.
The partition has the records 100 to 149:
    {"format": 1, "cluster_id": "Zk3...", "created": "2026-11-26T01:30:00Z",
     "topics": {"orders": {"configs": {"retention.ms": "3600000"},
                           "partitions": [{"partition": 0, "log_start_offset": 100, "log_end_offset": 150,
                                           "segments": ["orders-0/00000000000000000100.log"]}]}},
     "groups": {"billing": [{"topic": "orders", "partition": 0, "offset": 120, "metadata": ""}]},
     "share_groups": {"workers": [{"topic": "orders", "partition": 0, "offset": 130}]}}
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ..shared.errors import DAMAGE, ERROR, CliError

FORMAT = 1
CONTENTS = "backup.json"


@dataclass
class SavedPartition:
    """A partition in a backup, with the names of its segments in the order of their offsets."""

    partition: int
    log_start_offset: int
    log_end_offset: int
    segments: list[str] = field(default_factory=list)


@dataclass
class SavedTopic:
    """A topic in a backup.

    `configs` contains only the settings that a user has set for this topic. `partitions` contains the partitions in
    the order of their numbers: 0, 1, 2 and so on.
    """

    configs: dict[str, str]
    partitions: list[SavedPartition]


@dataclass
class SavedOffset:
    """The committed offset of a group in one partition."""

    topic: str
    partition: int
    offset: int
    metadata: str


@dataclass
class SavedStartOffset:
    """The start offset of a share group in one partition."""

    topic: str
    partition: int
    offset: int


@dataclass
class BackupContents:
    """The contents of the file backup.json. `created` is the time at which the backup began."""

    cluster_id: str | None
    created: str
    topics: dict[str, SavedTopic] = field(default_factory=dict)
    groups: dict[str, list[SavedOffset]] = field(default_factory=dict)
    share_groups: dict[str, list[SavedStartOffset]] = field(default_factory=dict)

    def encode(self) -> bytes:
        return (json.dumps({"format": FORMAT} | asdict(self), indent=1, ensure_ascii=False) + "\n").encode()


def decode_contents(data: bytes, where: str) -> BackupContents:
    """Decode the content of a backup's file backup.json.

    `data` contains the bytes of the file. The text `where` is the path of the backup. Raises CliError if the file
    is damaged or has an unknown format. The error message begins with the path.
    """
    try:
        found = json.loads(data)
        if found["format"] != FORMAT:
            what = f"the backup has the format {found['format']}, and this version of hmb reads format {FORMAT}"
            raise CliError(f"{where}: {what}", ERROR)
        topics = {name: _topic(topic) for name, topic in found["topics"].items()}
        groups = {name: [SavedOffset(**offset) for offset in offsets] for name, offsets in found["groups"].items()}
        share_groups = {
            name: [SavedStartOffset(**offset) for offset in offsets]
            for name, offsets in found.get("share_groups", {}).items()  # Older backups contain no share groups.
        }
        return BackupContents(found["cluster_id"], found["created"], topics, groups, share_groups)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CliError(f"{where}: {CONTENTS} is damaged: {error}", DAMAGE) from None


def _topic(found: dict[str, Any]) -> SavedTopic:
    return SavedTopic(found["configs"], [SavedPartition(**partition) for partition in found["partitions"]])
