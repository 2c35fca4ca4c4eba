"""Tests of Fetch versions 0 to 3: damaged or large batches, and clients that never read a response."""

from __future__ import annotations

import os
import threading
import tracemalloc
from collections.abc import Callable

import pytest

from hmb.broker import BrokerServer, old_clients
from hmb.broker.network import connection, sending
from hmb.broker.old_clients import ByteBudget, ConvertedRecords
from hmb.protocol.connection import ClientConnection
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchResponse
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.records import Codec, Record, RecordBatch, encode_batch, encode_message_set, iter_batches, read_records
from hmb.storage.log import Log
from tests.broker.calls import fetch, list_offsets, outcome
from tests.broker.conftest import Asker, Wire, as_bytes
from tests.storage.conftest import produced
from tests.waiting import until

OLD_VERSIONS = [0, 1, 2, 3]


def values(response: FetchResponse) -> list[bytes | None]:
    return [record.value for record in read_records(response.responses[0].partitions[0].records)]


@pytest.fixture
def log(ask: Asker) -> Log:
    """Return a log with five batches of two records each. The log has two closed segments and the active segment."""
    log = ask.broker.topics.create("t", 1, {"segment.bytes": "180"}).partitions[0]
    for number in range(5):
        records = [Record(timestamp=number, value=b"%d%s" % (number, letter)) for letter in (b"a", b"b")]
        log.append(RecordBatch.parse(encode_batch(records)))
    assert [segment.base_offset for segment in log.segments] == [0, 4, 8]
    return log


def flip(log: Log, segment: int, position: int) -> None:
    file = log.segments[segment].file
    file.write([bytes([file.read(1, position)[0] ^ 1])], position)


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_a_damaged_record_is_not_sent_to_an_old_client(
    ask: Asker, log: Log, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker does not send a damaged record to an old client.

    Before a bug was fixed, the conversion gave the record a new, correct CRC, so the client did not notice the damage.
    """
    size = log.segments[0].size // 2
    flip(log, 0, 2 * size - 3)  # This bit is in the last record of the second batch.
    assert values(ask(fetch(0), version)) == [b"0a", b"0b"]
    answer = ask(fetch(2), version)
    assert outcome(answer) == ErrorCode.CORRUPT_MESSAGE
    assert not answer.responses[0].partitions[0].records
    # The batch with timestamp 1 is damaged, so the broker returns the start of the next batch: timestamp 2, offset 4.
    assert list_offsets(ask, 1, 1) == (0, 2, 4)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert f"{log.segments[0].path}, position {size}, offsets 2 to 3: the batch's CRC is " in caplog.text


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_an_old_client_that_fetches_again_gets_past_a_damaged_batch(ask: Asker, log: Log, version: int) -> None:
    flip(log, 0, log.segments[0].size - 3)
    assert outcome(ask(fetch(2), version)) == ErrorCode.CORRUPT_MESSAGE
    for offset in (2, 3, 4):
        assert values(ask(fetch(offset), version)) == [b"2a", b"2b", b"3a", b"3b"]


def test_an_old_client_meets_damage_at_the_same_offset_as_a_new_one(ask: Asker, log: Log) -> None:
    flip(log, 0, log.segments[0].size - 3)
    intact, damaged = iter_batches(ask(fetch(0), 4).responses[0].partitions[0].records)
    intact.check()
    with pytest.raises(KafkaError):
        damaged.check()
    assert [outcome(ask(fetch(offset), 3)) for offset in range(5)] == [0, 0, 2, 2, 0]
    assert (intact.last_offset, damaged.base_offset, damaged.last_offset) == (1, 2, 3)


@pytest.mark.parametrize("version", OLD_VERSIONS)
def test_an_oversized_batch_is_answered_with_an_error_and_no_bytes(
    make_asker: Callable[..., Asker], version: int
) -> None:
    ask = make_asker(max_decompressed_message_bytes="2000")
    log = ask.broker.topics.create("t", 1).partitions[0]
    log.append(RecordBatch.parse(encode_batch([Record(value=b"small")])))
    log.append(RecordBatch.parse(encode_batch([Record(value=bytes(5_000))], codec=Codec.ZSTD)))
    assert values(ask(fetch(0), version)) == [b"small"]
    answer = ask(fetch(1), version)
    assert outcome(answer) == ErrorCode.MESSAGE_TOO_LARGE
    assert not answer.responses[0].partitions[0].records


def test_stored_messages_are_sent_unchanged(ask: Asker) -> None:
    """The broker sends stored messages unchanged, even damaged ones.

    The client finds the damage, because the stored CRC is wrong.
    """
    log = ask.broker.topics.create("t", 1).partitions[0]
    data = encode_message_set([Record(value=b"%d" % n) for n in range(9)], 0)
    log.append(produced(data))
    flip(log, 0, 100)
    stored = log.segments[0].path.read_bytes()
    assert bytes(ask(fetch(0), 0).responses[0].partitions[0].records) == stored


def test_a_log_that_ends_inside_a_batch_is_an_error_and_no_endless_search(log: Log) -> None:
    found = log.read(0, 1)
    os.truncate(log.segments[0].path, 70)
    with pytest.raises(KafkaError, match="ends inside the batch at 0") as error:
        old_clients.converted(found, log, 1, 0, 100, 1_000)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_old_clients_that_never_read_are_disconnected(
    broker: BrokerServer, connect: Callable[[], Wire], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker closes the connection of an old client that never reads.

    Before a bug was fixed, the broker kept each whole response in memory. With Fetch v2, the responses to 50 clients
    used 4 GB of memory.
    """
    monkeypatch.setattr(sending, "PATIENCE", 1.0)
    monkeypatch.setattr(sending, "SLOWEST", 1 << 30)
    monkeypatch.setattr(connection, "STALL", 0.5)
    budget = ByteBudget(8 << 20)
    monkeypatch.setattr(old_clients, "CONVERTED", budget)
    wire = connect()
    log = make_topic(broker, wire)
    batch = RecordBatch.parse(encode_batch([Record(value=bytes(50_000))] * 10, codec=Codec.ZSTD))
    for _ in range(60):
        log.append(batch)  # Together, the 60 batches have 30 MB after decompression.
    request = fetch(0, partition_max_bytes=1 << 30)
    tracemalloc.start()
    try:
        silent = [connect() for _ in range(30)]
        for each in silent:
            each.send(b"".join(map(as_bytes, ClientConnection("test").request(request, 2))))
        until(lambda: budget._free < 7 << 20)  # Wait until some responses use memory.
        found: list[Record] = []
        while len(found) < 600:  # The broker serves other clients in the meantime.
            answer = wire.ask(fetch(len(found), partition_max_bytes=3 << 20), 2)
            assert isinstance(answer, FetchResponse)
            found += read_records(answer.responses[0].partitions[0].records)
        until(lambda: budget._free == budget._size)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [record.offset for record in found] == list(range(600))
    assert peak < 80 << 20  # bytes; all responses together have 900 MB


def make_topic(broker: BrokerServer, wire: Wire) -> Log:
    wire.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 9)
    assert broker._logs is not None
    ((_, log),) = broker._logs.items()
    return log


def test_memory_is_shared_and_released() -> None:
    budget = ByteBudget(100)
    order: list[str] = []

    def wait() -> None:
        with budget.reserved(60, 30):
            order.append("second")

    with budget.reserved(30, 0), budget.reserved(70, 0):
        waiting = threading.Thread(target=wait)
        waiting.start()
        with pytest.raises(TimeoutError), budget.reserved(1, 0.01):
            pass
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]
    with budget.reserved(5_000, 0):  # A response larger than the whole limit gets all the memory.
        pass
    with pytest.raises(ZeroDivisionError), budget.reserved(100, 0):
        raise ZeroDivisionError
    with budget.reserved(100, 0):
        pass


def test_a_response_without_free_memory_ends_its_connection(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(old_clients, "PATIENCE", 0.01)
    budget = ByteBudget(100)
    monkeypatch.setattr(old_clients, "CONVERTED", budget)
    records = old_clients.converted(log.read(0, 100), log, 1, 0, 100, 1_000)
    assert isinstance(records, ConvertedRecords)
    with budget.reserved(100, 0), pytest.raises(TimeoutError):
        next(records.pieces())
    assert sum(map(len, records.pieces())) == records.size


def test_records_that_change_while_they_are_sent_end_their_connection(log: Log) -> None:
    """If records change while the broker sends them, the broker closes the connection.

    It has already sent the size of the response, so it cannot send an error.
    """
    records = old_clients.converted(log.read(0, 1_000), log, 1, 0, 1_000, 1_000)
    assert isinstance(records, ConvertedRecords)
    flip(log, 0, log.segments[0].size - 3)
    with pytest.raises(OSError, match="the records have changed"):
        list(records.pieces())
