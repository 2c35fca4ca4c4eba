"""Tests of Produce, Fetch and ListOffsets in every version. The broker's dispatcher handles the requests."""

from __future__ import annotations

import gc
import mmap
import uuid
import weakref

import pytest

from hmb.broker.deferred import final
from hmb.broker.errors import CloseConnection
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.records import Codec, Message, Record, encode_batch, iter_batches, read_records
from hmb.records.legacy.message import encode_message
from tests.broker.calls import fetch, list_offsets, outcome, produce
from tests.broker.conftest import Asker, as_bytes
from tests.storage.conftest import batch, messages


@pytest.mark.parametrize("version", ProduceRequest.versions)
def test_produce_in_every_version(ask: Asker, version: int) -> None:
    topic = ask.broker.topics.create("t", 1)
    data = batch(2) if version >= 3 else messages(2, 1 if version == 2 else 0)
    for base_offset in (0, 2):
        (topic_answer,) = ask(produce(data, id=topic.id), version).responses
        (answer,) = topic_answer.partition_responses
        assert (answer.error_code, answer.base_offset) == (0, base_offset)


@pytest.mark.parametrize(
    ("request_", "version", "code"),
    [
        (produce(batch(1), topic="none"), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (produce(batch(1), partition=5), 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (produce(batch(1), id=uuid.UUID(int=9)), 13, ErrorCode.UNKNOWN_TOPIC_ID),
        (produce(batch(1), acks=2), 9, ErrorCode.INVALID_REQUIRED_ACKS),
        (produce(b""), 9, ErrorCode.INVALID_RECORD),
        (produce(messages(1, 1)), 3, ErrorCode.INVALID_RECORD),
        (produce(batch(1, codec=Codec.ZSTD)), 6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (produce(batch(1, transactional=True)), 9, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (produce(batch(1, transactional=True)), 2, ErrorCode.INVALID_RECORD),
        (produce(batch(1)), 0, ErrorCode.INVALID_RECORD),
        (produce(messages(1, 1, Codec.ZSTD)), 2, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (produce(encode_message(0, 1, 7, -1, None, b"")), 2, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (produce(bytes(batch(1).view)[:-1] + b"?"), 9, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_produce_errors_are_the_partitions(ask: Asker, request_: ProduceRequest, version: int, code: ErrorCode) -> None:
    topic = ask.broker.topics.create("t", 1)
    assert outcome(ask(request_, version)) == code
    assert topic.partitions[0].log_end_offset == 0


def test_records_of_the_far_future_are_named_in_the_answer(ask: Asker) -> None:
    ask.broker.topics.create("t", 1)
    data = encode_batch([Record(timestamp=at, value=b"v") for at in (5, 2**60, -1, 2**60)])
    (answer,) = ask(produce(memoryview(data)), 9).responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_TIMESTAMP, -1)
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert answer.record_errors[1].batch_index_error_message.startswith(f"Timestamp {2**60} of message with offset 3 ")


@pytest.mark.parametrize(
    ("data", "transactional_id", "version"),
    [
        (b"", None, 9),
        (b"no batch" * 100, None, 9),
        (batch(1), None, 9),
        (encode_batch([Record(0, 0, None, b"v")], producer_id=7, producer_epoch=0, transactional=True), "x", 12),
        (encode_batch([Record(0, 0, None, b"v")], producer_id=7, producer_epoch=0, transactional=True), "x", 11),
    ],
)
def test_a_produce_releases_its_frame_without_the_garbage_collector(
    ask: Asker, data: bytes, transactional_id: str | None, version: int
) -> None:
    """The broker releases a Produce request as soon as the request fails.

    Before a bug was fixed, a traceback kept a request of 100 MB in memory until the next garbage collection.
    """
    ask.broker.topics.create("t", 1)
    request = produce(data)
    request.transactional_id = transactional_id
    parts = b"".join(map(as_bytes, ask.client.request(request, version)))[4:]
    memory = mmap.mmap(-1, len(parts))
    memory.write(parts)
    is_alive = weakref.ref(memory)
    gc.disable()
    try:
        frame = memoryview(memory)
        del memory
        final(ask.dispatcher.begin(frame))
        del frame
        assert is_alive() is None
    finally:
        gc.enable()


def test_acks_0_is_not_answered_and_its_errors_close_the_connection(ask: Asker) -> None:
    topic = ask.broker.topics.create("t", 1)
    assert ask(produce(batch(1), acks=0), 9) is None
    assert topic.partitions[0].log_end_offset == 1
    with pytest.raises(CloseConnection):
        ask(produce(batch(1), acks=0, topic="none"), 9)


def test_a_duplicate_of_an_idempotent_producer_gets_its_first_offset(ask: Asker) -> None:
    ask.broker.topics.create("t", 1)
    ids = [ask(InitProducerIdRequest(transactional_id=None), version) for version in InitProducerIdRequest.versions]
    assert len({(i.producer_id, i.producer_epoch) for i in ids}) == len(ids)
    batches = [batch(2, producer_id=ids[0].producer_id, producer_epoch=0, base_sequence=2 * n) for n in range(6)]
    for data in batches:
        assert outcome(ask(produce(data), 9)) == 0
    answers = [ask(produce(data), 9).responses[0].partition_responses[0] for data in batches]
    assert [a.base_offset for a in answers[1:]] == [2, 4, 6, 8, 10]
    assert answers[0].error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER  # The batch is older than the last five.


@pytest.mark.parametrize("version", FetchRequest.versions)
def test_fetch_in_every_version_returns_records_that_its_clients_can_read(ask: Asker, version: int) -> None:
    topic = ask.broker.topics.create("t", 1)
    log = topic.partitions[0]
    for data in (messages(2, 0), messages(2, 1, Codec.GZIP), batch(3, codec=Codec.ZSTD)):
        log.append(data)
    (topic_answer,) = ask(fetch(id=topic.id), version).responses
    (answer,) = topic_answer.partitions
    assert (answer.error_code, answer.high_watermark) == (0, 7)
    magics = {b.magic for b in iter_batches(answer.records)}
    assert magics == ({0} if version < 2 else {0, 1} if version < 4 else {0, 1, 2})
    found = list(read_records(answer.records))
    assert [r.offset for r in found] == list(range(7))
    assert [r.value for r in found] == [
        r.value for data in (messages(2), messages(2), batch(3).view) for r in read_records(data)
    ]
    assert isinstance(next(iter_batches(answer.records)), Message)


def test_fetch_errors_are_the_partitions(ask: Asker) -> None:
    topic = ask.broker.topics.create("t", 1)
    topic.partitions[0].append(batch(3))
    cases = {
        ErrorCode.OFFSET_OUT_OF_RANGE: ask(fetch(4), 12),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ask(fetch(topics=["none"]), 12),
        ErrorCode.UNKNOWN_TOPIC_ID: ask(fetch(id=uuid.UUID(int=4)), 13),
        ErrorCode.UNKNOWN_LEADER_EPOCH: ask(fetch(epoch=3), 12),
    }
    assert {code: outcome(response) for code, response in cases.items()} == {code: code for code in cases}


def test_fetch_respects_max_bytes_except_for_the_first_batch(ask: Asker) -> None:
    for name in ("a", "b", "c"):
        ask.broker.topics.create(name, 1).partitions[0].append(batch(10))
    size = batch(10).size
    response = ask(fetch(topics=["a", "b", "c"], max_bytes=10), 12)
    assert [len(topic.partitions[0].records) for topic in response.responses] == [size, 0, 0]
    response = ask(fetch(topics=["a", "b", "c"], max_bytes=2 * size), 12)
    assert [len(topic.partitions[0].records) for topic in response.responses] == [size, size, 0]


@pytest.mark.parametrize("version", [v for v in ListOffsetsRequest.versions if v])
def test_list_offsets_by_time_and_by_the_logs_ends(ask: Asker, version: int) -> None:
    log = ask.broker.topics.create("t", 1).partitions[0]
    log.append(batch(3, first_timestamp=100))
    log.append(batch(3, first_timestamp=50))
    assert list_offsets(ask, -1, version) == (0, -1, 6)
    assert list_offsets(ask, -2, version) == (0, -1, 0)
    assert list_offsets(ask, 101, version) == (0, 101, 1)
    assert list_offsets(ask, 103, version) == (0, -1, -1)
    assert list_offsets(ask, -3, version) == ((0, 102, 2) if version >= 7 else (ErrorCode.UNSUPPORTED_VERSION, -1, -1))


def test_list_offsets_version_0_names_the_starts_of_segments(ask: Asker) -> None:
    log = ask.broker.topics.create("t", 1, {"segment.bytes": str(batch(2).size)}).partitions[0]
    for _ in range(3):
        log.append(batch(2))

    def old_style(timestamp: int, count: int) -> list[int]:
        partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=0, timestamp=timestamp, max_num_offsets=count
        )
        request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[partition])])
        offsets: list[int] = ask(request, 0).topics[0].partitions[0].old_style_offsets
        return offsets

    assert old_style(-1, 10) == [6, 4, 2, 0]
    assert old_style(-1, 1) == [6]
    assert old_style(-2, 10) == [0]
    assert old_style(0, 10) == []
