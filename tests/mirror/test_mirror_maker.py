"""Tests of a mirror that names its topics as MirrorMaker 2 does. MirrorMaker 2's own classes can read these topics."""

from __future__ import annotations

import hmb
from hmb.mirror.groups import TranslatedOffset
from hmb.mirror.mirror_maker import checkpoint, heartbeat
from hmb.mirror.names import Aliases
from hmb.protocol.topics import TopicPartition
from tests.mirror.conftest import MakeMirror, contents

EAST_TO_WEST = Aliases("east", "west")


def test_the_bytes_of_a_checkpoint() -> None:
    source, target = TopicPartition("t", 1), TopicPartition("east.t", 1)
    record = checkpoint(TranslatedOffset("g", source, 258, target, 3, "m"), now=5)
    assert record.key == b"\0\1g\0\6east.t\0\0\0\1"
    assert record.value == bytes(2) + b"\0\0\0\0\0\0\1\2" + b"\0\0\0\0\0\0\0\3" + b"\0\1m"


def test_the_bytes_of_a_heartbeat() -> None:
    record = heartbeat(EAST_TO_WEST, now=258)
    assert record.key == b"\0\4west\0\4east"
    assert record.value == bytes(2) + b"\0\0\0\0\0\0\1\2"


def test_topics_have_the_name_of_their_cluster(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders", partitions=2)
    source.produce("orders", "a", "b")
    source.create_topic("west.payments")  # The topic is a copy of the target's topic `payments`. The mirror ignores it.
    mirror(aliases=EAST_TO_WEST).run()
    names = ["east.checkpoints.internal", "east.heartbeats", "east.orders"]
    assert sorted(name for name in target.topics() if not name.startswith("__")) == names
    assert contents(target, "east.orders") == contents(source, "orders")


def test_a_checkpoint_is_written_when_the_offset_of_a_group_changes(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders")
    source.produce("orders", "a", "b", "c")
    partition = TopicPartition("orders", 0)
    with hmb.Admin(source.bootstrap_servers) as admin:
        admin.delete_records({partition: 1})
        admin.alter_group_offsets("billing", {partition: 2})
    mirror(aliases=EAST_TO_WEST).run()
    (record,) = target.records("east.checkpoints.internal")
    expected = TranslatedOffset("billing", partition, 2, TopicPartition("east.orders", 0), 1, "")
    assert (record.key, record.value) == (checkpoint(expected, 0).key, checkpoint(expected, 0).value)
    assert target.committed("billing") == {TopicPartition("east.orders", 0): 1}


def test_heartbeats_are_written_at_the_source_and_copied(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    def stop() -> None:
        if "east.heartbeats" in target.topics() and target.records("east.heartbeats"):
            run.stop()

    run = mirror(aliases=EAST_TO_WEST, is_once=False, observe=stop)
    run.run()
    assert target.records("east.heartbeats")[0].key == heartbeat(EAST_TO_WEST, 0).key
