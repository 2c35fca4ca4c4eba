"""Tests for the requirements of lab 6.

The tests read a log file and an index file that a real broker has written.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import struct
from typing import NamedTuple

import pytest

import hmb

INTERVAL = 300  # bytes: the broker writes an index entry for about every 300 bytes of the log file


class Files(NamedTuple):
    """The bytes of a log file and of its index file, with the entries and batches decoded from them."""

    log: bytes
    index: bytes
    entries: list  # the right result of `read_index`: pairs (offset, position)
    batches: list  # a triple (position, first offset, last offset) for each batch


def read_files(rng):
    """Let a broker write 60 random batches to a partition, and return the contents of the partition's files."""
    with hmb.Broker(config={"log.index.interval.bytes": INTERVAL}) as broker:
        broker.create_topic("orders")
        for _ in range(60):
            broker.produce("orders", *(rng.randbytes(rng.randrange(60)) for _ in range(rng.randrange(1, 6))))
        directory = broker.data_dir / "orders-0"
        log = next(directory.glob("*.log")).read_bytes()
        index = next(directory.glob("*.index")).read_bytes()
    batches, position = [], 0
    while position < len(log):
        first, length = struct.unpack_from(">qi", log, position)
        batches.append((position, first, first + struct.unpack_from(">i", log, position + 23)[0]))
        position += 12 + length
    return Files(log, index, list(struct.iter_unpack(">ii", index)), batches)


@pytest.fixture
def files(rng):
    return read_files(rng)


def test_reading(answer, files):
    """`read_index` decodes all entries of a real index."""
    found = answer.read_index(files.index[:8], 0)
    case = f"the bytes {files.index[:8].hex()} are the entry {files.entries[0]}"
    assert found == files.entries[:1], f"{case}; read_index returns {found!r}"
    found = answer.read_index(files.index, 0)
    count = len(files.entries)
    assert found == files.entries, f"the index has {count} entries; read_index returns {len(found)}, or wrong ones"
    found = answer.read_index(files.index[:8], 5000)
    expected = [(5000 + files.entries[0][0], files.entries[0][1])]
    assert found == expected, f"in segment 5000 the first entry is {expected[0]}; read_index returns {found!r}"


def test_lookup(answer, files):
    """`lookup` returns the right position for offsets before, at, between and after the entries."""
    cases = [[], [(9, 100)], [(9, 100), (19, 250)], files.entries]
    for entries in cases:
        offsets = {0, 8, 9, 10, 18, 19, 20, 1000}
        offsets |= {each for offset, _ in entries for each in (offset - 1, offset, offset + 1)}
        for offset in sorted(offsets):
            expected = max((position for each, position in entries if each <= offset), default=0)
            found = answer.lookup(entries, offset)
            shown = entries if len(entries) < 4 else f"{len(entries)} entries from {entries[0]} to {entries[-1]}"
            assert found == expected, f"lookup({shown}, {offset}) returns {found!r} (right: {expected})"


class CountingList(list):
    """A list that counts how many of its items are read."""

    reads = 0

    def __getitem__(self, index):
        self.reads += 1
        return super().__getitem__(index)

    def __iter__(self):
        self.reads += len(self)
        return super().__iter__()


def test_binary_search(answer, rng):
    """`lookup` reads at most 12 entries of an index with 1,000 entries.

    Each access `entries[i]` counts as one read. A loop over `entries` counts as 1,000 reads.
    """
    for offset in [0, 5000, 9999, rng.randrange(10_000)]:
        entries = CountingList((10 * number + 9, 100 * number) for number in range(1000))
        answer.lookup(entries, offset)
        assert entries.reads <= 12, f"1,000 entries: lookup of offset {offset} reads {entries.reads} entries"


def test_find_batch(answer, files):
    """`find_batch` returns the position of the batch that contains `offset`.

    The argument `position` is where the function starts to read: the beginning of this batch or of an earlier
    batch.
    """
    for number, (position, first, last) in enumerate(files.batches):
        for begin in (position, files.batches[max(0, number - 3)][0], 0):
            for offset in {first, last}:
                found = answer.find_batch(files.log, begin, offset)
                where = f"the batch at position {position} has the offsets {first} to {last}"
                assert found == position, f"{where}; find_batch(log, {begin}, {offset}) returns {found!r}"


def test_the_end(answer, files):
    """`find_batch` returns `None` if no complete batch contains the offset.

    The last batch can be incomplete. Even its header can be cut.
    """
    position, first, last = files.batches[-1]
    found = answer.find_batch(files.log, 0, last + 1)
    case = f"the log ends at offset {last}"
    assert found is None, f"{case}; find_batch(log, 0, {last + 1}) returns {found!r} (right: None)"
    before, (gap, first_missing, last_missing) = files.batches[29], files.batches[30]
    compacted = files.log[:gap] + files.log[files.batches[31][0] :]
    for wanted in (first_missing, last_missing):
        for begin in (0, before[0], gap):
            found = answer.find_batch(compacted, begin, wanted)
            case = f"compaction has removed the batch with the offsets {first_missing} to {last_missing}"
            right = f"(right: None; the batch at {gap} begins with offset {last_missing + 1})"
            assert found is None, f"{case}; find_batch(log, {begin}, {wanted}) returns {found!r} {right}"
    for missing in (1, 30, len(files.log) - position - 5):
        found = answer.find_batch(files.log[:-missing], 0, first)
        case = f"the last {missing} bytes of the log are missing"
        assert found is None, f"{case}; find_batch(log, 0, {first}) returns {found!r}"


def test_wrong_entries(answer, files, rng):
    """`wrong_entries` returns all numbers `i` for which `entries[i]` has a wrong offset or position."""
    found = answer.wrong_entries(files.log, files.entries)
    assert list(found) == [], f"all entries are right; wrong_entries returns {found!r}"
    number = len(files.entries) - 1
    offset = files.entries[number][0]
    for position in (len(files.log) - 5, len(files.log), 2**30):
        found = answer.wrong_entries(files.log, [*files.entries[:-1], (offset, position)])
        case = f"the log has {len(files.log)} bytes, and entry {number} is {(offset, position)}"
        assert list(found) == [number], f"{case}; wrong_entries returns {found!r} (right: [{number}])"
    for _ in range(40):
        number = rng.randrange(len(files.entries))
        offset, position = files.entries[number]
        flipped = position ^ (1 << rng.randrange(12))
        damaged = rng.choice([(offset + 1, position), (offset, flipped), (offset - 1, position)])
        entries = [*files.entries[:number], damaged, *files.entries[number + 1 :]]
        found = answer.wrong_entries(files.log, entries)
        case = f"entry {number} is {damaged} instead of {files.entries[number]}"
        assert list(found) == [number], f"{case}; wrong_entries returns {found!r}"
