"""A mirror continues without loss after an interruption. If it cannot continue, it raises an error with the cause."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hmb
from hmb.client.admin import ConfigResource, ResourceType
from hmb.client.connection import ConnectionFailed
from hmb.mirror.errors import MirrorError
from hmb.mirror.names import TopicChoice
from hmb.mirror.session import Mirror, MirrorSettings
from hmb.mirror.target import TargetWriter
from hmb.protocol.topics import TopicPartition
from tests.mirror.conftest import EVERYTHING, QUICK, MakeMirror, contents


class CrashError(Exception):
    """Stands for a crash of the mirror: no code of the mirror handles this error."""


def crash_instead_of_commit(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the commit with this number raise an error, as if the mirror had crashed before this commit."""
    commit: Callable[..., None] = TargetWriter.commit
    commits = iter(range(1, 1000))

    def commit_or_crash(self: TargetWriter, positions: object) -> None:
        if next(commits) == number:
            raise CrashError
        commit(self, positions)

    monkeypatch.setattr(TargetWriter, "commit", commit_or_crash)


@pytest.mark.parametrize("transactional", [False, True])
def test_a_crash_before_a_commit_neither_loses_nor_repeats_records(
    source: hmb.Broker,
    target: hmb.Broker,
    mirror: MakeMirror,
    monkeypatch: pytest.MonkeyPatch,
    transactional: bool,
) -> None:
    source.create_topic("orders", partitions=2)
    for number in range(40):
        source.produce("orders", f"value {number}", partition=number % 2)
    with monkeypatch.context() as patch:
        crash_instead_of_commit(patch, 2)  # The mirror makes the first commit before it copies a record.
        with pytest.raises(CrashError):
            mirror(is_transactional=transactional).run()
    assert len(target.records("orders")) == 40  # The records are written, but their positions are not committed.
    source.produce("orders", "one more")
    again = mirror(is_transactional=transactional)
    again.run()
    assert contents(target, "orders") == contents(source, "orders")
    assert {it.keeps_offsets for it in again.partitions.values()} == {not transactional}
    assert sum(it.records for it in again.partitions.values()) == (41 if transactional else 1)


def test_records_of_another_program_in_the_copy_are_not_taken_for_copies(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, said: list[str]
) -> None:
    source.create_topic("orders")
    source.produce("orders", "a", "b")
    mirror().run()
    target.produce("orders", "foreign")
    source.produce("orders", "c")
    mirror().run()
    assert [it.value for it in target.records("orders")] == [b"a", b"b", b"foreign", b"c"]
    assert said == [
        "orders-0: 1 offsets of the copy come from another program",
        "orders-0: from offset 2 on, the copy has other offsets; they are translated",
    ]


def test_the_source_goes_away_and_comes_back(source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror) -> None:
    source.create_topic("orders")
    source.produce("orders", *map(str, range(10)))

    def restart() -> None:
        if not restarts:
            restarts.append(True)
            source.restart()
            source.produce("orders", "after the restart")
        elif len(target.records("orders")) == 11:
            run.stop()

    restarts: list[bool] = []
    run = mirror(is_once=False, observe=restart)
    run.run()
    assert contents(target, "orders") == contents(source, "orders")


@pytest.mark.parametrize("transactional", [False, True])
def test_the_target_goes_away_and_comes_back(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, transactional: bool
) -> None:
    source.create_topic("orders")
    source.produce("orders", *map(str, range(10)))

    def restart() -> None:
        if not restarts:
            restarts.append(True)
            target.restart()
            source.produce("orders", "after the restart")
        elif len(contents(target, "orders")) == 11:
            run.stop()

    restarts: list[bool] = []
    run = mirror(is_once=False, is_transactional=transactional, observe=restart)
    run.run()
    assert contents(target, "orders") == contents(source, "orders")


def test_the_target_stays_away(source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror) -> None:
    source.create_topic("orders")
    with pytest.raises(ConnectionFailed, match="nobody listens on"):
        mirror(is_once=False, retry_for=0.2, observe=target.stop).run()


def test_a_topic_that_is_deleted_at_the_source_is_left_out(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, said: list[str]
) -> None:
    for name in ("orders", "payments"):
        source.create_topic(name)
        source.produce(name, "a")

    def delete() -> None:
        if "orders" in source.topics():
            source.delete_topic("orders")
            source.produce("payments", "b")
        elif said and len(target.records("payments")) == 2:
            run.stop()

    run = mirror(is_once=False, observe=delete)
    run.run()
    assert said == ["source: topic 'orders' was deleted; its copy stays at the target"]


def test_a_mirror_continues_after_records_that_the_source_has_deleted(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, said: list[str]
) -> None:
    source.create_topic("orders")
    source.produce("orders", "a", "b", "c")
    source.faults.add("FETCH", topic="orders", error="OFFSET_OUT_OF_RANGE", times=1)
    mirror().run()
    assert said == [
        "orders-0: offset 0 was deleted at the source; the mirror continues at the first offset that exists"
    ]
    assert contents(target, "orders") == contents(source, "orders")


def test_a_topic_that_is_deleted_at_the_target_ends_the_mirror(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders")

    def delete() -> None:
        if "orders" in target.topics():
            target.delete_topic("orders")
            source.produce("orders", "a")

    with pytest.raises(MirrorError, match=r"target: .*orders.*UNKNOWN_TOPIC_OR_PARTITION"):
        mirror(is_once=False, observe=delete).run()


def test_a_topic_that_was_made_again_is_refused(source: hmb.Broker, mirror: MakeMirror) -> None:
    source.create_topic("orders")
    source.produce("orders", "a", "b")
    mirror().run()
    source.delete_topic("orders")
    source.create_topic("orders")
    with pytest.raises(MirrorError, match="was deleted and created again: delete its copy 'orders'"):
        mirror().run()


def test_a_copy_with_more_partitions_is_refused(source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror) -> None:
    source.create_topic("orders", partitions=2)
    target.create_topic("orders", partitions=3)
    with pytest.raises(MirrorError, match="target: topic 'orders' has 3 partitions, but the source topic has 2"):
        mirror().run()


def test_a_target_that_refuses_the_settings_of_a_new_topic_ends_the_mirror(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders", config={"retention.ms": "5000"})
    target.faults.add("CREATE_TOPICS", error="INVALID_CONFIG")
    refused = r"target: topic 'orders' cannot be created: .*INVALID_CONFIG\); create it yourself, or leave it out"
    with pytest.raises(MirrorError, match=refused):
        mirror().run()


def test_a_target_that_refuses_a_changed_setting_ends_the_mirror(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders")
    mirror().run()
    with hmb.Admin(source.bootstrap_servers) as admin:
        admin.alter_configs(ConfigResource(ResourceType.TOPIC, "orders"), set={"retention.ms": "5000"})
    target.faults.add("INCREMENTAL_ALTER_CONFIGS", error="INVALID_CONFIG")
    refused = r"target: topic 'orders' does not accept retention\.ms=5000: .*INVALID_CONFIG\); leave the topic out"
    with pytest.raises(MirrorError, match=refused):
        mirror().run()


def test_a_record_that_is_too_large_for_the_target_ends_the_mirror(
    source: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders")
    source.produce("orders", "x" * 5000)
    with hmb.Broker(config=QUICK | {"message.max.bytes": "1000"}) as small:
        run = Mirror(
            lambda: hmb.Admin(source.bootstrap_servers),
            lambda: hmb.Admin(small.bootstrap_servers),
            MirrorSettings(TopicChoice(EVERYTHING), EVERYTHING, is_once=True),
        )
        with pytest.raises(MirrorError, match=r"MESSAGE_TOO_LARGE\); raise max.message.bytes"):
            run.run()


def test_a_mirror_into_its_own_source_is_refused(source: hmb.Broker) -> None:
    def admin() -> hmb.Admin:
        return hmb.Admin(source.bootstrap_servers)

    with pytest.raises(MirrorError, match="source and target are the same cluster"):
        Mirror(admin, admin, MirrorSettings(TopicChoice(EVERYTHING), EVERYTHING)).run()


def test_a_group_of_another_program_is_refused(source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror) -> None:
    source.create_topic("orders")
    target.create_topic("orders")
    with hmb.Admin(target.bootstrap_servers) as admin:
        admin.alter_group_offsets("billing", {TopicPartition("orders", 0): 0})
    with pytest.raises(MirrorError, match="does not come from a mirror; choose another group with --group"):
        mirror(group="billing").run()


def test_a_full_disk_at_the_target_ends_the_mirror(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror
) -> None:
    source.create_topic("orders")
    mirror().run()
    source.produce("orders", "a")
    with target.disk.full("orders"), pytest.raises(MirrorError, match=r"target: .*KAFKA_STORAGE_ERROR"):
        mirror().run()
