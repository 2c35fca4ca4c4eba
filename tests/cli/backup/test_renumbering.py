"""Tests of the new offsets that the records of a backup get."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hmb.cli.backup.renumbering import aborted_transactions, new_offsets, restorable
from hmb.mirror.translation import Translation
from hmb.records import Batch, Codec, Record, TimestampType, encode_batch, iter_batches, read_records
from hmb.records.filtering import filter_batch


def batch(*offsets: int, codec: Codec = Codec.NONE, log_append_time: int | None = None) -> Batch:
    """Return a batch as it is after compaction: it contains only the records at these offsets."""
    records = [Record(offset=offset, timestamp=offset, key=b"k", value=b"%d" % offset) for offset in offsets]
    data = encode_batch(
        records, codec=codec, keep_offsets=True, log_append_time=log_append_time, producer_id=7, producer_epoch=1
    )
    return next(iter_batches(data))


def restored(batches: list[Batch], start: int = 0) -> tuple[list[tuple[int, bytes | None]], Translation]:
    """Return the timestamp and the value of each restored record, and the translation of the offsets."""
    offsets = new_offsets()
    sent = list(restorable(batches, aborted_transactions(batches), start, offsets))
    for data in sent:
        (new,) = iter_batches(data)
        new.check()
        assert new.has_all_records  # type: ignore[union-attr]
        assert new.producer_id == -1  # type: ignore[union-attr]
        assert new.timestamp_type is TimestampType.CREATE_TIME
    return [(record.timestamp, record.value) for data in sent for record in read_records(data)], offsets


def test_compacted_batches_lose_their_gaps() -> None:
    found, offsets = restored([batch(0, 1, 2), batch(5, 9, codec=Codec.ZSTD), batch(10, 11)])
    assert found == [(offset, b"%d" % offset) for offset in (0, 1, 2, 5, 9, 10, 11)]
    old, new = (0, 2, 3, 5, 6, 9, 10, 11, 12, 99), [0, 2, 3, 3, 4, 4, 5, 6, 7, 7]
    assert [offsets.translate(offset) for offset in old] == new
    assert not offsets.keeps_offsets


def test_records_below_the_start_and_empty_batches_are_left_out() -> None:
    empty = next(iter_batches(filter_batch(batch(7, 8), lambda *_: False) or batch(7).view))
    found, offsets = restored([batch(0, 1, 2), empty], start=2)
    assert [value for _, value in found][:1] == [b"2"]
    assert offsets.translate(2) == 0


def test_log_append_times_become_explicit_timestamps() -> None:
    found, offsets = restored([batch(0, 1, log_append_time=77)])
    assert found == [(77, b"0"), (77, b"1")]
    assert offsets.keeps_offsets


@given(st.lists(st.booleans(), max_size=40))
def test_an_offset_becomes_the_number_of_records_below_it(exists: list[bool]) -> None:
    offsets = new_offsets()
    for offset, present in enumerate(exists):
        if present:
            offsets.add(offset, offsets.target_end, 1)
    for offset in range(len(exists) + 1):
        assert offsets.translate(offset) == sum(exists[:offset])
    assert offsets.target_end == sum(exists)
