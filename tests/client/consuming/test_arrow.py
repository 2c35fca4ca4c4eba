"""Tests of Arrow columns: they contain the same values as records do, and damaged data raises the same errors."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hmb.protocol.enums import INT64_MAX
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.records import Codec, Record, RecordBatch, TimestampType, encode_batch, encode_message_set, iter_batches
from hmb.records.consumer_record import ConsumerRecord
from hmb.records.fast.columns import SCHEMA, columns
from hmb.records.fast.consumer_records import consumer_records
from tests.client.consuming.record_batches import record_batch

NOW = 1_700_000_000_000
payloads = st.none() | st.binary(max_size=70) | st.sampled_from([62, 63, 64, 8_190, 8_192, 20_000]).map(bytes)
records = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(NOW - 10_000, NOW + 10_000) | st.sampled_from([-1, 0, 2**40, 2**61, 2**62]),
        key=payloads,
        value=payloads,
        headers=st.sampled_from([(), (), (("h", b"v"),), (("h", None), ("", b"\xff"))]),
    ),
    min_size=1,
    max_size=20,
)
batches = st.lists(st.tuples(records, st.sampled_from([Codec.NONE, Codec.LZ4]), st.none() | st.just(NOW)), max_size=4)


def fetched(parts: list[tuple[list[Record], Codec, int | None]]) -> bytes:
    data, offset = b"", 10
    for part, codec, log_append_time in parts:
        data += encode_batch(part, base_offset=offset, codec=codec, log_append_time=log_append_time)
        offset += len(part)
    return data


def rows(batch: pa.RecordBatch) -> list[tuple[object, ...]]:
    times = batch.column("timestamp").cast(pa.int64()).to_pylist()
    rest = batch.drop_columns(["timestamp"]).to_pylist()
    return [
        (row["offset"], time, row["timestamp_type"], row["key"], row["value"], row["headers"])
        for row, time in zip(rest, times, strict=True)
    ]


def expected(found: list[ConsumerRecord]) -> list[tuple[object, ...]]:
    return [
        (
            it.offset,
            None if it.timestamp == -1 else it.timestamp,
            int(it.timestamp_type),
            it.key,
            it.value,
            [{"key": key, "value": value} for key, value in it.headers],
        )
        for it in found
    ]


@settings(deadline=None)
@given(batches, st.integers(0, 40), st.none() | st.integers(0, 60))
def test_the_columns_are_the_records(
    parts: list[tuple[list[Record], Codec, int | None]], first: int, end: int | None
) -> None:
    data = fetched(parts)
    wanted = [record for batch in iter_batches(data) for record in consumer_records(batch, "t", 3)]
    wanted = [record for record in wanted if record.offset >= first and (end is None or record.offset < end)]
    table = record_batch("t", 3, data, first, end)
    table.validate(full=True)
    assert table.schema == SCHEMA
    assert rows(table) == expected(wanted)
    assert set(table.column("topic").to_pylist()) <= {"t"}
    assert set(table.column("partition").to_pylist()) <= {3}


@settings(deadline=None)
@given(batches.filter(bool), st.data())
def test_damage_is_found_as_by_the_record_reader(
    parts: list[tuple[list[Record], Codec, int | None]], data: st.DataObject
) -> None:
    encoded = bytearray(fetched(parts))
    place = data.draw(st.integers(21, min(len(encoded) - 1, 200)) | st.integers(21, len(encoded) - 1))
    encoded[place] = data.draw(st.integers(0, 255))
    try:
        damaged = list(iter_batches(encoded))
        wanted = [record for batch in damaged for record in consumer_records(batch, "t", 3)]
    except KafkaError as error:
        with pytest.raises(KafkaError) as caught:
            columns("t", 3, list(iter_batches(encoded)), -INT64_MAX, None)
        assert str(caught.value) == str(error)
    else:
        table = columns("t", 3, damaged, -INT64_MAX, None)
        table.validate(full=True)
        assert rows(table) == expected(wanted)


@settings(deadline=None)
@given(batches, st.lists(st.sampled_from(SCHEMA.names), unique=True, min_size=1))
def test_chosen_columns_are_the_same_as_in_all_columns(
    parts: list[tuple[list[Record], Codec, int | None]], names: list[str]
) -> None:
    found = list(iter_batches(fetched(parts)))
    everything = columns("t", 3, found, 12, 40)
    assert columns("t", 3, found, 12, 40, names) == everything.select(names)


def test_no_records_are_columns_without_rows() -> None:
    table = record_batch("t", 3, b"")
    assert (table.num_rows, table.schema) == (0, SCHEMA)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats(magic: int) -> None:
    table = record_batch("t", 3, encode_message_set([Record(timestamp=NOW, value=b"x")], magic))
    type_ = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE
    assert rows(table) == [(0, NOW if magic else None, int(type_), None, b"x", [])]


def test_a_wrong_checksum_is_an_error_unless_checks_are_off() -> None:
    data = bytearray(encode_batch([Record(timestamp=NOW, value=b"x")]))
    data[-2] ^= 1
    with pytest.raises(KafkaError) as caught:
        record_batch("t", 3, data)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert rows(record_batch("t", 3, data, check_crcs=False))[0][4] == b"y"


def test_usual_records_become_no_python_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordBatch, "records", None)
    monkeypatch.setattr("hmb.records.fast.columns.columns_of_records", None)
    usual = [Record(timestamp=NOW + number * 50, key=bytes(number), value=b"v" * number) for number in range(200)]
    assert record_batch("t", 3, encode_batch(usual)).column("value").to_pylist() == [it.value for it in usual]


def test_without_pyarrow_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "hmb.client.consuming.arrow", raising=False)
    monkeypatch.delitem(sys.modules, "hmb.records.fast.columns")
    with pytest.raises(ImportError, match=r"pip install 'hmb\[arrow\]'"):
        __import__("hmb.client.consuming.arrow")


READ_WITHOUT_PANDAS = """
import sys
from hmb.records import Record, encode_batch
from tests.client.consuming.record_batches import record_batch

table = record_batch("t", 0, encode_batch([Record(timestamp=1, key=None, value=b"v"), Record(key=b"k", value=b"w")]))
print(table.num_rows, "pandas" in sys.modules)
"""


@pytest.mark.skipif(find_spec("pandas") is None, reason="pandas is not installed")
def test_columns_are_made_without_an_import_of_pandas() -> None:
    # pyarrow imports pandas at the first call of `pa.array` or `pa.scalar`. The import takes 0.2 s.
    program = subprocess.run([sys.executable, "-c", READ_WITHOUT_PANDAS], capture_output=True, text=True, check=True)
    assert program.stdout.split() == ["2", "False"]
