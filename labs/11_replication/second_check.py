"""Tests for the second exercise of lab 11.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""


def starts_of(epochs):
    return [(epoch, offset) for offset, epoch in enumerate(epochs) if offset == 0 or epochs[offset - 1] != epoch]


def end_of(epochs, epoch):
    known = [each for each in epochs if each <= epoch]
    return (max(known), sum(each <= epoch for each in epochs)) if known else None


def compare(answer, name, arguments, expected):
    found = getattr(answer, name)(*arguments)
    found = [tuple(each) for each in found] if isinstance(found, list) else found
    call = f"{name}({', '.join(map(repr, arguments))})"
    assert found == expected, f"{call} returns {found!r} (right: {expected!r})"


def random_epochs(rng, length, last=6):
    return sorted(rng.choices(range(last), k=length))


def test_starts(answer, rng):
    """`epoch_starts` returns each epoch once, with the offset of its first record."""
    for epochs in ([], [0], [0, 0], [0, 0, 1], [0, 2, 2, 5]):
        compare(answer, "epoch_starts", (epochs,), starts_of(epochs))
    for length in range(2, 30):
        epochs = random_epochs(rng, length)
        compare(answer, "epoch_starts", (epochs,), starts_of(epochs))


def test_end_of_epoch(answer, rng):
    """`end_of_epoch` returns a pair: `epoch`, and the offset after the last record of this epoch.

    If the log does not contain `epoch`, the pair is for the next lower epoch in the log.
    """
    for epochs, epoch in (([0, 0], 0), ([0, 0, 1], 0), ([0, 0, 1], 1), ([0, 2, 2, 5], 2), ([0, 0], 3), ([0, 0, 4], 3)):
        compare(answer, "end_of_epoch", (starts_of(epochs), len(epochs), epoch), end_of(epochs, epoch))
    for _ in range(150):
        epochs, epoch = random_epochs(rng, rng.randrange(12)), rng.randrange(7)
        compare(answer, "end_of_epoch", (starts_of(epochs), len(epochs), epoch), end_of(epochs, epoch))


def test_unknown_epochs(answer):
    """`end_of_epoch` returns None if the log is empty, or if all its epochs are greater than `epoch`."""
    compare(answer, "end_of_epoch", ([], 0, 3), None)
    compare(answer, "end_of_epoch", ([(4, 0)], 2, 3), None)


def logs(rng):
    """Yield pairs: a follower's log and a leader's log.

    A log is a list with the epoch of each record. Short logs are first.
    """
    yield [0, 0], [0, 0]
    yield [0, 0, 0], [0, 0, 1]
    yield [0, 0], [0, 0, 1, 1]
    yield [0, 0, 1], [0, 0, 2, 2]
    yield [1, 1], [2]
    yield [0, 1, 2, 2], [0, 1, 1, 3]
    yield [0, 0, 1, 2, 3], [0, 0, 4]
    yield [], [0]
    for _ in range(300):
        # Both logs begin with the epochs in `common`. Each of the next five epochs can occur in only one log: in `mine`
        # if its value in `is_mine` is True, and otherwise in `theirs`.
        common = random_epochs(rng, rng.randrange(8), 3)
        last = common[-1] if common else 0
        is_mine = [rng.random() < 0.5 for _ in range(5)]
        extra = [last] * rng.randrange(3)  # One of the two logs may have more records of the last common epoch.
        mine, theirs = (extra, []) if rng.random() < 0.5 else ([], extra)
        for number, owner in enumerate(is_mine):
            (mine if owner else theirs).extend([last + 1 + number] * rng.randrange(3))
        yield common + mine, common + theirs


def test_truncation(answer, rng):
    """`truncation_point` returns the offset at which a follower cuts its log.

    The follower then keeps all records that the leader also has, and no other records.
    """
    for mine, theirs in logs(rng):
        same = next((at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
        expected = min(len(mine), len(theirs)) if same is None else same
        found = answer.truncation_point(starts_of(mine), len(mine), lambda epoch, log=theirs: end_of(log, epoch))
        case = f"the follower's log has the epochs {mine}, and the leader's {theirs}"
        assert found == expected, f"{case}: truncation_point returns {found!r} (right: {expected})"


def test_questions(answer, rng):
    """`truncation_point` asks the leader only about epochs that are in the follower's log.

    It asks about each of these epochs at most once.
    """
    for mine, theirs in logs(rng):
        asked = []

        def ask(epoch, asked=asked, theirs=theirs):
            asked.append(epoch)
            assert len(asked) < 50, f"ask is called again and again: {asked[:8]}..."
            return end_of(theirs, epoch)

        answer.truncation_point(starts_of(mine), len(mine), ask)
        case = f"the follower's log has the epochs {mine}, and the leader's {theirs}"
        assert len(asked) == len(set(asked)), f"{case}: truncation_point asks for the epochs {asked}"
        other = sorted(set(asked) - set(mine))
        assert not other, f"{case}: truncation_point asks for epoch {other[0]}, which the follower does not have"
