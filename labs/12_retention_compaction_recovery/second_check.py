"""Tests for the second exercise of lab 12.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""


def size_of(records):
    return sum(len(key) + len(value) for _, key, value in records)


def random_log(rng, length, keys="abcd"):
    """Return a log of records (offset, key, value) with some offsets missing."""
    offsets = sorted(rng.sample(range(2 * length), length))
    return [(offset, rng.choice(keys).encode(), bytes(rng.randrange(1, 9))) for offset in offsets]


def shown(records):
    return [(offset, key.decode()) for offset, key, _ in records]


def test_ratio(answer, rng):
    """`dirty_ratio` returns the number of bytes in the dirty records, divided by the number of bytes in all records.

    A record is dirty if its offset is at least `checkpoint`.
    """
    log = [(0, b"a", b"123"), (4, b"b", b"1"), (6, b"a", b"12345")]
    for records, checkpoint, expected in ((log, 0, 1.0), (log, 4, 8 / 12), (log, 5, 0.5), (log, 7, 0.0), ([], 0, 0.0)):
        found = answer.dirty_ratio(list(records), checkpoint)
        assert found == expected, f"dirty_ratio({records}, {checkpoint}) returns {found!r} (right: {expected})"
    for _ in range(30):
        log, checkpoint = random_log(rng, 6), rng.randrange(13)
        expected = size_of([record for record in log if record[0] >= checkpoint]) / size_of(log)
        found = answer.dirty_ratio(list(log), checkpoint)
        assert abs(found - expected) < 1e-9, f"dirty_ratio({log}, {checkpoint}) returns {found!r} (right: {expected})"


def test_dirtiest(answer):
    """`dirtiest` returns the log with the greatest dirty ratio, or None if all ratios are below `min_ratio`."""
    log = [(0, b"a", b"1"), (1, b"b", b"2"), (2, b"c", b"3"), (3, b"d", b"4")]
    for checkpoints, min_ratio, expected in (
        ({"x": 2}, 0.5, "x"), ({"x": 3}, 0.5, None), ({"x": 3, "y": 1, "z": 2}, 0.1, "y"), ({}, 0.0, None),
        ({"x": 3, "y": 1, "z": 0}, 0.9, "z"),
    ):  # fmt: skip
        logs = {name: (list(log), checkpoint) for name, checkpoint in checkpoints.items()}
        found = answer.dirtiest(logs, min_ratio)
        case = f"four records of the same size, checkpoints {checkpoints}, minimum {min_ratio}"
        assert found == expected, f"{case}: dirtiest returns {found!r} (right: {expected!r})"


def compacted(records):
    latest = {key: offset for offset, key, _ in records}
    return [record for record in records if latest[record[1]] == record[0]]


def test_a_large_map(answer, rng):
    """`clean` stores the greatest offset of each key in a map.

    If all keys fit into the map, `clean` keeps only the last record of each key. The new checkpoint is then the end of
    the log.
    """
    for number in range(60):
        log = random_log(rng, 1 + number // 6)
        found, checkpoint = answer.clean(list(log), 0, 10)
        found, expected = [tuple(each) for each in found], compacted(log)
        case = f"the records (offset, key) {shown(log)}: clean(..., 0, 10)"
        assert found == expected, f"{case} keeps {shown(found)} (right: {shown(expected)})"
        end = log[-1][0] + 1
        assert checkpoint == end, f"{case} returns the checkpoint {checkpoint!r} (right: {end})"
    found = answer.clean([], 0, 10)
    assert tuple(found) == ([], 0), f"clean([], 0, 10) returns {found!r} (right: ([], 0))"


def expected_of(records, checkpoint, map_size):
    """Return the correct result of `clean`, computed with a simple but slow method."""
    dirty = [record for record in records if record[0] >= checkpoint]
    fits = [number for number in range(len(dirty) + 1) if len({key for _, key, _ in dirty[:number]}) <= map_size]
    mapped = dirty[: fits[-1]]
    latest = {key: offset for offset, key, _ in mapped}
    kept = [record for record in records if latest.get(record[1], record[0]) <= record[0]]
    return kept, mapped[-1][0] + 1 if mapped else checkpoint


def test_a_small_map(answer, rng):
    """If the map is full and the next record has a key that is not in the map, `clean` stops reading the log.

    `clean` then stores neither this record nor any later record in the map.
    """
    small = [(0, b"a", b"1"), (1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3")]
    for log, size in [(small, 2), (small, 1), *((random_log(rng, 3 + number // 8), 2) for number in range(80))]:
        found, checkpoint = answer.clean(list(log), 0, size)
        kept, end = expected_of(log, 0, size)
        found = [tuple(each) for each in found]
        case = f"the records (offset, key) {shown(log)}: clean(..., 0, {size})"
        assert found == kept, f"{case} keeps {shown(found)} (right: {shown(kept)})"
        assert checkpoint == end, f"{case} returns the checkpoint {checkpoint!r} (right: {end})"


def test_the_clean_part(answer, rng):
    """`clean` removes old records from the whole log, including records at offsets below `checkpoint`.

    `clean` reads the records from offset `checkpoint` on, and stores the greatest offset of each key in a map.
    A record is old if the map contains a greater offset for its key. For example, if the map contains offset 7
    for the key `tea`, `clean` removes all records with this key at offsets below 7.
    """
    log = [(0, b"a", b"1"), (1, b"b", b"1"), (2, b"c", b"1"), (3, b"a", b"2"), (4, b"b", b"2")]
    for checkpoint, size in ((3, 2), (3, 1), (4, 5), (5, 5)):
        found, end = answer.clean(list(log), checkpoint, size)
        found, expected = ([tuple(each) for each in found], end), expected_of(log, checkpoint, size)
        case = f"the records (offset, key) {shown(log)}: clean(..., {checkpoint}, {size})"
        assert found[0] == expected[0], f"{case} keeps {shown(found[0])} (right: {shown(expected[0])})"
        assert found[1] == expected[1], f"{case} returns the checkpoint {found[1]!r} (right: {expected[1]})"


def test_many_rounds(answer, rng):
    """The test calls `clean` with a map for two keys until the checkpoint reaches the log's end.

    The log then contains only the last record of each key.
    """
    for number in range(40):
        log, checkpoint, rounds = random_log(rng, 2 + number // 3), 0, 0
        records, end = list(log), log[-1][0] + 1
        while checkpoint < end and rounds < 100:
            records, checkpoint = answer.clean(records, checkpoint, 2)
            rounds += 1
        case = f"the records (offset, key) {shown(log)}, clean with a map of two keys"
        assert checkpoint == end, f"{case}: after {rounds} calls the checkpoint is {checkpoint} (right: {end})"
        found, expected = [tuple(each) for each in records], compacted(log)
        assert found == expected, f"{case}: after {rounds} calls the log is {shown(found)} (right: {shown(expected)})"
