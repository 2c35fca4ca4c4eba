"""Tests of the hex view of a file: each byte belongs to exactly one field."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.records import Codec, Record, assign_offsets, encode_batch, encode_message_set
from hmb.storage.dump.entries import DumpOptions, View
from hmb.storage.dump.hexadecimal import FieldEntry
from hmb.storage.dump.log_files import as_json_fields, dump

DUMPS = Path(__file__).parent / "dumps"
SEGMENTS = Path(__file__).parents[2] / "records" / "segments"
HEX = DumpOptions(view=View.HEX)
RECORDS = [Record(timestamp=1000 + n, key=b"k%d" % n, value=b"value %d" % n) for n in range(3)]
LOG = "00000000000000000000.log"


def fields(path: Path) -> list[FieldEntry]:
    return [entry for entry in dump([path], HEX) if isinstance(entry, FieldEntry)]


def covers(path: Path) -> bool:
    """Return whether the fields cover the file without gaps or overlaps, and contain the same bytes as the file."""
    found, content = b"", path.read_bytes()
    for entry in fields(path):
        if not entry.is_inside:
            assert entry.position == len(found)
            found += bytes(entry.data) or bytes(entry.size)
    return found == content


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / LOG
    old = assign_offsets(encode_message_set(RECORDS, 1, Codec.GZIP), 3).data
    path.write_bytes(encode_batch(RECORDS) + old + encode_batch(RECORDS, base_offset=6, codec=Codec.ZSTD))
    return path


def test_a_log(log: Path) -> None:
    lines = "\n".join(entry.line() for entry in dump([log], HEX)).split("\n")
    assert lines[1] == "000000  00 00 00 00 00 00 00 00                          batches[0].base_offset = 0"
    assert "000042  6b 30                                            batches[0].records[0].key = b'k0'" in lines
    assert "  000010  01                                               messages[1].messages[0].magic = 1" in lines
    assert covers(log)


@pytest.mark.parametrize("path", sorted(SEGMENTS.glob("*.log")), ids=lambda path: path.stem)
def test_segments_of_other_brokers(path: Path) -> None:
    assert covers(path)
    assert not any(entry.is_damage for entry in dump([path], HEX))


def test_json(log: Path) -> None:
    found = {str(entry.field): as_json_fields(entry) for entry in fields(log)}
    assert found["batches[0].records[1].key"] == {
        "type": "field",
        "position": 61 + 16 + 5,
        "size": 2,
        "field": "batches[0].records[1].key",
        "value": "k1",
        "bytes": "6b31",
        "is_inside": False,
    }
    assert (found["batches[0].attributes"]["value"], found["batches[0].attributes"]["meaning"]) == (
        0,
        "none, CreateTime",
    )
    assert "value" not in found["batches[2].records"]


def test_long_values_are_cut_in_the_text_but_not_in_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(encode_batch([Record(value=b"x" * 1000)]))
    (value,) = [entry for entry in fields(path) if entry.field.endswith(".value")]
    assert len(value.line().split("\n")[0]) < 200
    assert covers(path)


def test_a_damaged_batch_is_shown_as_far_as_it_goes(log: Path) -> None:
    content = bytearray(log.read_bytes())
    content[61] = 0x7E  # the length of the first record
    log.write_bytes(content)
    names = [entry.field for entry in fields(log)]
    assert "batches[0].unreadable" in names and "messages[1].offset" in names
    assert covers(log)
    assert [entry.kind for entry in dump([log], HEX) if entry.is_damage] == ["damage", "damage"]


def test_zeros_are_one_line(log: Path, tmp_path: Path) -> None:
    log.write_bytes(log.read_bytes() + bytes(1 << 20))
    assert fields(log)[-1].line().split() == [f"{log.stat().st_size - (1 << 20):06x}", "zeros", "=", str(1 << 20)]
    index = tmp_path / "00000000000000000400.index"
    index.write_bytes(pack(">ii", 5, 99) + bytes(800))
    assert [(entry.field, str(entry.value)) for entry in fields(index)] == [
        ("entries[0].relative_offset", "5  -> 405"),
        ("entries[0].position", "99"),
        ("zeros", "800"),
    ]


def test_time_index_transactions_producers(tmp_path: Path) -> None:
    files = {
        "00000000000000000400.timeindex": pack(">qi", 1000, 5) + b"abc",
        "00000000000000000000.txnindex": (DUMPS / "transactions.txnindex").read_bytes(),
        "00000000000000000012.snapshot": (DUMPS / "transactions.snapshot").read_bytes(),
        "leader-epoch-checkpoint": b"0\n1\n0 0\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        assert covers(tmp_path / name)
    found = {entry.field: entry.value for path in files for entry in fields(tmp_path / path)}
    assert str(found["entries[0].timestamp"]) == "1000  1970-01-01T00:00:01.000Z"
    assert (found["transactions[0].last_offset"], found["producers[0].last_sequence"]) == (7, 8)
    assert found["lines[2]"] == b"0 0\n"


@given(st.binary(max_size=300), st.sampled_from([".log", ".index", ".timeindex", ".txnindex", ".snapshot"]))
def test_any_bytes_are_covered(tmp_path_factory: pytest.TempPathFactory, junk: bytes, suffix: str) -> None:
    path = tmp_path_factory.mktemp("junk") / f"{0:020d}{suffix}"
    path.write_bytes(encode_batch(RECORDS) + junk if suffix == ".log" else junk)
    assert covers(path)


@given(st.integers(0, 400), st.integers(0, 255), st.sampled_from(Codec))
def test_any_byte_may_be_wrong(
    tmp_path_factory: pytest.TempPathFactory, position: int, byte: int, codec: Codec
) -> None:
    old = assign_offsets(encode_message_set(RECORDS, 1, Codec.GZIP), 3).data
    data = bytearray(encode_batch(RECORDS) + old + encode_batch(RECORDS, base_offset=6, codec=codec))
    data[position % len(data)] = byte
    path = tmp_path_factory.mktemp("flip") / LOG
    path.write_bytes(data)
    assert covers(path)
    assert all(entry.line() for entry in dump([path], DumpOptions(view=View.TREE)))
