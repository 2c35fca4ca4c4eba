"""Tests of the checks of a producer's batch: which batches the broker accepts, and how often it parses a header."""

from __future__ import annotations

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Record, RecordBatch, encode_batch
from hmb.storage.batches.preparation import prepare
from hmb.storage.batches.validation import check_header, parse_produced
from hmb.storage.config import LogConfig

SMALL = [Record(timestamp=1000, value=b"a"), Record(timestamp=1001, value=b"b")]


def refuse(data: bytes) -> ErrorCode:
    batch = RecordBatch.parse(data)
    batch.check()
    with pytest.raises(KafkaError) as refused:
        check_header(batch)
    return refused.value.code


def test_batches_that_no_producer_may_send() -> None:
    check_header(RecordBatch.parse(encode_batch(SMALL)))
    assert refuse(encode_batch(SMALL, control=True)) is ErrorCode.INVALID_RECORD
    assert refuse(encode_batch([Record(1), Record(3)], keep_offsets=True)) is ErrorCode.INVALID_RECORD
    assert refuse(encode_batch(SMALL, producer_id=5, producer_epoch=0)) is ErrorCode.INVALID_RECORD
    assert refuse(encode_batch(SMALL, log_append_time=5)) is ErrorCode.INVALID_TIMESTAMP


def test_the_header_of_a_produced_batch_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    parse = RecordBatch.parse
    monkeypatch.setattr(RecordBatch, "parse", lambda *arguments: parsed.append(1) or parse(*arguments))
    batch = parse_produced(memoryview(encode_batch(SMALL)), 9, is_transactional=False)
    assert prepare(batch, LogConfig(), 1000) is batch
    assert len(parsed) == 1
