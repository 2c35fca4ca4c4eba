"""Tests for the second exercise of lab 6.

The tests read a log file and an index file that a real broker has written.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""

import struct

import pytest

import hmb

INTERVAL = 300  # bytes: the broker writes an index entry for a batch when more than 300 bytes follow the last entry


def entries_of(index):
    return list(struct.iter_unpack(">ii", index))


@pytest.fixture
def segment(rng):
    """Return the bytes of a segment's log file and index file, and a list that describes the batches.

    For each batch, the list contains a tuple (position, first, last, end). The batch begins at byte `position` of
    the log file and ends before byte `end`. `first` and `last` are the offsets of the batch's first and last
    record.
    """
    with hmb.Broker(config={"log.index.interval.bytes": INTERVAL}) as broker:
        broker.create_topic("orders")
        for _ in range(60):
            broker.produce("orders", *(rng.randbytes(rng.randrange(60)) for _ in range(rng.randrange(1, 6))))
        folder = broker.data_dir / "orders-0"
        log, index = (next(folder.glob(f"*.{kind}")).read_bytes() for kind in ("log", "index"))
    batches, position = [], 0
    while position < len(log):
        first, length = struct.unpack_from(">qi", log, position)
        last = first + struct.unpack_from(">i", log, position + 23)[0]
        batches.append((position, first, last, position + 12 + length))
        position += 12 + length
    return log, index, batches


def check_index(found, expected, case):
    assert isinstance(found, bytes | bytearray), f"{case} returns {found!r} (right: bytes)"
    assert len(found) % 8 == 0, f"{case} returns {len(found)} bytes; an entry has 8 bytes"
    pairs = zip(entries_of(found), entries_of(expected), strict=False)
    for number, (given, right) in enumerate(pairs):
        assert given == right, f"{case}: entry {number} (relative offset, position) is {given} (right: {right})"
    counts = len(found) // 8, len(expected) // 8
    assert counts[0] == counts[1], f"{case} has {counts[0]} entries (right: {counts[1]})"


def test_a_real_index(answer, segment):
    """`build_index` returns exactly the bytes that the broker has written."""
    log, index, _ = segment
    check_index(answer.build_index(log, 0, INTERVAL), index, f"build_index(log, 0, {INTERVAL})")


def expected_index(batches, base, interval):
    entries, since = [], 0
    for position, _, last, end in batches:
        if since > interval:
            entries.append((last - base, position))
            since = 0
        since += end - position
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def test_intervals(answer, segment):
    """`build_index` works with any `interval`, and writes offsets relative to the base offset of the segment."""
    log, _, batches = segment
    for interval in (0, 100, 700, 10**6):
        expected = expected_index(batches, 0, interval)
        check_index(answer.build_index(log, 0, interval), expected, f"build_index(log, 0, {interval})")
    moved = bytearray(log)
    for position, first, _, _ in batches:
        struct.pack_into(">q", moved, position, first + 5000)
    case = f"a segment with the base offset 5000: build_index(log, 5000, {INTERVAL})"
    check_index(answer.build_index(bytes(moved), 5000, INTERVAL), expected_index(batches, 0, INTERVAL), case)


def test_a_cut_log(answer, segment, rng):
    """`build_index` stops at an incomplete batch at the end of the log."""
    log, _, batches = segment
    for _ in range(20):
        number = rng.randrange(len(batches))
        cut = rng.randrange(batches[number][0] + 1, batches[number][3])
        expected = expected_index(batches[:number], 0, 50)
        case = f"the log is cut at byte {cut}, inside the batch at {batches[number][0]}: build_index(log, 0, 50)"
        check_index(answer.build_index(log[:cut], 0, 50), expected, case)


def test_truncating_the_log(answer, segment):
    """`truncate` removes the first batch that contains an offset at or above `offset`, and all batches after it."""
    log, index, batches = segment
    for position, first, last, _ in batches[::3]:
        for offset in {first, last}:
            found = answer.truncate(log, index, 0, offset)[0]
            case = f"the batch at {position} has the offsets {first} to {last}: truncate(..., {offset})"
            assert len(found) == position, f"{case} cuts the log at byte {len(found)} (right: {position})"
            assert found == log[:position], f"{case} changes bytes of the log that stay"
    found = answer.truncate(log, index, 0, batches[-1][2] + 1)[0]
    missing = len(log) - len(found)
    assert found == log, f"truncate at the end of the log removes nothing, but {missing} bytes are missing"


def test_truncating_the_index(answer, segment):
    """`truncate` removes the index entries of the removed batches, and no other entries."""
    log, index, batches = segment
    for position, first, last, _ in batches:
        kept = [entry for entry in entries_of(index) if entry[1] < position]
        expected = b"".join(struct.pack(">ii", *entry) for entry in kept)
        case = f"the batch at {position} has the offsets {first} to {last}: the index of truncate(..., {last})"
        check_index(answer.truncate(log, index, 0, last)[1], expected, case)
    moved = bytearray(log)
    for position, first, _, _ in batches:
        struct.pack_into(">q", moved, position, first + 5000)
    position, first, _, _ = batches[40]
    expected = b"".join(struct.pack(">ii", *entry) for entry in entries_of(index) if entry[1] < position)
    case = f"a segment with the base offset 5000: the index of truncate(..., 5000, {first + 5000})"
    check_index(answer.truncate(bytes(moved), index, 5000, first + 5000)[1], expected, case)
