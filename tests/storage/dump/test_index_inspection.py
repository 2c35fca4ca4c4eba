"""Tests that each index entry matches the log, and that a look-up in an index has the same result as a linear scan."""

from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.protocol.errors import KafkaError
from hmb.records import Record, encode_batch
from hmb.storage.dump.inspection import inspect, scan, search
from hmb.storage.dump.segment_files import IndexReader, walk

BASE = 400


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log of six batches with three records each.

    The offsets are 400 to 417, and the timestamps are 1000, 1010, ...
    """
    batches = [encode_batch([Record(timestamp=1000 + 10 * n)] * 3, base_offset=BASE + 3 * n) for n in range(6)]
    path = tmp_path / f"{BASE:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


SIZE = len(encode_batch([Record(timestamp=1000)] * 3))


def index_of(log: Path, *entries: tuple[int, int], padding: int = 0) -> Path:
    path = log.with_suffix(".index")
    path.write_bytes(b"".join([pack(">ii", *entry) for entry in entries]) + bytes(padding))
    return path


def time_index_of(log: Path, *entries: tuple[int, int]) -> Path:
    path = log.with_suffix(".timeindex")
    path.write_bytes(b"".join([pack(">qi", *entry) for entry in entries]))
    return path


def problems(path: Path) -> list[str | None]:
    return [entry.problem for entry in inspect(path)]


def test_a_good_index(log: Path) -> None:
    entries = list(inspect(index_of(log, (5, SIZE), (11, 3 * SIZE), padding=80)))
    assert [(it.number, it.key, it.value, it.distance) for it in entries] == [
        (0, 405, SIZE, SIZE),
        (1, 411, 3 * SIZE, 2 * SIZE),
    ]
    assert {entry.problem for entry in entries} == {None}
    assert list(inspect(index_of(log, padding=80))) == list(inspect(index_of(log))) == []


def test_entries_that_disagree_with_the_log(log: Path) -> None:
    index = index_of(log, (4, SIZE), (8, 2 * SIZE + 1), (11, 3 * SIZE), (12, SIZE), (20, 99 * SIZE))
    assert problems(index) == [
        f"the batch at position {SIZE} ends at offset 405",
        f"no batch starts at position {2 * SIZE + 1}; the next one does at {3 * SIZE}",
        None,
        f"does not grow: 411, {3 * SIZE} stands before it",
        f"position {99 * SIZE} is behind the end of the log",
    ]


def test_time_index_entries_that_disagree_with_the_log(log: Path) -> None:
    assert problems(time_index_of(log, (1010, 5), (1050, 17))) == [None, None]
    assert problems(time_index_of(log, (1010, 4), (1021, 8), (1030, 11), (1030, 14), (2000, 30))) == [
        "no batch ends at offset 404; one does at 405",
        "the greatest timestamp of the batch is 1020",
        None,
        "does not grow: 1030, 411 stands before it",
        "offset 430 is behind the end of the log",
    ]


def test_a_younger_batch_in_front_of_an_indexed_one(log: Path) -> None:
    young = encode_batch([Record(timestamp=9000)] * 3, base_offset=BASE)
    log.write_bytes(young + log.read_bytes()[SIZE:])
    assert problems(time_index_of(log, (1010, 5))) == ["a batch before it has the timestamp 9000"]


def test_a_damaged_log(log: Path) -> None:
    log.write_bytes(log.read_bytes()[: 2 * SIZE] + bytes(100))
    first, second = problems(index_of(log, (5, SIZE), (11, 3 * SIZE)))
    assert first is None
    assert second is not None and f"damaged at position {2 * SIZE}" in second


def test_a_torn_log_ends_at_its_last_whole_batch(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-1])
    with log.open("rb") as file:
        assert [at.batch.last_offset for at in walk(file)] == [402, 405, 408, 411, 414]
    log.write_bytes(log.read_bytes() + bytes(SIZE))
    with log.open("rb") as file, pytest.raises(KafkaError, match="damaged at position"):
        list(walk(file))


@given(offsets=st.lists(st.integers(1, 1000), unique=True).map(sorted), wanted=st.integers(390, 1500))
def test_the_search_finds_what_a_linear_scan_finds(
    tmp_path_factory: pytest.TempPathFactory, offsets: list[int], wanted: int
) -> None:
    path = tmp_path_factory.mktemp("index") / f"{BASE:020d}.index"
    path.write_bytes(b"".join([pack(">ii", offset, 10 * offset) for offset in offsets]) + bytes(32))
    found = [(BASE + offset, 10 * offset) for offset in offsets if BASE + offset <= wanted]
    expected = found[-1] if found else None
    assert search(path, wanted).entry == expected
    below = [(BASE + offset, 10 * offset) for offset in offsets if BASE + offset < wanted]
    assert search(path, wanted, below=True).entry == (below[-1] if below else None)
    with IndexReader(path) as index:
        assert index.lookup(wanted) == expected
        assert len(index) == len(offsets)
    assert len(search(path, wanted).steps) <= len(offsets).bit_length()


def test_the_scan_ends_at_the_batch_that_is_looked_for(log: Path) -> None:
    assert [(s.last_offset, s.is_found) for s in scan(log, SIZE, offset=409)] == [
        (405, False),
        (408, False),
        (411, True),
    ]
    assert [(s.last_offset, s.is_found) for s in scan(log, 0, timestamp=1011)] == [
        (402, False),
        (405, False),
        (408, True),
    ]
    assert not any(step.is_found for step in scan(log, 0, offset=418))
