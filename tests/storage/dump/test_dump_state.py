"""Tests of the dump of state files: checkpoints, partition.metadata and meta.properties."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.topics import TopicPartition
from hmb.storage.dump.entries import DumpOptions, View
from hmb.storage.dump.log_files import as_json_fields, dump
from hmb.storage.dump.state_files import STATE_FILES
from hmb.storage.state.checkpoints import TOPIC_ID, leader_epochs_content, offsets_content, topic_id_content
from hmb.storage.state.leader_epochs import LeaderEpochs

OFFSETS = "recovery-point-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"


def lines(path: Path) -> list[str]:
    return [entry.line() for entry in dump([path], DumpOptions()) if entry.kind not in ("file", "damage")]


def damages(directory: Path, name: str, content: bytes) -> list[tuple[object, object]]:
    path = directory / name
    path.write_bytes(content)
    found = [entry.fields() for entry in dump([path], DumpOptions()) if entry.is_damage]
    return [(fields["position"], fields["error"]) for fields in found]


def test_what_the_log_writes(tmp_path: Path) -> None:
    offsets = {TopicPartition("events", 1): 977, TopicPartition("events", 0): 1234}
    (tmp_path / OFFSETS).write_text(offsets_content(offsets))
    (tmp_path / EPOCHS).write_text(leader_epochs_content(LeaderEpochs([(3, 40)])))
    (tmp_path / TOPIC_ID).write_text(topic_id_content(uuid.UUID(int=1)))
    assert lines(tmp_path / OFFSETS) == [
        "version: 0",
        "entries: 2",
        "topic: events partition: 0 offset: 1234",
        "topic: events partition: 1 offset: 977",
    ]
    assert lines(tmp_path / EPOCHS) == ["version: 0", "entries: 1", "epoch: 3 startOffset: 40"]
    assert lines(tmp_path / "partition.metadata") == ["version: 0", "topic_id: AAAAAAAAAAAAAAAAAAAAAQ"]
    assert not any(entry.is_damage for entry in dump([tmp_path], DumpOptions(verify=True)))


def test_an_empty_checkpoint_is_in_order(tmp_path: Path) -> None:
    for name in (OFFSETS, EPOCHS):
        assert damages(tmp_path, name, b"") == []
        assert damages(tmp_path, name, b"0\n0\n") == []


def test_properties_keep_their_comments(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    path.write_text("#\n#Sat Nov 21\nnode.id=1\nversion=1\ncluster.id=a=b\n")
    assert lines(path) == ["#", "#Sat Nov 21", "node.id: 1", "version: 1", "cluster.id: a=b"]
    assert not any(entry.is_damage for entry in dump([path], DumpOptions()))
    # A broker that uses ZooKeeper writes version 0 of this file. Version 0 contains `broker.id` instead of `node.id`,
    # and `cluster.id` may be missing.
    assert damages(tmp_path, "meta.properties", b"version=0\nbroker.id=0\n") == []


def test_json(tmp_path: Path) -> None:
    (tmp_path / OFFSETS).write_text("0\n1\nevents 0 12\n")
    *_, entry = dump([tmp_path / OFFSETS], DumpOptions())
    assert as_json_fields(entry) == {"type": "checkpoint", "topic": "events", "partition": 0, "offset": 12}


@pytest.mark.parametrize(
    ("name", "content", "position", "message"),
    [
        (OFFSETS, b"0\n", 2, "the number of entries is missing"),
        (OFFSETS, b"1\n0\n", 0, "the version should be 0"),
        (OFFSETS, b"0\n2\nt 0 1\n", 10, "expected 2 entries, found 1"),
        (OFFSETS, b"0\n1\nt 0 1\nt 1 1\n", 16, "expected 1 entries, found 2"),
        (OFFSETS, b"0\n1\nt 0\n", 4, "not 'topic partition offset'"),
        (OFFSETS, b"0\n1\nt 0 -5\n", 4, "'-5' is no offset"),
        (OFFSETS, b"0\n1\nt 0 1\xff\n", 4, "invalid start byte"),
        (OFFSETS, b"0\n1\n" + b"t" * 5000, 4, "no line of a"),
        (OFFSETS, bytes(500), 0, "no line of a"),
        (EPOCHS, b"0\n2\n5 10\n4 20\n", 9, "the epoch must be greater than 5, and the offset must be at least 10"),
        (EPOCHS, b"0\n2\n5 10\n6 9\n", 9, "the epoch must be greater than 5, and the offset must be at least 10"),
        ("partition.metadata", b"version: 0\n", 0, "the file has no topic_id"),
        ("partition.metadata", b"version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", 0, "the version should be 0"),
        ("partition.metadata", b"version: 0\ntopic_id: short", 11, "is not a topic id"),
        ("meta.properties", b"version=1\ncluster.id=x\n", 0, "the file has no node.id"),
        ("meta.properties", b"version=1\ncluster.id=x\nnode.id=0\nrubbish\n", 33, "not have the form 'name=value'"),
    ],
)
def test_damage(tmp_path: Path, name: str, content: bytes, position: int, message: str) -> None:
    assert [(found, message in str(error)) for found, error in damages(tmp_path, name, content)] == [(position, True)]


def test_a_damaged_line_does_not_hide_the_next(tmp_path: Path) -> None:
    path = tmp_path / OFFSETS
    path.write_text("0\n3\na 0 1\nb 0\nc 0 3\n")
    assert lines(path)[2:] == ["topic: a partition: 0 offset: 1", "topic: c partition: 0 offset: 3"]


@given(st.sampled_from(sorted(STATE_FILES)), st.binary(max_size=80) | st.text("01 9t\n", max_size=40).map(str.encode))
def test_random_bytes_in_either_view(tmp_path_factory: pytest.TempPathFactory, name: str, junk: bytes) -> None:
    path = tmp_path_factory.mktemp("junk") / name
    path.write_bytes(junk)
    for view in View:
        assert all(entry.line() or entry.kind == "note" for entry in dump([path], DumpOptions(view=view)))
