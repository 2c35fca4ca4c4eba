"""Tests that dump an index file while the log file of its segment is missing or too short."""

from pathlib import Path
from struct import pack

import pytest

from hmb.records import Record, encode_batch
from hmb.storage.dump.entries import DumpOptions
from hmb.storage.dump.findings import FEW
from hmb.storage.dump.log_files import dump

ENTRIES = 300
BATCHES = [encode_batch([Record(timestamp=1000 + n)], base_offset=n) for n in range(ENTRIES)]
SIZE = len(BATCHES[0])


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Return a directory with one segment, whose log file contains only the first two of 300 batches.

    The segment's offset index and time index still have entries for the other 298 batches.
    """
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(b"".join(BATCHES[:2]))
    log.with_suffix(".index").write_bytes(b"".join(pack(">ii", n, n * SIZE) for n in range(1, ENTRIES)))
    log.with_suffix(".timeindex").write_bytes(b"".join(pack(">qi", 1000 + n, n) for n in range(ENTRIES)))
    return tmp_path


def damages(path: Path, *, verify: bool = True) -> list[str]:
    return [entry.line() for entry in dump([path], DumpOptions(verify=verify)) if entry.is_damage]


@pytest.mark.parametrize("verify", [True, False])
def test_a_cut_names_the_first_few_entries_and_how_many_there_are(partition: Path, *, verify: bool) -> None:
    """If the log file is too short, the dump lists only the first few index entries whose batches are missing.

    The last line contains the number of the other entries. Before a bug was fixed, the dump printed one line for each
    entry without a batch.
    """
    index = partition / "00000000000000000000.index"
    lines = damages(index, verify=verify)
    assert len(lines) == FEW + 1
    assert f"position {2 * SIZE} of the log" in lines[0]
    assert lines[-1] == (
        f"{index}: damaged at position {8 * (1 + FEW)}: "
        f"the batches of {ENTRIES - 2 - FEW} more entries cannot be found in the log; "
        "the first of these entries is at this position"
    )
    assert len([entry for entry in dump([index], DumpOptions()) if entry.kind == "index_entry"]) == ENTRIES - 1


def test_a_cut_names_the_first_few_entries_of_the_time_index(partition: Path) -> None:
    (line,) = damages(partition / "00000000000000000000.timeindex")
    assert len(line.splitlines()) == 1 + FEW + 1
    assert line.endswith(f"  and {ENTRIES - 2 - FEW} more")


@pytest.mark.parametrize("name", ["00000000000000000000.index", "00000000000000000000.timeindex"])
@pytest.mark.parametrize("size", [0, 480])
def test_the_indexes_of_a_partition_without_records_need_no_log(tmp_path: Path, name: str, size: int) -> None:
    (tmp_path / name).write_bytes(bytes(size))
    assert damages(tmp_path) == []
    (tmp_path / name).write_bytes(pack(">iii", 1, 2, 3))
    assert "00000000000000000000.log is missing" in damages(tmp_path)[0]
