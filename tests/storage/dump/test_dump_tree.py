"""Tests of the tree view: a segment contains batches, and a batch contains records.

The sizes of the batches add up to the size of the segment. The sizes of the records add up to the uncompressed sizes of
the batches.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hmb.records import Codec, Record, assign_offsets, encode_batch, encode_message_set
from hmb.storage.dump.entries import DumpOptions, Entry, View
from hmb.storage.dump.log_files import as_json_fields, dump
from hmb.storage.dump.tree import BatchNode, RecordNode, SegmentNode

SEGMENTS = Path(__file__).parents[2] / "records" / "segments"
TREE = DumpOptions(view=View.TREE)
RECORDS = [
    Record(timestamp=5, key=b"k", value=b"value"),
    Record(timestamp=5, value=None, headers=(("h", b"1"), ("i", None))),
    Record(timestamp=5, key=b"", value=b"x"),
]
BATCH = encode_batch(RECORDS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "00000000000000000000.log"


def tree(path: Path) -> list[Entry]:
    return list(dump([path], TREE))


def test_a_segment_of_batches(path: Path) -> None:
    compressed = encode_batch(RECORDS[:1], base_offset=3, codec=Codec.GZIP)
    path.write_bytes(BATCH + compressed)
    assert "\n".join(entry.line() for entry in tree(path)) == (
        f"{path}: {len(BATCH + compressed)} bytes, offsets 0..3, 2 batches, 4 records\n"
        f"  batch at 0: {len(BATCH)} bytes, offsets 0..2, 3 records\n"
        "    record 0: 13 bytes, key 1, value 5\n"
        "    record 1: 14 bytes, no key, no value, 2 headers\n"
        "    record 2: 8 bytes, key 0, value 1\n"
        f"  batch at {len(BATCH)}: {len(compressed)} bytes, offset 3, 1 record"
        f" in {len(compressed) - 61} bytes of gzip, 13 decompressed\n"
        "    record 3: 13 bytes, key 1, value 5"
    )


def test_old_messages(path: Path) -> None:
    plain = bytes(assign_offsets(encode_message_set(RECORDS, 0), 0).data)
    wrapper = bytes(assign_offsets(encode_message_set(RECORDS, 1, Codec.GZIP), 3).data)
    path.write_bytes(plain)
    assert tree(path)[0].line().endswith("offsets 0..2, 3 batches, 3 records")
    path.write_bytes(plain + wrapper)
    segment, *_, node, one, two, three = tree(path)
    # A wrapper is a message that contains compressed messages. Its header does not contain the number of these
    # messages, so this line has no record count.
    assert segment.line().endswith("offsets 0..5, 4 batches")
    assert isinstance(node, BatchNode) and node.line().startswith(f"  wrapper at {len(plain)}: ")
    assert (node.first_offset, node.last_offset, node.records, node.codec) == (3, 5, 3, "gzip")
    assert [entry.line().split(":")[0] for entry in (one, two, three)] == [f"    record {n}" for n in (3, 4, 5)]


@pytest.mark.parametrize("segment", sorted(SEGMENTS.glob("*.log")), ids=lambda path: path.stem)
def test_sizes_add_up(segment: Path) -> None:
    head, *entries = tree(segment)
    assert isinstance(head, SegmentNode)
    batches = [entry for entry in entries if isinstance(entry, BatchNode)]
    assert sum(batch.size for batch in batches) == head.size == segment.stat().st_size
    sizes = [entry.size for entry in entries if isinstance(entry, RecordNode)]
    assert sum(sizes) == sum(batch.uncompressed_size for batch in batches)
    assert len(sizes) == sum(batch.records for batch in batches)


def test_damage_and_nothing(path: Path) -> None:
    path.write_bytes(b"")
    assert [entry.line() for entry in tree(path)] == [f"{path}: 0 bytes, no offsets, 0 batches, 0 records"]
    damaged = bytearray(BATCH)
    damaged[-2] ^= 1
    path.write_bytes(BATCH + damaged + b"torn")
    assert [entry.kind for entry in tree(path) if entry.kind != "record"] == [
        "segment",
        "batch",
        "damage",
        "batch",
        "note",
        "damage",
    ]


def test_json_and_other_files(path: Path) -> None:
    index = path.with_suffix(".index")
    index.write_bytes(bytes(24))
    (node,) = tree(index)
    assert node.line() == f"{index}: 24 bytes"
    path.write_bytes(BATCH)
    fields = as_json_fields(tree(path)[2])
    assert fields == {"type": "record", "offset": 0, "size": 13, "key_size": 1, "value_size": 5, "headers": 0}
