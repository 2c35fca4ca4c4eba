"""Tests of the offsets that the driver chooses for each trigger of a streaming query.

The tests need a broker, but no JVM.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

import hmb

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'hmb[spark]'")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from hmb.spark.options import source_options
from hmb.spark.stream import StreamReader
from hmb.spark.tasks import DataLossError
from tests.spark.topics import create, delete, delete_before, fill, ranges

PARTITIONS = 1


def stream_of(servers: str, topic: str, **given: str) -> StreamReader:
    given = {"startingOffsets": "earliest", **given}
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, **given}
    return StreamReader(source_options(options, streaming=True))


def test_a_rate_limit_and_its_shape(servers: str, topic: str) -> None:
    fill(servers, topic, [b"v"] * 10)
    reader = stream_of(servers, topic, maxOffsetsPerTrigger="4")
    start = reader.initialOffset()
    assert start == {topic: {"0": 0}}
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    end = reader.latestOffset(start, limit)
    assert end == {topic: {"0": 4}}
    assert reader.reportLatestOffset() == {topic: {"0": 10}}
    assert ranges(reader.partitions(start, end)) == [f"{topic}-0 [0, 4)"]
    reader.stop()


def test_the_first_trigger_does_not_wait_and_the_next_one_does(servers: str, topic: str) -> None:
    fill(servers, topic, [b"v"] * 3)
    reader = stream_of(servers, topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {topic: {"0": 3}}
    fill(servers, topic, [b"v"] * 4)
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    fill(servers, topic, [b"v"])
    assert reader.latestOffset(end, ReadAllAvailable()) == {topic: {"0": 8}}
    reader.stop()


def test_a_backlog_that_is_too_small_waits_no_longer_than_allowed(
    servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stream_of(servers, topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    fill(servers, topic, [b"v"])
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    fill(servers, topic, [b"v"])
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    later = time.monotonic() + 3601
    monkeypatch.setattr("hmb.spark.stream.time.monotonic", lambda: later)
    assert reader.latestOffset(end, ReadAllAvailable()) == {topic: {"0": 2}}
    reader.stop()


def test_available_now_stops_at_the_end_of_its_start(servers: str, topic: str) -> None:
    fill(servers, topic, [b"v"] * 3)
    reader = stream_of(servers, topic)
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(2)) == {topic: {"0": 2}}
    fill(servers, topic, [b"v"] * 3)
    assert reader.latestOffset({topic: {"0": 2}}, ReadAllAvailable()) == {topic: {"0": 3}}
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_available_now_and_a_deleted_topic(servers: str, topic: str, fails: bool) -> None:
    """A query with the trigger AvailableNow restarts after its topic was deleted.

    The checkpoint still contains an offset of the deleted topic. With failOnDataLoss=true, the query fails. With
    failOnDataLoss=false, the query reads nothing.
    """
    start = {topic: {"0": 3}}
    delete(servers, topic)
    reader = stream_of(servers, topic, failOnDataLoss=str(fails))
    reader.prepareForTriggerAvailableNow()
    if fails:
        with pytest.raises(DataLossError, match=f"deleted partitions: {topic}-0"):
            reader.latestOffset(start, ReadAllAvailable())
    else:
        assert reader.latestOffset(start, ReadAllAvailable()) == {}
        assert ranges(reader.partitions(start, {})) == []
    reader.stop()


def test_a_topic_created_again_is_read_from_its_start(servers: str, topic: str) -> None:
    """A topic is deleted before one trigger, and created again before the next one.

    The query reads the new topic from the start.
    """
    fill(servers, topic, [b"old"] * 3)
    reader = stream_of(servers, topic, failOnDataLoss="false")
    delete(servers, topic)
    none = reader.latestOffset({topic: {"0": 3}}, ReadAllAvailable())
    create(servers, topic)
    fill(servers, topic, [b"new"] * 5)
    end = reader.latestOffset(none, ReadAllAvailable())
    assert (none, end) == ({}, {topic: {"0": 5}})
    assert ranges(reader.partitions(none, end)) == [f"{topic}-0 [0, 5)"]
    reader.stop()


@pytest.mark.parametrize("shape", [5, {"logOffset": 3}, {"path": "/data"}, ["t"]])
def test_a_checkpoint_of_another_source(servers: str, topic: str, shape: Any) -> None:
    reader = stream_of(servers, topic)
    with pytest.raises(ValueError, match="is this the checkpoint of another query"):
        reader.latestOffset(shape, ReadAllAvailable())
    reader.stop()


def test_a_new_partition_is_read_from_its_start(servers: str, topic: str) -> None:
    reader = stream_of(servers, topic, startingOffsets="latest")
    start = reader.initialOffset()
    with hmb.Admin(servers) as admin:
        admin.create_partitions({topic: 2})
    with hmb.Producer(servers) as producer:
        producer.send(topic, b"v", partition=1)
    end = reader.latestOffset(start, ReadAllAvailable())
    assert end == {topic: {"0": 0, "1": 1}}
    assert ranges(reader.partitions(start, end)) == [f"{topic}-1 [0, 1)"]
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_new_partition_that_has_lost_its_first_records(servers: str, topic: str, fails: bool) -> None:
    fill(servers, topic, [b"v"] * 5)
    delete_before(servers, topic, 2)
    reader = stream_of(servers, topic, failOnDataLoss=str(fails))
    if fails:
        with pytest.raises(DataLossError, match=f"the log of the new partition {topic}-0 starts at offset 2, not at 0"):
            reader.partitions({}, {topic: {"0": 5}})
    else:
        assert ranges(reader.partitions({}, {topic: {"0": 5}})) == [f"{topic}-0 [2, 5)"]
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_deleted_between_triggers(servers: str, topic: str, fails: bool) -> None:
    create(servers, f"{topic}-stays")
    reader = stream_of(servers, f"{topic},{topic}-stays", failOnDataLoss=str(fails))
    start = reader.initialOffset()
    delete(servers, topic)
    if fails:
        with pytest.raises(DataLossError, match=f"deleted partitions: {topic}-0"):
            reader.latestOffset(start, ReadAllAvailable())
    else:
        assert reader.latestOffset(start, ReadAllAvailable()) == {f"{topic}-stays": {"0": 0}}
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_created_again_between_triggers(servers: str, topic: str, fails: bool) -> None:
    """A topic is deleted and created again between two triggers.

    The query notices this by the topic's id, even if the new topic has more records than the old one.
    """
    fill(servers, topic, [b"old"] * 3)
    reader = stream_of(servers, topic, failOnDataLoss=str(fails))
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    delete(servers, topic)
    create(servers, topic)
    fill(servers, topic, [b"new"] * 5)
    if fails:
        with pytest.raises(DataLossError, match=f"topic '{topic}' was deleted and created again"):
            reader.latestOffset(start, ReadAllAvailable())
    else:
        assert reader.latestOffset(start, ReadAllAvailable()) == {topic: {"0": 5}}
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_an_old_checkpoint_of_a_topic_created_again(servers: str, topic: str, fails: bool) -> None:
    fill(servers, topic, [b"new"] * 2)
    reader = stream_of(servers, topic, failOnDataLoss=str(fails))
    start = {topic: {"0": 1000}}
    end = reader.latestOffset(start, ReadMaxRows(50))
    assert end == {topic: {"0": 2}}
    if fails:
        with pytest.raises(DataLossError, match=f"{topic}-0: the end of the log moved back from 1000 to 2"):
            reader.partitions(start, end)
    else:
        assert ranges(reader.partitions(start, end)) == [f"{topic}-0 [0, 2)"]
    reader.stop()


def test_offsets_are_committed(servers: str, topic: str) -> None:
    reader = stream_of(servers, topic, commitOffsets="true", groupIdPrefix=f"g-{topic}")
    reader.commit({topic: {"0": 7}})
    with hmb.Admin(servers) as admin:
        (committed,) = admin.list_group_offsets(f"g-{topic}").values()
    assert committed.offset == 7
    reader.stop()


def test_the_last_batch_of_available_now_is_committed(servers: str, topic: str) -> None:
    """The reader commits the offsets of the last batch to the group.

    Before a bug was fixed, these offsets were not committed, because Spark calls `commit` only when it starts the next
    batch.
    """
    fill(servers, topic, [b"v"] * 3)
    reader = stream_of(servers, topic, commitOffsets="true", groupIdPrefix=f"g-{topic}")
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    with hmb.Admin(servers) as admin:
        assert admin.list_group_offsets(f"g-{topic}") == {}
        assert reader.latestOffset(end, ReadAllAvailable()) == end
        (committed,) = admin.list_group_offsets(f"g-{topic}").values()
    assert committed.offset == 3
    reader.stop()


def test_a_failed_commit_to_the_group_does_not_stop_the_query(caplog: pytest.LogCaptureFixture) -> None:
    reader = stream_of("127.0.0.1:1", "t", commitOffsets="true")
    with caplog.at_level(logging.WARNING):
        reader.commit({"t": {"0": 7}})
    assert "group hmb-spark" in caplog.text
