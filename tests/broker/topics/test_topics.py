"""Tests that the broker creates or deletes a topic completely or not at all, even if the broker crashes meanwhile."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hmb.coordinator.producer_ids import ProducerIds
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.topics import NO_TOPIC_ID
from hmb.storage.state import manifest, trash
from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.trash import SUFFIX
from tests.broker.conftest import Asker
from tests.storage.conftest import batch, read_all

MakeAsker = Callable[..., Asker]


class Crash(BaseException):
    """An exception that simulates `kill -9`: it ends the broker's code, and nothing catches it."""


def topics_of(ask: Asker) -> dict[str, list[int]]:
    return {topic.name: sorted(topic.partitions) for topic in ask.broker.topics.all()}


@pytest.mark.parametrize("made", [0, 1, 2])
def test_a_topic_whose_creation_was_killed_is_complete_after_the_next_start(
    make_asker: MakeAsker, monkeypatch: pytest.MonkeyPatch, made: int
) -> None:
    ask = make_asker()
    mkdir, left = Path.mkdir, made

    def crashing(path: Path, **options: int) -> None:
        nonlocal left
        if left == 0:
            raise Crash
        left -= 1
        mkdir(path, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(Path, "mkdir", crashing)
        ask.broker.topics.create("t", 3, {"segment.bytes": "1000"})
    ask.close()
    again = make_asker()
    assert topics_of(again) == {"t": [0, 1, 2]}
    assert again.broker.topics.log("t", again.broker.topics.all()[0].id, 2).config.segment_bytes == 1000


NEIGHBOR = "t-"  # a topic whose name begins with the name of the deleted topic
# The deletion renames the directory of a topic. For this topic, the new name of the directory would be too long.
LONG = "long" * 60 + "tail"


@pytest.mark.parametrize("name", ["t", LONG])
def test_a_topic_whose_deletion_was_killed_is_gone_or_whole_after_the_next_start(
    make_asker: MakeAsker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    outcomes = []
    for steps in range(100):
        ask = make_asker()
        topic = ask.broker.topics.create(name, 3)
        ask.broker.topics.create(NEIGHBOR, 2)
        for log in topic.partitions.values():
            log.append(batch(1))
        with monkeypatch.context() as patch:
            crash_after(steps, patch)
            try:
                ask.broker.topics.delete([topic])
            except Crash:
                pass
            else:
                break
        ask.close()
        again = make_asker()
        outcomes.append(len(topics_of(again).get(name, [])))
        assert topics_of(again)[NEIGHBOR] == [0, 1]
        if outcomes[-1]:
            kept = again.broker.topics.find(name, NO_TOPIC_ID)
            assert [log.log_end_offset for log in kept.partitions.values()] == [1, 1, 1]
        else:
            assert again.broker.topics.create(name, 1).partitions[0].log_end_offset == 0
            again.close()
            again = make_asker()
            assert topics_of(again)[name] == [0]
        for each in again.broker.topics.all():
            again.broker.topics.delete([each])
        assert not list(again.logs.directory.glob(f"*{SUFFIX}"))
        again.close()
    assert outcomes[:1] == [3] and set(outcomes[1:]) == {0}
    assert len(outcomes) > 10


def crash_after(steps: int, patch: pytest.MonkeyPatch) -> None:
    """Let the broker rename or delete `steps` files or directories. Raise Crash at the next rename or deletion."""
    left = steps

    def crashing(change: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal left
            if left == 0:
                raise Crash
            left -= 1
            return change(*arguments, **options)

        return call

    for name in ("rename", "unlink", "rmdir"):
        patch.setattr(Path, name, crashing(getattr(Path, name)))


def test_a_topic_can_be_created_again_while_files_of_the_old_one_are_left(
    make_asker: MakeAsker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = make_asker()
    topics = ask.broker.topics
    with monkeypatch.context() as patch:
        patch.setattr(trash, "empty", full_disk)
        topics.delete([topics.create("t", 3)])
    new = topics.create("t", 2)
    new.partitions[1].append(batch(4))
    shutil.copytree(ask.logs.directory, ask.logs.directory.with_name("killed"))
    ask.close()
    again = make_asker()
    assert topics_of(again) == {"t": [0, 1]}
    assert again.broker.topics.all()[0].id == new.id
    assert again.broker.topics.all()[0].partitions[1].log_end_offset == 4
    assert not list(again.logs.directory.glob(f"*{SUFFIX}"))


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_creation_that_fails_leaves_no_files(make_asker: MakeAsker, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = make_asker()

    with monkeypatch.context() as patch, pytest.raises(KafkaError) as error:
        patch.setattr("hmb.storage.log_manager.sync_all", full_disk)
        ask.broker.topics.create("t", 3)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert topics_of(ask) == {}
    ask.broker.topics.create("t", 2)
    ask.close()
    assert topics_of(make_asker()) == {"t": [0, 1]}


def test_files_that_cannot_be_removed_do_not_keep_their_topic(
    make_asker: MakeAsker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask = make_asker()
    forgotten: list[str] = []

    def busy(trash: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(trash, "empty", busy)
    ask.broker.topics.delete([ask.broker.topics.create("t", 1)], forgotten.extend)
    assert (topics_of(ask), forgotten) == ({}, ["t"])
    ask.close()
    assert list((tmp_path / "data").glob(f"*{SUFFIX}"))
    monkeypatch.undo()
    assert topics_of(make_asker()) == {}
    assert not list((tmp_path / "data").glob(f"*{SUFFIX}"))


def test_a_topic_created_again_does_not_inherit_settings(make_asker: MakeAsker) -> None:
    ask = make_asker()
    ask.broker.topics.delete([ask.broker.topics.create("t", 1, {"retention.ms": "1"})])
    ask.broker.topics.create("t", 1)
    ask.close()
    assert make_asker().broker.topics.all()[0].configs == {}


def test_deleting_a_topic_twice_does_not_delete_the_next_topic_of_that_name(ask: Asker) -> None:
    topics = ask.broker.topics
    old = topics.create("t", 1)
    topics.delete([old])
    new = topics.create("t", 1)
    (outcome,) = topics.delete([old])
    assert outcome is not None and outcome.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topics.get("t") is new


def test_a_produce_that_still_holds_a_deleted_log_writes_nothing_into_its_successor(ask: Asker) -> None:
    topics = ask.broker.topics
    old = topics.create("t", 1).partitions[0]
    topics.delete([topics.all()[0]])
    new = topics.create("t", 1).partitions[0]
    new.append(batch(2))
    with pytest.raises(KafkaError) as error:
        old.append(batch(1))
    assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [record.offset for record in read_all(new)] == [0, 1]


def test_a_topic_with_the_longest_name_can_be_deleted(ask: Asker) -> None:
    name = "x" * 249
    ask.broker.topics.delete([ask.broker.topics.create(name, 1)])
    assert topics_of(ask) == {}
    assert not [path for path in ask.logs.directory.iterdir() if path.is_dir()]


def test_the_log_of_a_kraft_controller_is_not_a_topic(ask: Asker) -> None:
    with pytest.raises(KafkaError) as error:
        ask.broker.topics.create("__cluster_metadata", 1)
    assert error.value.code is ErrorCode.INVALID_REQUEST


def test_topics_of_another_broker_keep_all_their_records(make_asker: MakeAsker, tmp_path: Path) -> None:
    ask = make_asker()
    ask.broker.topics.create("theirs", 2)
    ask.close()
    for name in ("topics.json", manifest.NAME):
        (tmp_path / "data" / name).unlink()
    shutil.rmtree(tmp_path / "data" / "theirs-0")  # In a cluster, another broker would store partition 0.
    for name in ("ours", "ours too"):
        again = make_asker()
        theirs = again.broker.topics.get("theirs")
        assert theirs is not None and sorted(theirs.partitions) == [1]
        config = theirs.partitions[1].config
        assert (config.retention_ms, config.retention_bytes) == (-1, -1)
        again.broker.topics.create(name.replace(" ", "-"), 1)
        again.close()


@pytest.mark.parametrize("text", ["", "[]", '{"t": 1}', '{"t": {"partitions": "x", "configs": {}}}'])
def test_a_damaged_list_of_topics_is_named(make_asker: MakeAsker, tmp_path: Path, text: str) -> None:
    make_asker().close()
    (tmp_path / "data" / "topics.json").write_text(text)
    with pytest.raises(DataDirectoryError, match=r"topics\.json"):
        make_asker()


def test_the_list_of_topics_is_json_for_people(ask: Asker) -> None:
    ask.broker.topics.create("t", 2, {"segment.bytes": "1000"})
    text = (ask.logs.directory / "topics.json").read_text()
    assert json.loads(text) == {"t": {"partitions": 2, "configs": {"segment.bytes": "1000"}}}


def test_a_closed_log_accepts_no_records(make_asker: MakeAsker) -> None:
    ask = make_asker()
    log = ask.broker.topics.create("t", 1).partitions[0]
    log.append(batch(1))
    ask.close()
    with pytest.raises(KafkaError) as error:
        log.append(batch(1))
    assert error.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert make_asker().broker.topics.all()[0].partitions[0].log_end_offset == 1


def test_producer_ids_in_logs_are_not_assigned_again(make_asker: MakeAsker, tmp_path: Path) -> None:
    ask = make_asker()
    ask.broker.topics.create("t", 1).partitions[0].append(
        batch(1, producer_id=4_321, producer_epoch=0, base_sequence=0)
    )
    ask.close()
    assert make_asker()(InitProducerIdRequest(transactional_id=None), 4).producer_id > 4_321


@pytest.mark.parametrize("highest", [2**63 - 1, 2**62])
def test_a_batch_with_the_greatest_producer_id_does_not_end_the_assignment_of_ids(
    make_asker: MakeAsker, tmp_path: Path, highest: int
) -> None:
    """The broker still assigns producer ids after a batch with the greatest possible producer id.

    Before a bug was fixed, the broker could assign no further ids after such a batch.
    """
    ask = make_asker()
    log = ask.broker.topics.create("t", 1).partitions[0]
    log.append(batch(1, producer_id=4_321, producer_epoch=0, base_sequence=0))
    log.append(batch(1, producer_id=highest, producer_epoch=0, base_sequence=0))
    ids = []
    for _ in range(3):
        answers = [ask(InitProducerIdRequest(transactional_id=None), 4) for _ in range(2)]
        assert [answer.error_code for answer in answers] == [0, 0]
        ids += [answer.producer_id for answer in answers]
        ask.close()
        ask = make_asker()
    assert len(set(ids)) == len(ids)
    assert ids[2] > 4_321


def test_the_last_producer_ids_are_assigned_once(tmp_path: Path) -> None:
    (tmp_path / "ids").write_text(str(2**63 - 1001))
    ids = ProducerIds(tmp_path / "ids", manifest.Manifest(tmp_path))
    assert [ids.allocate() for _ in range(1000)][-1] == 2**63 - 2
    for each in (ids, ProducerIds(tmp_path / "ids", manifest.Manifest(tmp_path))):
        with pytest.raises(KafkaError, match="all producer ids have been assigned"):
            each.allocate()
