"""Tests of the dump of a log's files: it prints the same lines as Kafka's tool, and the position of each damage."""

import errno
import json
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    RecordBatch,
    assign_offsets,
    encode_batch,
    encode_marker,
    encode_message_set,
    iter_batches,
)
from hmb.records.filtering import empty_batch
from hmb.storage.dump.entries import DumpOptions, Entry
from hmb.storage.dump.log_files import as_json_fields, dump, log_files
from hmb.storage.producer_state import ProducerState

SEGMENTS = Path(__file__).parents[2] / "records" / "segments"
DUMPS = Path(__file__).parent / "dumps"
DEEP = DumpOptions(deep_iteration=True)
DATA = DumpOptions(print_data_log=True)
RECORDS = [Record(timestamp=1000 + n, key=b"k%d" % n, value=b"value %d" % n) for n in range(3)]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(*parts: bytes, name: str = "00000000000000000000.log") -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join(parts))
        return path

    return write


def batch(base_offset: int, codec: Codec = Codec.NONE) -> bytes:
    return encode_batch(RECORDS, base_offset=base_offset, codec=codec)


def lines(path: Path, options: DumpOptions = DumpOptions()) -> list[str]:  # noqa: B008
    return [entry.line() for entry in dump([path], options)]


def damages(path: Path, options: DumpOptions = DATA) -> list[tuple[int, str]]:
    found = [entry.fields() for entry in dump([path], options) if entry.kind == "damage"]
    return [(int(str(fields["position"])), str(fields["error"])) for fields in found]


def kinds(path: Path, options: DumpOptions = DATA) -> list[str]:
    return [entry.kind for entry in dump([path], options)]


@pytest.mark.parametrize("expected", sorted(DUMPS.glob("*.txt")), ids=lambda path: path.stem)
def test_the_lines_are_kafka_s(expected: Path, write: Write) -> None:
    path = write((SEGMENTS / f"{expected.stem}.log").read_bytes())
    assert lines(path, DATA)[1:] == expected.read_text().split("\n")[:-1]


def test_shallow_and_deep(write: Write) -> None:
    path = write(batch(0), batch(3, Codec.ZSTD))
    assert kinds(path, DumpOptions()) == ["file", "note", "batch", "batch"]
    assert kinds(path, DEEP) == ["file", "note", *["batch", "record", "record", "record"] * 2]
    assert "payload" not in "".join(lines(path, DEEP))


def test_a_wrong_crc_is_shown_and_the_dump_continues(write: Write) -> None:
    damaged = bytearray(batch(3, Codec.ZSTD))
    damaged[-1] ^= 1
    path = write(batch(0), damaged, batch(6))
    assert damages(path)[0][0] == len(batch(0))
    assert [line.rsplit(" ", 1)[1] for line in lines(path) if line.startswith("baseOffset")] == [
        "true",
        "false",
        "true",
    ]


def test_the_rest_of_a_damaged_batch_is_left_out(write: Write) -> None:
    damaged = bytearray(batch(3))
    damaged[61] ^= 0x40  # the length of the first record
    path = write(batch(0), damaged, batch(6))
    positions = [position for position, _ in damages(path)]
    assert positions == [len(batch(0))] * 2
    assert [line for line in lines(path, DATA) if "offset: 8 " in line]


@pytest.mark.parametrize("cut", [1, 10, 17, 30, 61, 90])
def test_a_torn_end(cut: int, write: Write) -> None:
    path = write(batch(0), batch(3)[:cut])
    assert f"Found {cut} invalid bytes at the end of 00000000000000000000.log" in lines(path)
    assert [position for position, _ in damages(path)] == [len(batch(0))]


@pytest.mark.parametrize("junk", [bytes(100), b"\xff" * 100, batch(3)[:16] + b"\x07" + batch(3)[17:]])
def test_bytes_that_are_not_a_batch_end_the_dump(junk: bytes, write: Write) -> None:
    path = write(batch(0), junk, batch(6))
    assert [position for position, _ in damages(path)] == [len(batch(0))]
    assert kinds(path) == ["file", "note", "batch", "record", "record", "record", "damage"]


def test_zeros_up_to_the_end_are_explained_as_preallocated_space(write: Write) -> None:
    """The dump explains zeros at the end of a log as preallocated space.

    Before a bug was fixed, the dump reported the zeros as a message with magic 0 and 12 bytes.
    """
    ((position, why),) = damages(write(batch(0), bytes(1 << 20)))
    assert position == len(batch(0))
    assert "preallocated" in why
    ((_, why),) = damages(write(batch(0), bytes(1 << 20) + b"x"))
    assert "preallocated" not in why


def test_an_unknown_codec(write: Write) -> None:
    damaged = bytearray(batch(3))
    damaged[22] = 6
    path = write(batch(0), damaged, batch(6))
    assert damages(path) == [(len(batch(0)), "no compression codec has the number 6")]


def test_every_cut_and_every_flip_is_named(write: Write) -> None:
    data = batch(0) + assign_offsets(encode_message_set(RECORDS, 0), 3).data + batch(6, Codec.GZIP)
    ends = {0, *accumulate(batch.size for batch in iter_batches(data))}
    for size in range(len(data)):
        assert bool(damages(write(data[:size]))) == (size not in ends)
    covered = [*range(16, len(batch(0))), *range(len(data) - 30, len(data))]
    for position in covered:
        flipped = bytearray(data)
        flipped[position] ^= 1
        assert damages(write(flipped))


def test_gaps_between_offsets_are_findings_but_not_damage(write: Write) -> None:
    path = write(batch(400), batch(500), name="00000000000000000400.log")
    *_, last = dump([path], DEEP)
    assert last.kind == "finding" and not last.is_damage
    assert last.line() == f"Non-consecutive offsets in {path}\n  402 is followed by 500"
    assert kinds(path, DumpOptions())[-1] == "batch"


def test_millions_of_gaps_are_not_all_kept(write: Write) -> None:
    records = [Record(offset=2 * n) for n in range(1100)]
    path = write(encode_batch(records, keep_offsets=True))
    *_, last = dump([path], DEEP)
    assert last.line().endswith("\n  and 99 more")


def test_json_keeps_what_is_not_text(write: Write) -> None:
    records = [Record(timestamp=5, key=b"\xff", value="Straße".encode(), headers=(("h", b"\xfe"), ("n", None)))]
    path = write(encode_batch(records))
    (record,) = [as_json_fields(entry) for entry in dump([path], DATA) if entry.kind == "record"]
    assert record["key_base64"] == "/w==" and "key" not in record
    assert record["value"] == "Straße"
    assert record["headers"] == [{"key": "h", "value_base64": "/g=="}, {"key": "n", "value": None}]


def test_json_of_markers(write: Write) -> None:
    path = write(encode_marker(EndTransactionMarker(ControlType.ABORT, 3), 5, 1, 2))
    fields = [as_json_fields(entry) for entry in dump([path], DEEP)]
    assert fields[2]["is_control"] is True
    assert (fields[3]["control_type"], fields[3]["coordinator_epoch"]) == ("ABORT", 3)


def index_of(path: Path, *entries: tuple[int, int], padding: int = 0, form: str = ">ii") -> Path:
    index = path.with_suffix(".index" if form == ">ii" else ".timeindex")
    index.write_bytes(b"".join([pack(form, *entry) for entry in entries]) + bytes(padding))
    return index


@pytest.fixture
def log(write: Write) -> tuple[Path, int]:
    """Return the path of a log that has five batches of equal size, and the size of one batch in bytes.

    The offsets are 400 to 414. The timestamps of the five batches are 1000, 1010, 1020, 1030 and 1040.
    """
    batches = [
        encode_batch([Record(timestamp=1000 + 10 * n, value=b"x")] * 3, base_offset=400 + 3 * n) for n in range(5)
    ]
    return write(*batches, name="00000000000000000400.log"), len(batches[0])


def test_an_index_and_its_padding(log: tuple[Path, int]) -> None:
    path, size = log
    index = index_of(path, (5, size), (8, 2 * size), padding=800)
    assert lines(index)[1:] == [f"offset: 405 position: {size}", f"offset: 408 position: {2 * size}"]
    assert lines(index, DumpOptions(index_sanity_check=True))[1:] == [f"{index} passed sanity check."]
    assert not any(entry.is_damage for entry in dump([index_of(path, padding=80)], DumpOptions()))
    assert lines(index_of(path))[1:] == [f"{index} is empty."]


def findings(path: Path) -> str:
    return "\n".join(entry.line() for entry in dump([path], DumpOptions()) if entry.kind == "finding")


def test_index_entries_that_disagree_with_the_log(log: tuple[Path, int]) -> None:
    path, size = log
    index = index_of(path, (5, size), (7, 2 * size), (11, 3 * size + 4), (30, 99 * size), (12, 4 * size))
    assert findings(index) == (
        f"Mismatches in :{index}\n  Index offset: 412, log offset: 414\n  Index offset: 407, log offset: 408"
    )
    assert [position for position, _ in damages(index)] == [16, 24]


def test_time_index_entries_that_disagree_with_the_log(log: tuple[Path, int]) -> None:
    path, size = log
    index_of(path, (5, size), (8, 2 * size))
    good = index_of(path, (1010, 5), (1020, 8), (1040, 14), padding=120, form=">qi")
    assert lines(good)[-1] == "timestamp: 1040 offset: 414"
    assert not any(entry.is_damage for entry in dump([good], DumpOptions()))
    bad = index_of(path, (1010, 5), (1011, 8), (1030, 10), (1030, 11), (1040, 99), form=">qi")
    assert findings(bad) == (
        f"Found timestamp mismatch in :{bad}\n  Index timestamp: 1011, log timestamp: 1020\n"
        f"Found out of order timestamp in :{bad}\n  Index timestamp: 1030, Previously indexed timestamp: 1030\n"
        f"The following indexed offsets are not found in :{bad}\n"
        "Indexed offset: 410, found log offset: 411\nIndexed offset: 499, found log offset: -1"
    )


def test_insane_indexes(log: tuple[Path, int]) -> None:
    path, _ = log
    sane = DumpOptions(index_sanity_check=True)
    assert damages(index_of(path, (5, 100), padding=3), sane) == [(8, "11 bytes are not a multiple of 8")]
    assert damages(index_of(path, (5, 100), (-1, 100)), sane)[0][0] == 8
    assert damages(index_of(path, (2000, 5), (1000, 8), form=">qi"), sane)[0][0] == 12


def test_a_file_that_does_not_belong_to_a_log(write: Write) -> None:
    for name in ("checkpoint", "00000000000000000000.log.deleted", "copy.index", ".timeindex"):
        path = write(b"anything", name=name)
        assert lines(path) == [f"Dumping {path}", f"Ignoring unknown file {path}"]
    assert kinds(write(batch(0), name="copy.log"), DumpOptions()) == ["file", "batch"]


def test_a_batch_that_compaction_has_emptied_still_has_its_timestamp(write: Write) -> None:
    (full,) = iter_batches(batch(0))
    assert isinstance(full, RecordBatch)
    write(empty_batch(full))
    index = write(pack(">qi", full.max_timestamp, 2), name="00000000000000000000.timeindex")
    assert [entry.line() for entry in dump([index], DumpOptions(verify=True)) if entry.is_damage] == []


def test_transactions_and_producers(write: Write) -> None:
    aborted = write((DUMPS / "transactions.txnindex").read_bytes(), name="00000000000000000000.txnindex")
    assert lines(aborted)[1:] == ["version: 0 producerId: 0 firstOffset: 4 lastOffset: 7 lastStableOffset: 8"]
    snapshot = write((DUMPS / "transactions.snapshot").read_bytes(), name="00000000000000000012.snapshot")
    assert lines(snapshot)[1:] == [
        "producerId: 0 producerEpoch: 0 coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty lastTimestamp: "
        "1795269696077 firstSequence: 6 lastSequence: 8 lastOffset: 10 offsetDelta: 2 timestamp: 1795269696077"
    ]


def test_a_producer_of_which_only_a_marker_is_known(tmp_path: Path) -> None:
    state, path = ProducerState(0), tmp_path / "00000000000000000012.snapshot"
    state.add_marker(3, 1, EndTransactionMarker(ControlType.COMMIT, 4), 99, 99)
    state.write_snapshot(path)
    assert lines(path)[1:] == [
        "producerId: 3 producerEpoch: 1 coordinatorEpoch: 4 currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 99"
    ]


def test_damaged_transactions_and_producers(write: Write) -> None:
    data = (DUMPS / "transactions.txnindex").read_bytes()
    assert damages(write(data, b"abc", name="00000000000000000000.txnindex"))[0][0] == len(data)
    entry = write(data, data, name="00000000000000000000.txnindex")  # The index contains the same marker twice.
    assert [position for position, _ in damages(entry)] == [len(data)]
    data = (DUMPS / "transactions.snapshot").read_bytes()
    for position in range(len(data)):
        flipped = bytearray(data)
        flipped[position] ^= 1
        assert damages(write(flipped, name="00000000000000000012.snapshot"))
    for size in range(len(data)):
        assert damages(write(data[:size], name="00000000000000000012.snapshot"))


def test_a_directory_segment_by_segment(write: Write, tmp_path: Path) -> None:
    for name in ("00000000000000000009.log", "00000000000000000009.index", "00000000000000000000.timeindex"):
        write(name=name)
    for name in ("partition.metadata", "00000000000000000000.log", "leader-epoch-checkpoint", "0.log.deleted"):
        write(name=name)
    files = ["00.log", "00.timeindex", "09.log", "09.index", "leader-epoch-checkpoint", "partition.metadata"]
    assert [path.name.removeprefix(18 * "0") for path in log_files(tmp_path)] == files


def test_a_data_directory_partition_by_partition(write: Write, tmp_path: Path) -> None:
    for name in ("b-0", "a-1", "a-1/deeper-0", "no_partition"):
        (tmp_path / name).mkdir()
        write(name=f"{name}/00000000000000000000.log")
    write(name="meta.properties")
    (tmp_path / "a-1" / "00000000000000000001.log").mkdir()
    found = [str(path.relative_to(tmp_path).parent) for path in log_files(tmp_path)]
    assert found == [".", "a-1", "b-0"]


def verified(path: Path) -> list[Entry]:
    return list(dump([path], DumpOptions(verify=True)))


def test_verify_shows_damage_only(write: Write) -> None:
    path = write(batch(0), batch(7))
    (summary,) = verified(path)
    assert summary.line() == f"{path}: {2 * len(batch(0))} bytes, 2 batches, 6 records, no damage"
    damage, summary = verified(write(batch(0), bytes(80)))
    assert damage.kind == "damage"
    assert summary.line().endswith("1 batch, 3 records, damage: 1")


def test_verify_sums_up_several_files(write: Write, tmp_path: Path) -> None:
    log = write(batch(0), batch(3))
    index_of(log, (5, len(batch(0))))
    *files, total = verified(tmp_path)
    assert len(files) == 2
    assert total.line() == f"2 files: {2 * len(batch(0)) + 8} bytes, 2 batches, 6 records, 1 entry, no damage"
    index_of(log, (4, len(batch(0))))
    assert [entry.line() for entry in verified(tmp_path) if entry.kind == "verified"][-1].endswith("damage: 1")


def test_offsets_that_do_not_grow(write: Write) -> None:
    name = "00000000000000000400.log"
    assert damages(write(batch(400), batch(402), batch(405), name=name), DumpOptions()) == [
        (len(batch(0)), "offset 402 does not follow 402")
    ]
    assert damages(write(batch(399), name=name)) == [(0, "offset 399 does not follow 399")]
    shuffled = encode_batch([Record(400), Record(403), Record(402), Record(404)], keep_offsets=True)
    assert damages(write(shuffled, name=name)) == [(0, "offset 402 does not follow 403 in the batch")]
    assert damages(write(batch(400), name="copy.log")) == []


def test_a_file_that_cannot_be_read_does_not_hide_the_others(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = write(batch(0))
    write(batch(3), name="00000000000000000003.log")
    open_file = Path.open

    def fail(path: Path, *arguments: str) -> object:
        if path == broken:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return open_file(path, *arguments)

    monkeypatch.setattr(Path, "open", fail)
    damage, first, second, total = verified(tmp_path)
    assert damage.line() == f"{broken}: damaged at position 0: the file cannot be read: Input/output error"
    assert first.line().endswith("damage: 1") and second.line().endswith("no damage")
    assert total.line().endswith("1 batch, 3 records, damage: 1")
    with pytest.raises(OSError, match="Input/output"):
        lines(broken)


def test_an_index_whose_log_is_missing(write: Write) -> None:
    for name in ("00000000000000000000.index", "00000000000000000000.timeindex"):
        (damage,) = damages(write(pack(">iii", 1, 2, 3), name=name), DumpOptions())
        assert "00000000000000000000.log is missing" in damage[1]


@pytest.mark.parametrize("form", [">ii", ">qi"])
def test_bytes_after_the_entries_of_an_index(log: tuple[Path, int], form: str) -> None:
    path, size = log
    entry = (5, size) if form == ">ii" else (1010, 5)
    good = index_of(path, entry, padding=48, form=form)
    assert damages(good) == []
    width = good.stat().st_size - 48
    for tail in (b"ab", bytes(3), bytes(240) + b"x" + bytes(239)):
        good.write_bytes(pack(form, *entry) + tail)
        assert [position for position, _ in damages(good)] == [width]


@given(st.binary(max_size=300), st.sampled_from([".log", ".index", ".timeindex", ".txnindex", ".snapshot"]))
def test_random_bytes_are_dumped_without_an_exception(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, suffix: str
) -> None:
    log = tmp_path_factory.mktemp("junk") / "00000000000000000000.log"
    log.write_bytes(batch(0) + junk)
    path = log.with_suffix(suffix)
    path.write_bytes(junk if suffix != ".log" else batch(0) + junk)
    for options in (DATA, DumpOptions(index_sanity_check=True), DumpOptions(verify=True)):
        assert all(json.dumps(as_json_fields(entry)) and entry.line() for entry in dump([path], options))


@given(st.integers(0, 400), st.integers(0, 255), st.sampled_from(Codec))
def test_any_byte_may_be_wrong(
    tmp_path_factory: pytest.TempPathFactory, position: int, byte: int, codec: Codec
) -> None:
    data = bytearray(batch(0) + assign_offsets(encode_message_set(RECORDS, 1, Codec.GZIP), 3).data + batch(6, codec))
    data[position % len(data)] = byte
    path = tmp_path_factory.mktemp("flip") / "00000000000000000000.log"
    path.write_bytes(data)
    assert all(json.dumps(as_json_fields(entry)) and entry.line() for entry in dump([path], DATA))
