"""Tests of recovery after a kill: a log keeps its complete batches, and rebuilds its indexes and its producers' state.

Tests of damage at every position are in test_recovery_damage.py. Tests of files that do not match each other are in
test_recovery_files.py and test_recovery_state_files.py.
"""

from __future__ import annotations

import errno
import os

import pytest

from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.producer_state import snapshot_path
from tests.storage.conftest import LogMaker, batch, read_all


def test_a_flipped_bit_in_the_last_segment_ends_the_log_there(open_log: LogMaker) -> None:
    log = open_log()
    for _ in range(5):
        log.append(batch(2))
    size = log.size // 5
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[3 * size + 70] ^= 1
    path.write_bytes(data)
    recovered = open_log(clean=False)
    assert [record.offset for record in read_all(recovered)] == list(range(6))
    assert recovered.append(batch(1)).base_offset == 6


def test_damage_in_an_older_segment_is_reported_and_the_bytes_are_kept(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(segment_bytes=2 * batch(2).size)
    for _ in range(6):
        log.append(batch(2))
    path = log.segments[1].path
    data = bytearray(path.read_bytes())
    data[batch(2).size + 70] ^= 1
    path.write_bytes(data)
    recovered = open_log(clean=False, recovery_point=12)
    # When the broker starts, it does not check batches below the recovery point.
    assert f"{path}, position {batch(2).size}" not in caplog.text
    recovered = open_log(clean=False, recovery_point=None)
    assert f"{path}, position {batch(2).size}" in caplog.text
    (kept,) = path.parent.glob("*.cut")
    assert kept.read_bytes() == data[batch(2).size :]
    assert [record.offset for record in read_all(recovered)] == [0, 1, 2, 3, 4, 5, 8, 9, 10, 11]


def test_without_a_manifest_a_segment_that_ends_at_the_recovery_point_is_not_checked(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=2 * batch(2).size)
    for _ in range(6):
        log.append(batch(2))
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    assert open_log(clean=False, recovery_point=4).segments[0].size == len(data)
    assert path.read_bytes() == data
    assert open_log(clean=False, recovery_point=3).segments[0].size < len(data)


@pytest.mark.parametrize("damage", ["missing", "odd", "zeros"])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_cannot_be_trusted_is_rebuilt(open_log: LogMaker, damage: str, suffix: str) -> None:
    log = open_log(index_interval_bytes=100)
    for number in range(30):
        log.append(batch(2, first_timestamp=number * 10 + 1))
    path = log.segments[0].path.with_suffix(suffix)
    log.close()
    good = path.read_bytes()
    assert good
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(good + (b"\x01" if damage == "odd" else bytes(24)))
    reopened = open_log(clean=True, index_interval_bytes=100)
    reopened.close()
    assert path.read_bytes() == good


@pytest.mark.parametrize("short", [False, True])
def test_indexes_that_find_no_room_are_left_empty_and_the_log_is_read(
    open_log: LogMaker, short: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(index_interval_bytes=100)
    for number in range(30):
        log.append(batch(2, first_timestamp=number * 10 + 1))
    pwrite = os.pwrite

    def full_disk(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def nearly_full_disk(descriptor: int, parts: list[bytes], position: int) -> int:
        return pwrite(descriptor, parts[0][:12], position)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", nearly_full_disk if short else full_disk)
        patch.setattr(os, "pwrite", full_disk)
        recovered = open_log(clean=False, index_interval_bytes=100)
    index = recovered.segments[0].offset_index
    assert f"{index.path} is left empty" in caplog.text
    assert (index.entries, index.path.stat().st_size) == (0, 0)
    assert [record.offset for record in read_all(recovered, max_bytes=200)] == list(range(60))


def test_a_clean_start_reads_on_where_the_log_ended(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=500)
    for _ in range(20):
        log.append(batch(3))
    log.close()
    reopened = open_log(clean=True, segment_bytes=500)
    assert reopened.log_end_offset == 60
    assert reopened.append(batch(1)).base_offset == 60
    assert [record.offset for record in read_all(reopened)] == list(range(61))


def test_producers_are_remembered_after_a_kill_and_after_a_clean_stop(open_log: LogMaker) -> None:
    log = open_log(segment_bytes=400)
    for sequence in range(8):
        log.append(batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence))
    for clean in (False, True):
        reopened = open_log(clean=clean, segment_bytes=400)
        duplicate = batch(1, producer_id=7, producer_epoch=0, base_sequence=7)
        assert reopened.append(duplicate).base_offset == 7
        assert reopened.log_end_offset == 8
        with pytest.raises(KafkaError) as error:
            reopened.append(batch(1, producer_id=7, producer_epoch=0, base_sequence=9))
        assert error.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        reopened.close()


def test_a_snapshot_of_bytes_that_were_cut_off_is_not_used(open_log: LogMaker) -> None:
    log = open_log()
    for sequence in range(4):
        log.append(batch(1, producer_id=7, producer_epoch=0, base_sequence=sequence))
    log.close()
    path = log.segments[0].path
    path.write_bytes(path.read_bytes()[: -batch(1).size])
    reopened = open_log(clean=False)
    assert not snapshot_path(log.directory, 4).exists()
    assert reopened.append(batch(1, producer_id=7, producer_epoch=0, base_sequence=3)).base_offset == 3
