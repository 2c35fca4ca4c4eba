"""Tests for the requirements of lab 12.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import zlib


def test_expired(answer, rng):
    """`expired` counts the segments that may be deleted.

    It begins with the oldest segment, and stops at the first segment that must stay.
    """
    cases = [([10, 20, 30], 25, 10, 1), ([10, 20, 30], 20, 10, 0), ([10, 20, 30], 41, 10, 2), ([50, 10, 60], 45, 10, 0)]
    for _ in range(100):
        segments = [rng.randrange(100) for _ in range(rng.randrange(2, 8))]
        now, retention = rng.randrange(150), rng.randrange(60)
        expected = 0
        while expected < len(segments) - 1 and segments[expected] < now - retention:
            expected += 1
        cases.append((segments, now, retention, expected))
    for segments, now, retention, expected in cases:
        found = answer.expired(segments, now, retention)
        assert found == expected, f"expired({segments}, {now}, {retention}) returns {found!r} (right: {expected})"


def test_the_active_segment(answer):
    """`expired` does not count the active segment, even if this segment has expired."""
    for segments in ([5], [5, 6], [5, 6, 7]):
        found = answer.expired(segments, 1000, 10)
        expected = len(segments) - 1
        assert found == expected, f"expired({segments}, 1000, 10) returns {found!r} (right: {expected})"


def expected_of(records, now, delete_retention):
    """Return the records that compaction must keep, computed with a simple but slow method."""
    kept = []
    for number, (offset, key, value, timestamp) in enumerate(records):
        is_replaced = key is None or any(each[1] == key for each in records[number + 1 :])
        is_old = value is None and timestamp < now - delete_retention
        if number == len(records) - 1 or not (is_replaced or is_old):
            kept.append((offset, key, value, timestamp))
    return kept


def compare(answer, records, now, delete_retention):
    expected = [record[0] for record in expected_of(records, now, delete_retention)]
    result = answer.compact(list(records), now, delete_retention)
    found = [record[0] for record in result]
    case = f"compact({records}, {now}, {delete_retention})"
    assert found == expected, f"{case} keeps the offsets {found} (right: {expected})"
    changed = [tuple(record) for record in result if tuple(record) not in records]
    assert not changed, f"{case} changes records: {changed}"


def test_the_last_of_each_key(answer, rng):
    """`compact` keeps the last record of each key, with its offset."""
    compare(answer, [(0, b"a", b"1", 0), (1, b"a", b"2", 0)], 0, 10)
    compare(answer, [(0, b"a", b"1", 0), (1, b"b", b"2", 0), (2, b"a", b"3", 0), (3, b"c", b"4", 0)], 0, 10)
    compare(answer, [(0, None, b"1", 0), (1, b"a", b"2", 0), (5, b"b", b"3", 0)], 0, 10)
    for _ in range(100):
        count = rng.randrange(1, 12)
        compare(answer, [(2 * number, rng.choice([b"a", b"b", b"c", None]), b"v", 0) for number in range(count)], 0, 10)
    assert list(answer.compact([], 0, 10)) == [], "compact([], 0, 10) returns an empty list"


def test_tombstones(answer, rng):
    """`compact` keeps a tombstone for the time `delete_retention`, and then drops it.

    It never drops the last record of the log.
    """
    compare(answer, [(0, b"a", b"1", 0), (1, b"a", None, 0), (2, b"b", b"2", 0)], 5, 10)
    compare(answer, [(0, b"a", b"1", 0), (1, b"a", None, 0), (2, b"b", b"2", 0)], 11, 10)
    compare(answer, [(0, b"a", b"1", 0), (1, b"a", None, 0)], 100, 10)
    for _ in range(200):
        count = rng.randrange(1, 10)
        records = [
            (number, rng.choice([b"a", b"b"]), rng.choice([b"v", None]), rng.randrange(20)) for number in range(count)
        ]
        compare(answer, records, rng.randrange(40), 10)


def frame(payload):
    return len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big") + payload


def test_cuts(answer, rng):
    """A crash can cut off the end of a file at any byte. `recover` then returns all records that are still complete."""
    payloads = [b"tea", b"", rng.randbytes(20), b"end"]
    ends = [11, 19, 47, 58]
    data = b"".join(map(frame, payloads))
    for cut in range(len(data) + 1):
        expected = [payload for payload, end in zip(payloads, ends, strict=True) if end <= cut]
        found = list(answer.recover(data[:cut]))
        case = f"{cut} of {len(data)} bytes of four records"
        assert found == expected, f"{case}: recover returns {found!r} (right: {expected!r})"


def test_damage(answer, rng):
    """`recover` stops at the first damaged record, and does not raise an exception."""
    payloads = [b"first", b"second", b"third"]
    data = b"".join(map(frame, payloads))
    ends = [13, 27, 40]
    for place in range(len(data)):
        for value in {data[place] ^ 1, data[place] ^ 0x80, 0xFF - data[place]}:
            damaged = data[:place] + bytes([value]) + data[place + 1 :]
            expected = payloads[: sum(end <= place for end in ends)]
            case = f"byte {place} of three records is {value:#04x} instead of {data[place]:#04x}"
            try:
                found = list(answer.recover(damaged))
            except Exception as error:
                raise AssertionError(f"{case}: recover raises {error!r}") from error
            assert found == expected, f"{case}: recover returns {found!r} (right: {expected!r})"
    assert list(answer.recover(rng.randbytes(7))) == [], "recover of 7 bytes returns an empty list"
