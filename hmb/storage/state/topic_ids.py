"""The id of each topic, in the file `partition.metadata` of each of its partitions.

A topic that is created again under an old name has another id, so that a consumer does not mistake the new records for
the old ones. The committed offsets of groups belong to the id. So a topic must keep its id if a file is lost. The
manifest and the other partitions of the topic contain the id, too.

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
    """Read the id of each topic. A topic of a broker without topic ids gets a new id. Raises OSError."""
    found = {name: _read_topic_id(directory, name, manifest) for name in sorted(partitions)}
    ids: dict[str, uuid.UUID] = {}
    for name, topic_id in found.items():
        if topic_id is not None and ids.setdefault(name.topic, topic_id) != topic_id:
            LOGGER.error("%s has another topic id than other partitions: the broker replaces it", directory / str(name))
    for name, topic_id in found.items():
        if ids.setdefault(name.topic, topic_id or uuid.uuid4()) != topic_id:
            content = checkpoints.topic_id_content(ids[name.topic])
            manifest.replace_file(directory / str(name) / checkpoints.TOPIC_ID, content)
    return ids


def _read_topic_id(directory: Path, name: TopicPartition, manifest: Manifest) -> uuid.UUID | None:
    """Return the topic id of a partition; None if its directory has no readable one. Raises OSError."""
    path, known = directory / str(name) / checkpoints.TOPIC_ID, manifest.topic_id(str(name))
    try:
        found = checkpoints.read_topic_id(directory / str(name))
    except DamagedStateFile as error:
        LOGGER.error("%s; the partition gets the id of the manifest or of another partition, or a new one", error)
        found = None
    if known is None or found == checkpoints.decode_uuid(known):
        return found
    LOGGER.error("%s is missing or was changed: the topic id is written again", path)
    manifest.replace_file(path, checkpoints.topic_id_content(checkpoints.decode_uuid(known)))
    return checkpoints.decode_uuid(known)
