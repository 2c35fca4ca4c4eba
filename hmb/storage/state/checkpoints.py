"""Reads and writes the small state files of a data directory, in Kafka's formats.

This module handles these state files of a data directory:
- `<name>-checkpoint`: an offset for each partition. Line 1 is the version (`0`). Line 2 is the number of the
  lines after it. Each later line is `topic partition offset`.
- `meta.properties`: the node id, the cluster id and the id of the directory.
- `<partition>/partition.metadata`: the topic id. If a topic is deleted and created again with the same name,
  the new topic has another id.
- `<partition>/leader-epoch-checkpoint`: the leader epochs. Line 1 is the version (`0`). Line 2 is the number of
  epochs. Each later line is `epoch start-offset`.

The functions `read_...` read a state file. The functions `..._content` return the text of a new state file. The broker
replaces a state file in one step, and writes the file's CRC to the manifest (manifest.py).
"""

from __future__ import annotations

import uuid
from pathlib import Path

from hmb.protocol.topics import TopicPartition
from hmb.storage.state.leader_epochs import LeaderEpochs
from hmb.storage.state.manifest import DamagedStateFile
from hmb.storage.state.properties import PropertiesError, read_properties
from hmb.uuids import decode_uuid, encode_uuid

VERSION_LINE = "0"
LEADER_EPOCHS = "leader-epoch-checkpoint"
TOPIC_ID = "partition.metadata"


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return the offsets in a checkpoint, or an empty dict if the file is missing. Raises DamagedStateFile."""
    offsets = {}
    for line in _checkpoint_lines(path):
        try:
            topic, partition, offset = line.split(" ")
            offsets[TopicPartition(topic, int(partition))] = _natural(offset)
        except ValueError:
            raise DamagedStateFile(f"{path}: {line!r} does not have the form 'topic partition offset'") from None
    return offsets


def offsets_content(offsets: dict[TopicPartition, int]) -> str:
    """Return the content of a checkpoint with these offsets."""
    return _checkpoint([f"{name.topic} {name.partition} {offset}" for name, offset in sorted(offsets.items())])


def read_leader_epochs(directory: Path) -> LeaderEpochs:
    """Return a partition's leader epochs, or only epoch 0 if the file is missing. Raises DamagedStateFile."""
    path = directory / LEADER_EPOCHS
    lines = [line.split(" ") for line in _checkpoint_lines(path)]
    try:
        starts = [(_natural(epoch), _natural(start)) for epoch, start in lines]
        return LeaderEpochs(starts) if starts else LeaderEpochs()
    except ValueError as error:
        raise DamagedStateFile(
            f"{path}: a line is wrong ({error}). Each line must have the form 'epoch offset'. "
            "From line to line, epochs must increase, and offsets must not decrease"
        ) from None


def leader_epochs_content(epochs: LeaderEpochs) -> str:
    """Return the content of a file `leader-epoch-checkpoint`."""
    return _checkpoint([f"{epoch} {start}" for epoch, start in epochs.starts])


def read_cluster_id(path: Path) -> str:
    """Return the cluster id in meta.properties, or "" if Kafka 0.9 or older wrote the file. Raises DamagedStateFile."""
    try:
        properties = read_properties(path)
    except PropertiesError as error:
        raise DamagedStateFile(str(error)) from None
    version, cluster_id = properties.get("version"), properties.get("cluster.id", "")
    if version not in ("0", "1") or (version == "1" and not cluster_id):
        raise DamagedStateFile(f"{path}: the file must contain 'version=0', or both 'version=1' and a 'cluster.id'")
    return cluster_id


def read_topic_id(directory: Path) -> uuid.UUID | None:
    """Return the topic id in a partition's directory, or None if the directory has no file with this id.

    Raises DamagedStateFile, OSError.
    """
    path = directory / TOPIC_ID
    if not path.exists():
        return None
    for line in _read_lines(path):
        name, _, value = line.partition(":")
        if name == "topic_id":
            try:
                return decode_topic_id(value.strip())
            except DamagedStateFile as error:
                raise DamagedStateFile(f"{path}: {error}") from None
    raise DamagedStateFile(f"{path}: the file has no line 'topic_id: ...'")


def topic_id_content(topic_id: uuid.UUID) -> str:
    """Return the content of a file `partition.metadata`, which contains this topic id."""
    return f"version: 0\ntopic_id: {encode_uuid(topic_id)}"


def decode_topic_id(text: str) -> uuid.UUID:
    """Return the topic id that `text` contains. Raises DamagedStateFile."""
    try:
        return decode_uuid(text)
    except ValueError:
        raise DamagedStateFile(f"{text!r} is not a topic id") from None


def _checkpoint_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = _read_lines(path)
    head, lines = text[:2], text[2:]
    if head != [VERSION_LINE, str(len(lines))]:
        raise DamagedStateFile(f"{path}: expected '{VERSION_LINE}' and the number of lines that follow, found {head}")
    return lines


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise DamagedStateFile(f"{path}: the file is not text") from None


def _checkpoint(lines: list[str]) -> str:
    return "\n".join([VERSION_LINE, str(len(lines)), *lines]) + "\n"
