"""Cuts and changed bytes: a sample of what `python -m tests.storage.damage` does in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.storage.log import Log
from tests.storage import damage
from tests.storage.conftest import LogMaker, batch, read_all

SIZE = len(batch(2))


def offsets(log: Log) -> list[int]:
    return [record.offset for record in read_all(log)]


def filled(open_log: LogMaker, batches: int, **config: object) -> Log:
    """A log of batches of two records, SIZE bytes each."""
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


def test_a_nonsense_block_over_whole_batches_ends_the_log_and_what_follows_is_kept(
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


def test_damage_behind_the_recovery_point_takes_off_the_later_segments_too(open_log: LogMaker) -> None:
    """They may have reached the disk before what is lost; a log has no later record without the earlier ones."""
    log = filled(open_log, 6, segment_bytes=2 * SIZE)
    paths = [segment.path for segment in log.segments]
    later = paths[2].read_bytes()
    damaged = flip(paths[1], 70)
    recovered = open_log(clean=False, recovery_point=2, segment_bytes=2 * SIZE)
    assert offsets(recovered) == [0, 1, 2, 3]
    sides = damage.side_files(log.directory)
    assert [side.name for side in sides] == [f"{paths[1].name}.0.cut", f"{paths[2].name}.0.cut"]
    assert [side.read_bytes() for side in sides] == [damaged, later]
    assert not paths[2].exists()
    assert recovered.append(batch(1)).base_offset == 4


def test_damage_before_the_recovery_point_never_gives_an_offset_twice(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """It was on disk and may have been read, so the log goes on behind it; the file is kept."""
    path = filled(open_log, 4).segments[0].path
    damaged = flip(path, SIZE + 70)
    for _ in range(2):
        log = open_log(clean=False, recovery_point=8)
        assert f"{path}, position {SIZE}" in caplog.text
        assert (log.log_end_offset, offsets(log)) == (8, [0, 1])
        assert path.read_bytes() == damaged
    assert log.append(batch(1)).base_offset == 8
    assert [record.offset for record in read_all(log)] == [0, 1, 8]


def test_a_segment_that_was_kept_with_damage_is_not_taken_for_whole_at_the_next_start(
    open_log: LogMaker, caplog: pytest.LogCaptureFixture
) -> None:
    """All timestamps are the same and the batches' lengths are right, so nothing at its end shows the damage."""
    log = filled(open_log, 6, segment_bytes=2 * SIZE)
    log.close()
    path = log.segments[1].path
    good = path.read_bytes()
    flip(path, SIZE + 70)
    for clean, recovery_point in ((False, None), (True, 12), (False, 12), (True, 12)):
        caplog.clear()
        log = open_log(clean=clean, recovery_point=recovery_point, segment_bytes=2 * SIZE)
        assert offsets(log) == [0, 1, 2, 3, 4, 5, 8, 9, 10, 11]
        assert f"{path}, position {SIZE}" in caplog.text
        if clean:
            log.close()
    path.write_bytes(good)
    for _ in range(2):
        caplog.clear()
        log = open_log(clean=True, recovery_point=12, segment_bytes=2 * SIZE)
        assert offsets(log) == list(range(12))
        assert not caplog.text
        log.close()
    assert not list(path.parent.glob("*.damaged"))


@pytest.mark.parametrize("left", [0, 2 * SIZE, 2 * SIZE + 5])
def test_a_log_that_lost_its_synced_end_goes_on_behind_it(open_log: LogMaker, left: int) -> None:
    log = filled(open_log, 4)
    log.close()
    path = log.segments[0].path
    path.write_bytes(path.read_bytes()[:left])
    for clean in (True, False):
        reopened = open_log(clean=clean, recovery_point=8)
        assert reopened.log_end_offset == 8
        assert offsets(reopened) == list(range(left // SIZE * 2))


def test_a_wrong_offset_at_the_very_end_is_noticed(open_log: LogMaker) -> None:
    """No CRC covers it, and no batch follows that would go back."""
    path = filled(open_log, 3).segments[0].path
    flip(path, 2 * SIZE + 6)  # 256 too high
    assert open_log(clean=False).log_end_offset == 4


def test_gaps_that_compaction_left_are_none_of_its_business(open_log: LogMaker) -> None:
    log = filled(open_log, 6)
    path = log.segments[0].path
    data = path.read_bytes()
    path.write_bytes(data[:SIZE] + data[3 * SIZE :])
    assert offsets(open_log(clean=False)) == [0, 1, 6, 7, 8, 9, 10, 11]
