"""Tests of recovery from cut files and from changed bytes.

The command `python -m tests.storage.recovery.damage` checks recovery with many more damaged logs than these tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.storage.log import Log
from tests.storage.conftest import LogMaker, batch, read_all
from tests.storage.recovery import damage

SIZE = batch(2).size


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_all(log)]


def filled(open_log: LogMaker, batches: int, **config: object) -> Log:
    """Return a log with `batches` batches. Each batch has two records and SIZE bytes."""
    log = open_log(**config)
    for _ in range(batches):
        log.append(batch(2))
    return log


def flip(path: Path, position: int) -> bytes:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("name", damage.FORMATS)
def test_recovery_keeps_exactly_the_batches_before_the_damage(name: str) -> None:
    cuts, flips, _ = damage.run(name, flip_count=60, cut_step=3)
    assert cuts > 50
    assert flips == 60


@pytest.mark.parametrize("junk", [b"\0" * 5000, b"\xff" * 100, bytes(range(256)) * 20, b"\0" * 3_000_000])
def test_a_nonsense_block_at_the_end_is_cut(open_log: LogMaker, junk: bytes) -> None:
    path = filled(open_log, 3).segments[0].path
    good = path.read_bytes()
    path.write_bytes(good + junk)
    for _ in range(2):
        assert open_log(clean=False).log_end_offset == 6
        assert path.read_bytes() == good
    assert damage.side_files(path.parent) == []


def test_a_damaged_block_ends_the_log_and_the_bytes_after_it_are_kept_in_a_file(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(open_log, 6).segments[0].path
    data = path.read_bytes()
    data = data[: 2 * SIZE] + bytes(SIZE) + data[3 * SIZE :]
    path.write_bytes(data)
    log = open_log(clean=False)
    assert offsets(log) == [0, 1, 2, 3]
    side = path.with_name(f"{path.name}.{2 * SIZE}.cut")
    assert side.read_bytes() == data[2 * SIZE :]
    assert f"{path}, position {2 * SIZE}" in caplog.text
    assert str(side) in caplog.text
    assert log.append(batch(1)).base_offset == 4
    assert offsets(open_log(clean=False)) == [0, 1, 2, 3, 4]
    assert damage.side_files(path.parent) == [side]


def test_a_second_damage_at_the_same_place_keeps_both(open_log: LogMaker) -> None:
    path = filled(open_log, 3).segments[0].path
    first = flip(path, 70)
    log = open_log(clean=False)
    for _ in range(2):
        log.append(batch(2, first_timestamp=5_000))
    second = flip(path, 70)
    open_log(clean=False)
    assert [side.read_bytes() for side in damage.side_files(path.parent)] == [second, first]


def test_damage_in_a_closed_segment_is_not_a_power_cut_so_all_intact_batches_are_served(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """Readers get all intact batches of a closed segment with damage.

    The log syncs a segment before it creates the next one. So a power cut cannot be the cause of the damage, and
    recovery must not cut the log.
    """
    log = filled(open_log, 6, segment_bytes=2 * SIZE)
    path = log.segments[1].path
    damaged = flip(path, 70)
    for recovery_point in (2, 4, 12, None):
        recovered = open_log(clean=False, recovery_point=recovery_point, segment_bytes=2 * SIZE)
        assert offsets(recovered) == [0, 1, 2, 3, 6, 7, 8, 9, 10, 11]
    assert caplog.text.count(f"{path}, position 0") == 1
    assert "offsets 4 to 5 are lost" in caplog.text
    (side,) = damage.side_files(log.directory)
    assert (side.name, side.read_bytes()) == (f"{path.name}.0.cut", damaged[:SIZE])
    assert recovered.append(batch(1)).base_offset == 12


def test_recovery_keeps_the_intact_batches_after_damage_below_the_recovery_point(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """If one batch below the recovery point is damaged, recovery keeps all other batches below this point.

    All batches below the recovery point were on disk, so clients may have read them. Before a bug was fixed, clients
    did not get the intact batches after the damaged batch.
    """
    path = filled(open_log, 4).segments[0].path
    damaged = flip(path, SIZE + 70)
    for _ in range(2):
        log = open_log(clean=False, recovery_point=8)
        assert (log.log_end_offset, offsets(log)) == (8, [0, 1, 4, 5, 6, 7])
    assert caplog.text.count(f"{path}, position {SIZE}") == 1
    (side,) = damage.side_files(log.directory)
    assert side.read_bytes() == damaged[SIZE : 2 * SIZE]
    assert log.append(batch(1)).base_offset == 8
    assert [record.offset for record in read_all(log)] == [0, 1, 4, 5, 6, 7, 8]


def test_a_hole_before_the_recovery_point_and_a_torn_end_after_it(open_log: LogMaker) -> None:
    path = filled(open_log, 6).segments[0].path
    flip(path, SIZE + 70)
    flip(path, 4 * SIZE + 70)
    for _ in range(2):
        log = open_log(clean=False, recovery_point=6)
        assert (log.log_end_offset, offsets(log)) == (8, [0, 1, 4, 5, 6, 7])
    assert {side.name for side in damage.side_files(log.directory)} == {
        f"{path.name}.{SIZE}.cut", f"{path.name}.{4 * SIZE}.cut"
    }  # fmt: skip


def test_a_hole_over_the_recovery_point_ends_the_log_there(open_log: LogMaker) -> None:
    """Recovery cuts the log at damage that begins below the recovery point and ends above it.

    The broker may have crashed before it synced the batches above the recovery point. So recovery keeps no batch after
    the damage.
    """
    path = filled(open_log, 6).segments[0].path
    data = path.read_bytes()
    path.write_bytes(data[:SIZE] + bytes(2 * SIZE) + data[3 * SIZE :])
    for _ in range(2):
        log = open_log(clean=False, recovery_point=4)
        assert (log.log_end_offset, offsets(log)) == (4, [0, 1])
    assert damage.side_files(log.directory)


@pytest.mark.parametrize("left", [0, 2 * SIZE, 2 * SIZE + 5])
def test_a_log_that_lost_its_synced_end_continues_after_it(open_log: LogMaker, left: int) -> None:
    log = filled(open_log, 4)
    log.close()
    path = log.segments[0].path
    path.write_bytes(path.read_bytes()[:left])
    for clean in (True, False):
        reopened = open_log(clean=clean, recovery_point=8)
        assert reopened.log_end_offset == 8
        assert offsets(reopened) == list(range(left // SIZE * 2))


def test_a_wrong_offset_at_the_very_end_is_noticed(open_log: LogMaker) -> None:
    """Recovery notices a wrong base offset in the last batch.

    A batch's CRC does not cover its base offset. The last batch has no later batch whose offset could show the error.
    """
    path = filled(open_log, 3).segments[0].path
    flip(path, 2 * SIZE + 6)  # The base offset is now 256 too high.
    assert open_log(clean=False).log_end_offset == 4


def test_gaps_that_compaction_left_are_not_damage(open_log: LogMaker) -> None:
    log = filled(open_log, 6)
    path = log.segments[0].path
    data = path.read_bytes()
    path.write_bytes(data[:SIZE] + data[3 * SIZE :])
    assert offsets(open_log(clean=False)) == [0, 1, 6, 7, 8, 9, 10, 11]
