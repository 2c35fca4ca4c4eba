"""Tests of log start offsets and the end offsets of leader epochs in several APIs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hmb.broker.topics.topic import Topic
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.delete_records import DeleteRecordsRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from hmb.storage.log import Log
from hmb.storage.state.leader_epochs import LeaderEpochs
from tests.broker.calls import fetch, list_offsets, outcome
from tests.broker.conftest import Asker
from tests.storage.conftest import batch

MakeAsker = Callable[..., Asker]


def delete(ask: Asker, offsets: Mapping[int, int], *, topic: str = "t", version: int = 2) -> dict[int, tuple[int, int]]:
    """Delete the records below the given offset of each partition.

    Return `{partition: (log start offset, error code)}`.
    """
    partition = DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition
    partitions = [partition(partition_index=number, offset=offset) for number, offset in offsets.items()]
    request = DeleteRecordsRequest(topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=partitions)])
    (answer,) = ask(request, version).topics
    return {p.partition_index: (p.low_watermark, p.error_code) for p in answer.partitions}


def filled(ask: Asker, partitions: int = 1, **configs: str) -> Topic:
    """Create a topic. Each partition contains the offsets 0 to 5 with the timestamps 100 to 105."""
    topic = ask.broker.topics.create("t", partitions, {name.replace("_", "."): text for name, text in configs.items()})
    for log in topic.partitions.values():
        for first in (100, 103):
            log.append(batch(3, first_timestamp=first))
    return topic


@pytest.mark.parametrize("version", DeleteRecordsRequest.versions)
def test_records_below_an_offset_are_deleted(ask: Asker, version: int) -> None:
    filled(ask)
    assert delete(ask, {0: 4}, version=version) == {0: (4, 0)}
    assert outcome(ask(fetch(3), 12)) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert outcome(ask(fetch(4), 12)) == 0
    assert list_offsets(ask, -2, 7) == (0, -1, 4)
    assert delete(ask, {0: 2}, version=version) == {0: (4, 0)}, "what is gone stays gone"


def test_minus_1_is_the_high_watermark(ask: Asker) -> None:
    filled(ask)
    assert delete(ask, {0: -1}) == {0: (6, 0)}
    assert outcome(ask(fetch(6), 12)) == 0


def test_each_partition_has_its_own_error(ask: Asker) -> None:
    filled(ask, partitions=3)
    wrong = ErrorCode.OFFSET_OUT_OF_RANGE
    expected = {0: (-1, wrong), 1: (-1, wrong), 2: (1, 0), 3: (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
    assert delete(ask, {0: 7, 1: -2, 2: 1, 3: 0}) == expected
    assert delete(ask, {0: 0}, topic="none") == {0: (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}


def test_compaction_alone_decides_in_a_compacted_topic(ask: Asker) -> None:
    ask.broker.topics.create("t", 1, {"cleanup.policy": "compact"})
    assert delete(ask, {0: 0}) == {0: (-1, ErrorCode.POLICY_VIOLATION)}
    ask.broker.topics.create("u", 1, {"cleanup.policy": "compact,delete"})
    assert delete(ask, {0: 0}, topic="u") == {0: (0, 0)}


def test_an_internal_topic_keeps_its_records(ask: Asker) -> None:
    ask.broker.topics.create("__consumer_offsets", 1)
    assert delete(ask, {0: 0}, topic="__consumer_offsets") == {0: (-1, ErrorCode.INVALID_TOPIC_EXCEPTION)}


def test_deleted_records_stay_deleted_after_a_kill(ask: Asker, make_asker: MakeAsker, tmp_path: Path) -> None:
    """The broker stores the new log start offset on disk before it responds to DeleteRecords.

    The test copies the checkpoint file when the response arrives, and starts a broker with this copy.
    """
    log = filled(ask).partitions[0]
    log.flush()
    assert delete(ask, {0: 4}) == {0: (4, 0)}
    start = (tmp_path / "data" / "log-start-offset-checkpoint").read_text()
    ask.close()
    (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "data" / "log-start-offset-checkpoint").write_text(start)
    assert list_offsets(make_asker(), -2, 7) == (0, -1, 4)


def test_a_start_that_cannot_be_written_is_not_answered_as_done(ask: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(ask)

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hmb.storage.state.manifest.replace_files", full_disk)
    assert delete(ask, {0: 4}) == {0: (-1, ErrorCode.KAFKA_STORAGE_ERROR)}


# -- ListOffsets after DeleteRecords


def test_a_time_is_not_answered_with_a_deleted_record(ask: Asker) -> None:
    filled(ask)
    delete(ask, {0: 4})
    assert list_offsets(ask, 101, 7) == (0, 104, 4)
    assert list_offsets(ask, -3, 7) == (0, 105, 5)
    delete(ask, {0: 6})
    assert list_offsets(ask, 101, 7) == (0, -1, -1)


def test_version_0_named_segment_starts_before_the_logs_start(ask: Asker) -> None:
    filled(ask, segment_bytes="100")  # Each batch gets its own segment.
    delete(ask, {0: 4})
    partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    for timestamp, expected in ((-1, [6, 4]), (2**62, [4])):
        wanted = ListOffsetsRequest.ListOffsetsTopic(name="t")
        wanted.partitions = [partition(timestamp=timestamp, max_num_offsets=10)]
        (answer,) = ask(ListOffsetsRequest(topics=[wanted]), 0).topics[0].partitions
        assert answer.old_style_offsets == expected


def test_offsets_come_with_the_epoch_that_wrote_them(ask: Asker) -> None:
    several_epochs(ask)
    partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition

    def epoch_at(timestamp: int) -> int:
        wanted = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition(timestamp=timestamp)])
        found: int = ask(ListOffsetsRequest(topics=[wanted]), 11).topics[0].partitions[0].leader_epoch
        return found

    assert [epoch_at(time) for time in (-1, -2, -3, -4, 100, 104, 106)] == [5, 0, 5, 0, 0, 5, -1]
    assert [epoch_at(tiered) for tiered in (-5, -6)] == [-1, -1]


# -- end offsets of leader epochs


def several_epochs(ask: Asker) -> Log:
    """Return a log with three leader epochs: epoch 0 has offsets 0 and 1, epoch 2 has 2 and 3, epoch 5 has 4 and 5."""
    log = filled(ask).partitions[0]
    log.epochs = LeaderEpochs([(0, 0), (2, 2), (5, 4)])
    return log


def ends(ask: Asker, *epochs: int, version: int = 4, current: int = -1, topic: str = "t") -> list[tuple[int, int, int]]:
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    partition = asked.OffsetForLeaderPartition
    partitions = [partition(leader_epoch=epoch, current_leader_epoch=current) for epoch in epochs]
    (answer,) = ask(OffsetForLeaderEpochRequest(topics=[asked(topic=topic, partitions=partitions)]), version).topics
    return [(p.error_code, p.leader_epoch, p.end_offset) for p in answer.partitions]


@pytest.mark.parametrize("version", OffsetForLeaderEpochRequest.versions)
def test_behaviour_7_an_epoch_of_the_future_has_no_end(ask: Asker, version: int) -> None:
    several_epochs(ask)
    found = ends(ask, 0, 1, 2, 5, 6, -1, version=version)
    assert [end for _, _, end in found] == [2, 2, 4, 6, -1, -1]
    assert [epoch for _, epoch, _ in found] == ([0, 0, 2, 5, -1, -1] if version else [-1] * 6)
    assert {code for code, _, _ in found} == {0}


def test_an_epoch_ends_at_the_logs_start_at_least(ask: Asker) -> None:
    several_epochs(ask)
    delete(ask, {0: 3})
    assert ends(ask, 0, 2) == [(0, 0, 3), (0, 2, 4)]


def test_a_client_with_another_current_epoch_gets_an_error(ask: Asker) -> None:
    several_epochs(ask)
    fenced, unknown = ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH
    for current, code in ((5, 0), (4, fenced), (6, unknown), (-1, 0)):
        assert ends(ask, 5, current=current)[0][0] == code
        assert outcome(ask(fetch(epoch=current), 12)) == code
        partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(timestamp=-1, current_leader_epoch=current)
        wanted = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])
        assert ask(ListOffsetsRequest(topics=[wanted]), 4).topics[0].partitions[0].error_code == code


def test_unknown_partitions_have_no_epochs(ask: Asker) -> None:
    assert ends(ask, 0, topic="none") == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)]


def test_a_fetch_with_an_old_epoch_gets_the_diverging_epoch(ask: Asker) -> None:
    several_epochs(ask)

    def ask_from(offset: int, last_epoch: int) -> tuple[int, tuple[int, int], int]:
        request = fetch(offset)
        request.topics[0].partitions[0].last_fetched_epoch = last_epoch
        (answer,) = ask(request, 12).responses[0].partitions
        diverging = answer.diverging_epoch
        return answer.error_code, (diverging.epoch, diverging.end_offset), len(answer.records or b"")

    size = batch(3).size
    assert ask_from(3, 2) == (0, (-1, -1), size)
    assert ask_from(4, 1) == (0, (0, 2), 0), "epoch 1 wrote nothing here"
    assert ask_from(3, 0) == (0, (0, 2), 0), "epoch 0 ended at 2"
    assert ask_from(3, 6)[0] == ErrorCode.OFFSET_OUT_OF_RANGE
