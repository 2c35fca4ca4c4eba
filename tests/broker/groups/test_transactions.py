"""Tests of Fetch and ListOffsets for a partition that contains transactions, with both isolation levels."""

from __future__ import annotations

from typing import Any

import pytest

from hmb.broker.context import ConnectedClient
from hmb.broker.dispatch import Dispatcher
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.records import iter_batches, read_records
from hmb.storage.log import Log
from hmb.units import now_ms
from tests.broker.calls import fetch
from tests.broker.conftest import LISTENER, Asker
from tests.storage.conftest import batch
from tests.storage.transactions import ABORT, COMMIT, Writer

UNCOMMITTED, COMMITTED = 0, 1


@pytest.fixture
def log(ask: Asker) -> Log:
    """Return a log with aborted, committed and open transactions.

    The records at offsets 0 and 1 are aborted, and the record at offset 3 is committed. The records at offsets 5 and 6
    belong to an open transaction. The record at offset 7 belongs to no transaction.
    """
    # The records' timestamps are very old, so a shorter time would roll the log.
    log = ask.broker.topics.create("t", 1, {"segment.ms": str(10**15)}).partitions[0]
    one, other = Writer(log, 1), Writer(log, 2)
    one.write(2)
    one.end(ABORT)
    other.write()
    other.end(COMMIT)
    one.write(2)
    log.append(batch(1))
    return log


def answer(ask: Asker, offset: int, isolation_level: int, version: int = 12) -> Any:
    request = fetch(offset)
    request.isolation_level = isolation_level
    return ask(request, version).responses[0].partitions[0]


@pytest.mark.parametrize("version", [v for v in FetchRequest.versions if 4 <= v <= 12])
def test_a_fetch_of_committed_records_stops_before_the_first_open_transaction(
    ask: Asker, log: Log, version: int
) -> None:
    found = answer(ask, 0, COMMITTED, version)
    assert (found.high_watermark, found.last_stable_offset) == (8, 5)
    assert [(a.producer_id, a.first_offset) for a in found.aborted_transactions] == [(1, 0)]
    assert list(iter_batches(found.records))[-1].last_offset == 4
    at_the_end = answer(ask, 5, COMMITTED, version)
    assert (at_the_end.error_code, len(at_the_end.records), at_the_end.aborted_transactions) == (0, 0, [])


def test_a_fetch_of_uncommitted_records_gets_all_and_no_list(ask: Asker, log: Log) -> None:
    found = answer(ask, 0, UNCOMMITTED)
    assert (found.high_watermark, found.last_stable_offset, found.aborted_transactions) == (8, 5, None)
    assert [record.offset for record in read_records(found.records)] == [0, 1, 3, 5, 6, 7]


def test_the_end_of_a_transaction_wakes_the_fetch_that_waits_for_it(ask: Asker, log: Log) -> None:
    """If a transaction is aborted while a Fetch request waits, the response lists this transaction as aborted."""
    looks = iter(range(10))

    def abort() -> bool:
        if next(looks) == 0:
            log.append_marker(ABORT, 1, 0)
        return False

    ask.dispatcher = Dispatcher(ask.broker, LISTENER, client=ConnectedClient(is_gone=abort))
    request = fetch(5)
    request.isolation_level, request.max_wait_ms = COMMITTED, 60_000
    found = ask(request, 12).responses[0].partitions[0]
    assert [(a.producer_id, a.first_offset) for a in found.aborted_transactions] == [(1, 5)]
    assert [record.offset for record in read_records(found.records)] == [5, 6, 7]


def list_offsets(ask: Asker, timestamp: int, isolation_level: int, version: int = 7) -> int:
    partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])
    offset: int = (
        ask(ListOffsetsRequest(isolation_level=isolation_level, topics=[topic]), version).topics[0].partitions[0].offset
    )
    return offset


def test_the_log_of_a_reader_of_committed_records_ends_at_the_last_stable_offset(ask: Asker, log: Log) -> None:
    assert [list_offsets(ask, -1, level) for level in (UNCOMMITTED, COMMITTED)] == [8, 5]
    later = now_ms() + 60_000
    log.append(batch(1, first_timestamp=later))
    for timestamp in (later, -3):
        assert [list_offsets(ask, timestamp, level) for level in (UNCOMMITTED, COMMITTED)] == [8, -1]
    log.append_marker(COMMIT, 1, 0)
    assert [list_offsets(ask, later, level) for level in (UNCOMMITTED, COMMITTED)] == [8, 8]


@pytest.mark.parametrize("version", range(4))
def test_an_old_client_gets_past_markers(ask: Asker, version: int) -> None:
    """An old client reads the records after transaction markers.

    Before a bug was fixed, the response to its fetch was empty if the fetch found only markers, so the client fetched
    the same offset again.
    """
    log = ask.broker.topics.create("t", 1, {"segment.bytes": "1000", "segment.ms": str(10**15)}).partitions[0]
    writer = Writer(log, 1)
    writer.write()
    for _ in range(30):
        writer.end(ABORT)
    log.append(batch(2))
    size = batch(1).size
    assert len(log.segments) > 2
    for offset in range(1, 33):
        request = fetch(offset, partition_max_bytes=size)
        found = ask(request, version).responses[0].partitions[0]
        assert [record.offset for record in read_records(found.records)][:1] == [max(offset, 31)]
    log.append_marker(COMMIT, 1, 0)
    assert not len(ask(fetch(33), version).responses[0].partitions[0].records)
