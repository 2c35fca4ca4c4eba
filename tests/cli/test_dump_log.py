"""`hmb dump-log` and `hmb index-inspect` as somebody in a terminal sees them."""

import json
import subprocess
from pathlib import Path
from struct import pack

import pytest

from hmb.records import Record, encode_batch
from tests.cli.conftest import COMMAND, Hmb

RECORDS = [Record(timestamp=1000 + n, key=b"k%d" % n, value=b"value %d" % n) for n in range(3)]
SIZE = len(encode_batch(RECORDS))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A partition's directory with one segment of four batches, and its index."""
    directory = tmp_path / "topic-0"
    directory.mkdir()
    path = directory / "00000000000000000000.log"
    path.write_bytes(b"".join([encode_batch(RECORDS, base_offset=3 * n) for n in range(4)]))
    path.with_suffix(".index").write_bytes(pack(">iiii", 5, SIZE, 11, 3 * SIZE))
    path.with_suffix(".timeindex").write_bytes(pack(">qi", 1002, 2))
    return path


def test_lines(run: Hmb, log: Path) -> None:
    output = run("dump-log", str(log), "--print-data-log").stdout.splitlines()
    assert output[:2] == [f"Dumping {log}", "Log starting offset: 0"]
    assert (
        output[4]
        == "| offset: 1 CreateTime: 1001 keySize: 2 valueSize: 7 sequence: -1 headerKeys: [] key: k1 payload: value 1"
    )
    assert len(output) == 2 + 4 * 4


def test_kafka_s_way_to_name_files(run: Hmb, log: Path) -> None:
    index = log.with_suffix(".index")
    both = run("dump-log", "--files", f"{log},{index}").stdout
    assert both == run("dump-log", str(log)).stdout + run("dump-log", str(index)).stdout


def test_a_directory(run: Hmb, log: Path) -> None:
    output = run("dump-log", str(log.parent)).stdout.splitlines()
    assert [line for line in output if line.startswith("Dumping")] == [
        f"Dumping {log.with_suffix(suffix)}" for suffix in (".log", ".index", ".timeindex")
    ]


def test_json(run: Hmb, log: Path) -> None:
    entries = [json.loads(line) for line in run("dump-log", str(log), "--print-data-log", "--json").stdout.splitlines()]
    assert [entry["type"] for entry in entries[:4]] == ["file", "note", "batch", "record"]
    assert [entry["value"] for entry in entries if entry["type"] == "record"][:2] == ["value 0", "value 1"]


def test_damage_is_named_and_ends_with_5(run: Hmb, log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[SIZE + 80] ^= 1
    log.write_bytes(data + bytes(70))
    result = run("dump-log", str(log), exit_code=5)
    assert "isvalid: false" in result.stdout and "damaged" not in result.stdout
    assert f"hmb: {log}: damaged at position {SIZE}: the CRC is" in result.stderr
    assert f"hmb: {log}: damaged at position {4 * SIZE}: " in result.stderr
    assert result.stderr.splitlines()[-1] == "hmb: damage found in 2 places"
    entries = [json.loads(line) for line in run("dump-log", str(log), "--json", exit_code=5).stdout.splitlines()]
    assert [entry["position"] for entry in entries if entry["type"] == "damage"] == [SIZE, 4 * SIZE]


def test_verify(run: Hmb, log: Path) -> None:
    assert run("dump-log", "--verify", str(log)).stdout == f"{log}: 4 batches, 12 records, no damage\n"
    log.write_bytes(log.read_bytes()[:-1])
    assert "damage: 1" in run("dump-log", "--verify", str(log), exit_code=5).stdout


def test_mistakes(run: Hmb, log: Path, tmp_path: Path) -> None:
    for arguments, code, what in (
        (["dump-log", str(tmp_path / "none.log")], 3, "no such file"),
        (["dump-log", str(tmp_path)], 3, "no log files"),
        (["dump-log"], 2, "name a file"),
        (["index-inspect", str(log)], 2, "no index"),
        (["index-inspect", str(log.with_name("00000000000000000007.index"))], 3, "no such file"),
        (["index-inspect", str(log.with_suffix(".index")), "--lookup", "12"], 3, "behind the end"),
        (["index-inspect", str(log.with_suffix(".index")), "--lookup", "-1"], 3, "before this segment"),
    ):
        assert what in run(*arguments, exit_code=code).stderr


def test_a_closed_pipe(log: Path) -> None:
    log.write_bytes(b"".join([encode_batch(RECORDS, base_offset=3 * n) for n in range(5000)]))
    with subprocess.Popen([COMMAND, "dump-log", log], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_inspect(run: Hmb, log: Path) -> None:
    output = run("index-inspect", str(log.with_suffix(".index"))).stdout.splitlines()
    assert output[1].split() == ["0", "5", str(SIZE), str(SIZE)]
    assert output[-1] == f"2 entries for {4 * SIZE} bytes of log, one every {3 * SIZE // 2} bytes; no mismatches"
    log.with_suffix(".index").write_bytes(pack(">ii", 4, SIZE))
    wrong = run("index-inspect", str(log.with_suffix(".index")), exit_code=5)
    assert f"<- the batch at position {SIZE} ends at offset 5" in wrong.stdout


def test_inspect_a_look_up(run: Hmb, log: Path) -> None:
    output = run("index-inspect", str(log.with_suffix(".index")), "--lookup", "7").stdout
    assert f"entry 0: 5 -> {SIZE}" in output
    assert output.splitlines()[-1] == f"  position {2 * SIZE}: offsets 6..8, timestamp 1002: here it is"
    steps = [
        json.loads(line)
        for line in run("index-inspect", str(log.with_suffix(".index")), "--lookup", "7", "--json").stdout.splitlines()
    ]
    assert [step["type"] for step in steps] == ["search", "search", "search_result", "scan", "scan"]
    by_time = run("index-inspect", str(log.with_suffix(".timeindex")), "--lookup", "1001").stdout
    assert "binary search for timestamp 1001" in by_time and "offsets 0..2, timestamp 1002: here it is" in by_time
