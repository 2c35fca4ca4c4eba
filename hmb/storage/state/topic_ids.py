"""The id of each topic. Each partition of the topic stores the id in a file `partition.metadata`.

As long as a topic exists, its id must not change, because the committed offsets of groups belong to this id. If
a topic is deleted and created again with the same name, the new topic gets another id. If a file
`partition.metadata` is lost, the broker takes the id from the manifest, a file that also contains the ids. If
the manifest lacks the id, the broker takes it from another partition of the topic.

Source: KIP-516.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from pathlib import Path

from hmb.protocol.topics import TopicPartition
from hmb.storage.state import checkpoints
from hmb.storage.state.manifest import DamagedStateFile, Manifest

LOGGER = logging.getLogger(__name__)


def read_topic_ids(
    directory: Path, partitions: Iterable[TopicPartition], manifest: Manifest
) -> dict[str, uuid.UUID]:
    """Return the id of each topic, by topic name. A topic that has no id yet gets a new id. Raises OSError."""
    found = {name: _read_topic_id(directory, name, manifest) for name in sorted(partitions)}
    ids: dict[str, uuid.UUID] = {}
    for name, topic_id in found.items():
        if topic_id is not None and ids.setdefault(name.topic, topic_id) != topic_id:
            LOGGER.error(
                "the broker replaces the topic id in %s: another partition of the same topic has a different id",
                directory / str(name),
            )
    for name, topic_id in found.items():
        if ids.setdefault(name.topic, topic_id or uuid.uuid4()) != topic_id:
            content = checkpoints.topic_id_content(ids[name.topic])
            manifest.replace_file(directory / str(name) / checkpoints.TOPIC_ID, content)
    return ids


def _read_topic_id(directory: Path, name: TopicPartition, manifest: Manifest) -> uuid.UUID | None:
    """Return the topic id of a partition, or None if no intact file contains the id. Raises OSError."""
    path, known = directory / str(name) / checkpoints.TOPIC_ID, manifest.topic_id(str(name))
    try:
        found = checkpoints.read_topic_id(directory / str(name))
    except DamagedStateFile as error:
        LOGGER.error(
            "%s; the broker looks for the topic id in the manifest and in the topic's other partitions, and creates a "
            "new topic id if it finds none",
            error,
        )
        found = None
    if known is None or found == checkpoints.decode_topic_id(known):
        return found
    LOGGER.error("%s is missing or was changed: the topic id is written again", path)
    manifest.replace_file(path, checkpoints.topic_id_content(checkpoints.decode_topic_id(known)))
    return checkpoints.decode_topic_id(known)
