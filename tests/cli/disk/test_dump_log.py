"""Tests of `hmb dump-log` and `hmb index-inspect`: their output, their errors and their exit codes."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from struct import pack

import pytest
from click.testing import CliRunner

from hmb.cli.disk import dump_log
from hmb.cli.main import main
from hmb.coordinator.journal.records import OffsetCommitKey, encode_key
from hmb.records import Record, encode_batch
from tests.cli.conftest import COMMAND, Hmb

RECORDS = [Record(timestamp=1000 + n, key=b"k%d" % n, value=b"value %d" % n) for n in range(3)]
SIZE = len(encode_batch(RECORDS))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Create the directory of a partition whose log is one segment with four batches.

    Return the path of the log file.
    """
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
    assert f"hmb: {log}: damaged at position {SIZE}: the stored CRC is" in result.stderr
    assert f"hmb: {log}: damaged at position {4 * SIZE}: " in result.stderr
    assert result.stderr.splitlines()[-1] == "hmb: damage found in 2 places"
    entries = [json.loads(line) for line in run("dump-log", str(log), "--json", exit_code=5).stdout.splitlines()]
    assert [entry["position"] for entry in entries if entry["type"] == "damage"] == [SIZE, 4 * SIZE]


def test_verify(run: Hmb, log: Path) -> None:
    assert (
        run("dump-log", "--verify", str(log)).stdout == f"{log}: {4 * SIZE} bytes, 4 batches, 12 records, no damage\n"
    )
    log.write_bytes(log.read_bytes()[:-1])
    assert "damage: 1" in run("dump-log", "--verify", str(log), exit_code=5).stdout


def test_verify_a_data_directory_prints_one_summary(run: Hmb, log: Path, tmp_path: Path) -> None:
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\ntopic 0 0\n")
    output = run("dump-log", "--verify", str(tmp_path)).stdout
    size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert output == f"4 files: {size} bytes, 4 batches, 12 records, 6 entries, no damage\n"
    entries = [json.loads(line) for line in run("dump-log", "--verify", "--json", str(tmp_path)).stdout.splitlines()]
    assert [entry["type"] for entry in entries] == ["verified"] * 5
    assert (entries[-1]["file"], entries[-1]["damages"]) == (None, 0)
    log.with_suffix(".index").write_bytes(pack(">iiii", 5, SIZE, 12, 3 * SIZE))
    damaged = run("dump-log", "--verify", str(tmp_path), exit_code=5)
    assert damaged.stdout.endswith("damage: 1\n") and damaged.stdout.count("\n") == 1
    assert "Index offset: 12, log offset: 11" in damaged.stderr


def test_hex_and_tree(run: Hmb, log: Path) -> None:
    index = log.with_suffix(".index")
    output = run("dump-log", "--hex", str(index)).stdout.splitlines()
    assert output[1].split() == ["000000", "00", "00", "00", "05", "entries[0].relative_offset", "=", "5", "->", "5"]
    output = run("dump-log", "--tree", str(log.parent)).stdout.splitlines()
    assert output[0] == f"{log}: {4 * SIZE} bytes, offsets 0..11, 4 batches, 12 records"
    assert output[2] == "    record 0: 16 bytes, key 2, value 7"
    fields = [json.loads(line) for line in run("dump-log", "--hex", "--json", str(log.parent)).stdout.splitlines()]
    shown = bytes.fromhex("".join(entry["bytes"] for entry in fields if entry["type"] == "field"))
    assert shown == b"".join(log.with_suffix(suffix).read_bytes() for suffix in (".log", ".index", ".timeindex"))


BAD_FILES = {
    "empty": b"",
    "cut": encode_batch(RECORDS)[:-5],
    "foreign": b"PK\x03\x04 a zip file, say" * 20,
    "text": b"lorem ipsum dolor sit amet\n" * 20,
    "zeros": bytes(1000),
    "garbage": bytes((7 * n * n + 3) % 256 for n in range(5000)),
}
NAMES = [f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")]


@pytest.mark.parametrize("name", [*NAMES, "leader-epoch-checkpoint", "partition.metadata", "meta.properties", "x.log"])
@pytest.mark.parametrize("content", BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_are_named_never_a_traceback(run: Hmb, tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    for options in ([], ["--print-data-log"], ["--hex"], ["--tree"], ["--verify"], ["--json"], ["--hex", "--json"]):
        result = CliRunner().invoke(main, ["dump-log", *options, str(path)])
        assert result.exit_code in (0, 5), result.output
        assert isinstance(result.exception, SystemExit | None)
        assert (result.exit_code == 5) == bool(result.stderr)
        if "--json" in options:
            assert all(json.loads(line) for line in result.stdout.splitlines())
    if path.suffix in (".index", ".timeindex"):
        path.with_suffix(".log").write_bytes(encode_batch(RECORDS))
        for lookup in ([], ["--lookup", "1"]):
            result = CliRunner().invoke(main, ["index-inspect", str(path), *lookup])
            assert isinstance(result.exception, SystemExit | None), result.output
            assert result.exit_code in (0, 3, 5)


def test_files_with_a_wrong_suffix_are_ignored_as_kafka_does(run: Hmb, log: Path) -> None:
    other = log.with_suffix(".dat")
    log.rename(other)
    result = run("dump-log", str(other), exit_code=1)
    assert result.stdout == f"Dumping {other}\nIgnoring unknown file {other}\n"
    assert result.stderr == f"hmb: {other}: not checked: not a file of a log\n"


def test_a_file_that_may_not_be_read(log: Path) -> None:
    log.chmod(0)
    try:
        log.read_bytes()
    except PermissionError:
        result = CliRunner().invoke(main, ["dump-log", str(log)])
        assert (result.exit_code, result.stderr) == (1, f"hmb: {log}: Permission denied\n")
    else:
        pytest.skip("this user may read everything")


def test_a_segment_that_is_a_directory(run: Hmb, log: Path) -> None:
    log.unlink()
    log.mkdir()
    assert "no log files in this directory" in run("dump-log", str(log), exit_code=3).stderr
    assert "Is a directory" in run("dump-log", str(log.with_suffix(".index")), exit_code=1).stderr
    assert "a directory" in run("index-inspect", str(log.with_suffix(".index")), exit_code=3).stderr


def test_mistakes(run: Hmb, log: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    for arguments, code, message in (
        (["dump-log", "--hex", "--tree", str(log)], 2, "cannot be combined"),
        (["dump-log", str(tmp_path / "none.log")], 3, "no such file"),
        (["dump-log", str(tmp_path / "nothing")], 3, "no log files"),
        (["dump-log"], 2, "name a file"),
        (["index-inspect", str(log)], 2, "is not an index"),
        (["index-inspect", str(log.with_name("00000000000000000007.index"))], 3, "no such file"),
        (["index-inspect", str(log.with_suffix(".index")), "--lookup", "12"], 3, "after the end"),
        (["index-inspect", str(log.with_suffix(".index")), "--lookup", "-1"], 3, "is below offset 0"),
    ):
        assert message in run(*arguments, exit_code=code).stderr


@pytest.mark.parametrize("options", [[], ["--hex"], ["--tree"], ["--print-data-log", "--json"]])
def test_a_closed_pipe(log: Path, options: list[str]) -> None:
    log.write_bytes(b"".join([encode_batch(RECORDS, base_offset=3 * n) for n in range(5000)]))
    with subprocess.Popen(
        [COMMAND, "dump-log", log, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_inspect(run: Hmb, log: Path) -> None:
    output = run("index-inspect", str(log.with_suffix(".index"))).stdout.splitlines()
    assert output[1].split() == ["0", "5", str(SIZE), str(SIZE)]
    assert output[-1] == f"2 entries for {4 * SIZE} bytes of log, one every {3 * SIZE // 2} bytes" + (
        f" (from {SIZE} to {2 * SIZE}); no mismatches"
    )
    log.with_suffix(".index").write_bytes(pack(">ii", 4, SIZE))
    wrong = run("index-inspect", str(log.with_suffix(".index")), exit_code=5)
    assert f"<- the batch at position {SIZE} ends at offset 5" in wrong.stdout


def test_inspect_a_look_up(run: Hmb, log: Path) -> None:
    output = run("index-inspect", str(log.with_suffix(".index")), "--lookup", "7").stdout
    assert f"entry 0: 5 -> {SIZE}" in output
    assert output.splitlines()[-1] == f"  position {2 * SIZE}: offsets 6..8, timestamp 1002: found"
    steps = [
        json.loads(line)
        for line in run("index-inspect", str(log.with_suffix(".index")), "--lookup", "7", "--json").stdout.splitlines()
    ]
    assert [step["type"] for step in steps] == ["search", "search", "search_result", "scan", "scan"]
    by_time = run("index-inspect", str(log.with_suffix(".timeindex")), "--lookup", "1001").stdout
    assert "binary search for timestamp 1001" in by_time and "offsets 0..2, timestamp 1002: found" in by_time


def test_inspect_prints_a_summary_in_json_and_names_the_bytes_after_the_entries(run: Hmb, log: Path) -> None:
    index = log.with_suffix(".index")
    *_, summary = run("index-inspect", str(index), "--json").stdout.splitlines()
    assert json.loads(summary) == {
        "type": "summary",
        "log_size": 4 * SIZE,
        "entries": 2,
        "mismatches": 0,
        "smallest": SIZE,
        "average": 3 * SIZE // 2,
        "greatest": 2 * SIZE,
        "padding": 0,
    }
    entries = index.read_bytes()
    index.write_bytes(entries + bytes(800))
    assert "800 bytes of padding; no mismatches" in run("index-inspect", str(index)).stdout
    index.write_bytes(entries + b"abc")
    assert "damaged at position 16" in run("index-inspect", str(index), exit_code=5).stderr


def test_progress_is_printed_only_on_a_terminal(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_log, "LARGE_FILE", 1)
    monkeypatch.setattr(dump_log, "PROGRESS_INTERVAL", 0)
    for is_terminal in (True, False):
        stderr = StringIO()
        monkeypatch.setattr(sys, "stderr", stderr)
        progress = dump_log._FileProgress(is_terminal)
        progress.show(log, 2 * SIZE)
        progress.clear()
        progress.clear()
        shown = f"\r{log.name}: 0 of 0 MB, 50 %\x1b[K\r\x1b[K"
        assert stderr.getvalue() == (shown if is_terminal else "")


def test_a_look_up_in_a_log_that_was_cut(run: Hmb, log: Path) -> None:
    """The command looks up offsets in the index of a log that was cut.

    Its error names the index entry that points after the end of the log. Before a bug was fixed, the error named an
    offset instead.
    """
    index, time_index = log.with_suffix(".index"), log.with_suffix(".timeindex")
    for size in (3 * SIZE, 3 * SIZE + 20):
        log.write_bytes(log.read_bytes()[:size])
        result = run("index-inspect", str(index), "--lookup", "11", exit_code=5)
        assert result.stderr == f"hmb: {index}: entry 1 points after the end of the log\n"
        assert "entry 0" in run("index-inspect", str(index), "--lookup", "6").stdout
        assert "after the end of this segment; the scan of the log has read 2 batches" in (
            run("index-inspect", str(index), "--lookup", "10", exit_code=3).stderr
        )
    time_index.write_bytes(pack(">qi", 1002, 11))
    result = run("index-inspect", str(time_index), "--lookup", "2000", exit_code=5)
    assert result.stderr == f"hmb: {time_index}: entry 0 points after the end of the log\n"


def test_a_missing_index_is_reported_whatever_its_name(run: Hmb, tmp_path: Path) -> None:
    result = run("index-inspect", str(tmp_path / "nope.index"), exit_code=3)
    assert result.stderr == f"hmb: {tmp_path / 'nope.index'}: no such file\n"


def test_a_file_that_does_not_belong_to_a_log_is_not_reported_as_undamaged(run: Hmb, log: Path) -> None:
    others = [log.with_name("garbage"), log.with_name("garbage.index")]
    for other in others:
        other.write_bytes(b"\x07" * 100)
    result = run("dump-log", "--verify", *map(str, [*others, log]), exit_code=1)
    assert result.stderr == "".join(f"hmb: {other}: not checked: not a file of a log\n" for other in others)
    assert result.stdout == f"{log}: {4 * SIZE} bytes, 4 batches, 12 records, no damage\n"
    shown = run("dump-log", "--verify", "--json", str(others[0]), exit_code=1).stdout
    assert json.loads(shown) == {"type": "unknown_file", "file": str(others[0])}
    log.write_bytes(bytes(100))
    run("dump-log", "--verify", *map(str, [*others, log]), exit_code=5)


def test_one_entry_is_reported_in_the_singular(run: Hmb, log: Path) -> None:
    log.write_bytes(encode_batch(RECORDS[:1]))
    log.with_suffix(".index").write_bytes(pack(">ii", 0, 0))
    log.with_suffix(".timeindex").write_bytes(pack(">qi", 1000, 0))
    output = run("dump-log", "--verify", str(log.parent)).stdout
    assert "1 batch, 1 record, 2 entries, no damage" in output
    assert "1 entry, no damage" in run("dump-log", "--verify", str(log.with_suffix(".index"))).stdout
    assert run("index-inspect", str(log.with_suffix(".timeindex"))).stdout.splitlines()[-1].startswith("1 entry for ")


def test_the_records_of_consumer_offsets(run: Hmb, tmp_path: Path) -> None:
    record = Record(timestamp=1000, key=encode_key(OffsetCommitKey(group="g\x1f", topic="t")))
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(encode_batch([record]))
    output = run("dump-log", str(log), "--offsets-decoder").stdout.splitlines()
    assert output[3].endswith(
        'headerKeys: [] key: {"type":"1","data":{"group":"g\\u001F","topic":"t","partition":0}} payload: <DELETE>'
    )
    *_, entry = (
        json.loads(line) for line in run("dump-log", str(log), "--offsets-decoder", "--json").stdout.splitlines()
    )
    assert entry["key"] == {"type": "1", "data": {"group": "g\x1f", "topic": "t", "partition": 0}}
    assert entry["value"] == "<DELETE>"


def test_a_directory_showed_its_empty_files(run: Hmb, log: Path) -> None:
    empty = log.with_name(f"{12:020d}.log")
    for path in (empty, empty.with_suffix(".index"), empty.with_suffix(".timeindex")):
        path.touch()
    for options in ([], ["--hex"], ["--tree"], ["--json"]):
        assert empty.stem not in run("dump-log", *options, str(log.parent)).stdout
    shown = run("dump-log", str(empty)).stdout
    assert shown == f"Dumping {empty}\nLog starting offset: 12\n"
    assert "no damage" in run("dump-log", "--verify", str(log.parent)).stdout
    only = log.parent.parent / "empty-0"
    only.mkdir()
    (only / empty.name).touch()
    assert run("dump-log", str(only)).stdout == ""
