"""Tests of index blocks in memory: a look-up also finds entries that were appended after the block was read."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hmb.storage.files.index_blocks import decoded_block
from hmb.storage.files.sorted_entries import BLOCK
from hmb.storage.offset_index import OffsetIndex, OffsetPosition
from hmb.storage.transaction_index import AbortedTransaction, TransactionIndex

INT32_KEYS, INT64_KEYS = st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)


def test_look_ups_between_appends(tmp_path: Path) -> None:
    index = OffsetIndex(tmp_path / "0.index", 1000)
    entries = [OffsetPosition(1000, 0)]
    for number in range(1, BLOCK + 100):
        entries.append(OffsetPosition(1000 + 10 * number, 100 * number))
        index.append(*entries[-1])
        assert index.lookup(1000 + 10 * number - 1) == entries[-2]
        assert index.lookup(1000 + 5 * number) == entries[number // 2]


def test_a_look_up_after_the_index_was_cleared(tmp_path: Path) -> None:
    index = OffsetIndex(tmp_path / "0.index", 0)
    for number in range(1, 4):
        index.append(10 * number, 100 * number)
    assert index.lookup(15) == (10, 100)
    index.clear()
    for number in range(1, 4):
        index.append(7 * number, 70 * number)
    assert index.lookup(15) == (14, 140)


def test_a_search_after_all_entries_were_replaced(tmp_path: Path) -> None:
    index = TransactionIndex(tmp_path / "0.txnindex", 0)
    index.replace([AbortedTransaction(1, 0, 10, 11), AbortedTransaction(1, 11, 20, 21)])
    assert [each.last_offset for each in index.from_offset(11)] == [20]
    index.replace([AbortedTransaction(1, 0, 12, 13), AbortedTransaction(1, 13, 20, 21)])
    assert [each.last_offset for each in index.from_offset(11)] == [12, 20]


@given(keys=st.lists(INT32_KEYS, unique=True), key=INT32_KEYS)
def test_int32_keys_against_lazy_keys(keys: list[int], key: int) -> None:
    keys.sort()
    as_int32 = decoded_block(0, b"".join(struct.pack(">iI", each, 1) for each in keys), struct.Struct(">i"), 8).keys
    lazy = decoded_block(0, b"".join(struct.pack(">qi", each, 1) for each in keys), struct.Struct(">q"), 12).keys
    for bisect in (bisect_left, bisect_right):
        assert bisect(as_int32, key) == bisect(lazy, key) == bisect(keys, key)


@given(keys=st.lists(INT64_KEYS, unique=True), key=INT64_KEYS)
def test_lazy_keys_against_a_list(keys: list[int], key: int) -> None:
    keys.sort()
    lazy = decoded_block(0, b"".join(struct.pack(">qi", each, 1) for each in keys), struct.Struct(">q"), 12).keys
    assert bisect_left(lazy, key) == bisect_left(keys, key)
