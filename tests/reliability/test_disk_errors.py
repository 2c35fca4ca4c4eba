"""Injects disk errors, one case in each test. The docstring of the module disk_errors explains the cases."""

from __future__ import annotations

import os
from functools import lru_cache
from itertools import islice
from pathlib import Path

import pytest

from tests.reliability import disk_errors
from tests.reliability.disk_errors import Answered, Broken, Case, check_plain, run
from tests.reliability.faulty_disk import KINDS, Fault, FaultyDisk
from tests.storage.conftest import LogMaker, batch

SEED = 33
CASES = 60


@lru_cache(1)
def cases() -> list[Case]:
    calls = {kind: disk_errors.count_calls(kind) for kind in KINDS}
    return list(islice(disk_errors.cases(SEED, calls), CASES))


@pytest.mark.parametrize("number", range(CASES))
def test_what_was_answered_survives_an_error_of_the_disk_and_a_power_cut(number: int) -> None:
    case = cases()[number]
    try:
        run(case, SEED)
    except Broken as error:
        pytest.fail(f"{case}: {error}")


def test_the_course_without_an_error_loses_nothing_and_meets_every_call() -> None:
    for kind, (_, calls) in KINDS.items():
        disk = run(Case(Fault(kind, 1_000_000)), SEED)
        assert disk.hit == []
        assert disk.count > 300, calls


def test_the_disk_loses_unsynced_bytes(tmp_path: Path) -> None:
    """The simulated disk loses unsynced bytes in a power failure. Otherwise the other tests would prove nothing."""
    disk = FaultyDisk(tmp_path / "data", Fault("input/output error", 5))
    (tmp_path / "data").mkdir()
    with disk.attached(), disk.failing():
        descriptor = os.open(tmp_path / "data" / "file", os.O_RDWR | os.O_CREAT)  # `disk` counts this as call 1.
        os.pwrite(descriptor, b"synced", 0)
        os.fdatasync(descriptor)
        os.pwrite(descriptor, b", lost", 6)
        with pytest.raises(OSError, match="Input/output error"):
            os.fdatasync(descriptor)  # `disk` counts this as call 5, and lets it fail.
        os.fdatasync(descriptor)
        disk.power_cut(tmp_path / "left")
        os.close(descriptor)
    assert disk.hit == ["fdatasync file"]
    assert disk.synced_again == [str(tmp_path / "data" / "file")]
    assert (tmp_path / "left" / "file").read_bytes() == b"synced"
    assert (tmp_path / "data" / "file").read_bytes() == b"synced, lost"


def test_a_lost_record_is_noticed(open_log: LogMaker) -> None:
    log = open_log()
    log.append(batch(2))
    answered = Answered(records={0: b"0".ljust(20, b".")})
    check_plain(log, answered)
    answered.records[7] = b"seven"
    with pytest.raises(Broken, match="offset 7"):
        check_plain(log, answered)
