"""Tests for the requirements of lab 3.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

from collections import Counter

PAGES = ["home", "cart", "help"]


def random_log(rng, length):
    """Return a log of `length` clicks in the order of their arrival. Some of the clicks are late."""
    log, now = [], 0
    for _ in range(length):
        now += rng.randrange(40)
        log.append((max(0, now - rng.choice([0, 0, 0, 50, 130])), rng.choice(PAGES)))
    return log


def counted(clicks):
    return dict(Counter((page, time - time % 60) for time, page in clicks))


def test_windows(answer):
    """`window_of` returns the start of the window that contains a time."""
    for time, size, expected in ((0, 60, 0), (59, 60, 0), (60, 60, 60), (125, 60, 120), (125, 100, 100), (-1, 60, -60)):
        found = answer.window_of(time, size)
        assert found == expected, f"window_of({time}, {size}) returns {found!r} (right: {expected})"


def test_batch(answer, rng):
    """`batch_view(log, end)` counts the clicks at offsets below `end`, by page and by window of 60 seconds."""
    small = [(5, "home"), (70, "home"), (10, "home"), (75, "cart")]
    for log in [small, *(random_log(rng, length) for length in range(4, 20))]:
        for end in (0, 1, 3, len(log)):
            found, expected = dict(answer.batch_view(list(log), end)), counted(log[:end])
            assert found == expected, f"batch_view({log}, {end}) returns {found} (right: {expected})"


def test_speed(answer, rng):
    """A `SpeedView` counts the clicks whose offset is `begin` or greater."""
    for length in (1, 2, 10, 20):
        log, begin = random_log(rng, length), rng.randrange(length)
        view = answer.SpeedView(begin)
        for offset in range(begin, length):
            view.add(offset, log[offset])
        found, expected = dict(view.counts), counted(log[begin:])
        assert found == expected, f"SpeedView({begin}), add {log[begin:]}: counts is {found} (right: {expected})"


def test_forgetting(answer, rng):
    """`forget(end)` removes exactly the clicks at offsets below `end`.

    It selects the clicks by their offsets, not by their event times.
    """
    small = [(70, "home"), (10, "home"), (80, "home")]
    for log in [small, *(random_log(rng, 2 + number // 6) for number in range(60))]:
        end = rng.randrange(len(log) + 1)
        view = answer.SpeedView(0)
        for offset, click in enumerate(log):
            view.add(offset, click)
        view.forget(end)
        found = {key: count for key, count in view.counts.items() if count}
        case = f"SpeedView(0), add {log}, forget({end})"
        assert found == counted(log[end:]), f"{case}: counts is {found} (right: {counted(log[end:])})"
        view.forget(max(0, end - 2))
        found = {key: count for key, count in view.counts.items() if count}
        assert found == counted(log[end:]), f"{case}, forget({max(0, end - 2)}): the counts change to {found}"


def test_copies(answer, rng):
    """A `SpeedView` counts each click only once, even if the click arrives several times.

    It ignores clicks at offsets below `begin`, because the batch view contains them. The test calls `add` for each
    click whose offset is `begin` or greater, in the order of the offsets. It then calls `add` once more, for a
    random click of the log.
    """
    for number in range(50):
        log = random_log(rng, 2 + number // 8)
        begin = rng.randrange(len(log))
        order = [*range(begin, len(log))]
        again = rng.randrange(len(log))
        arrivals = [*order, again]
        view = answer.SpeedView(begin)
        for offset in arrivals:
            view.add(offset, log[offset])
        found, expected = dict(view.counts), counted(log[begin:])
        case = f"SpeedView({begin}), add the clicks with the offsets {arrivals} of {log}"
        assert found == expected, f"{case}: counts is {found} (right: {expected})"


def test_the_exact_answer(answer, rng):
    """After each click, `merge` returns the exact counts of all clicks so far.

    The batch view counts the older clicks, and the speed view counts the newer clicks. `merge` adds the counts
    of the two views.
    """
    for number in range(100):
        log = random_log(rng, 2 + number // 6)
        batch, view = {}, answer.SpeedView(0)
        for offset, click in enumerate(log):
            view.add(offset, click)
            length = offset + 1
            if rng.random() < 0.2:
                end = rng.randrange(length + 1)  # The batch counts the clicks before this offset.
                if end >= sum(batch.values()):
                    batch = dict(answer.batch_view(log[:length], end))
                    view.forget(end)
            before = dict(batch)
            found = {key: count for key, count in answer.merge(batch, view.counts).items() if count}
            case = f"after {length} clicks of {log}, {sum(batch.values())} of them in the batch view"
            assert found == counted(log[:length]), f"{case}: merge returns {found} (right: {counted(log[:length])})"
            assert batch == before, f"{case}: merge changes the batch view"


def expected_windows(clicks, size, lateness):
    counts, final, late, newest = {}, [], 0, None
    for time, _ in clicks:
        start = time - time % size
        if start in dict(final) or (newest is not None and start + size <= newest - lateness):
            late += 1
            continue
        counts[start] = counts.get(start, 0) + 1
        newest = time if newest is None else max(time, newest)
        closed = sorted(each for each in counts if each + size <= newest - lateness and each not in dict(final))
        final += [(each, counts[each]) for each in closed]
    return final, late


def test_final_windows(answer, rng):
    """A window is final when its end is at or before the watermark.

    The watermark is the newest event time so far minus `lateness`, the number of seconds by which a click may be late.
    """
    small = [
        [(0, "home"), (59, "home"), (100, "home"), (110, "home")],
        [(0, "home"), (75, "home"), (59, "cart"), (80, "home")],
        [(0, "home"), (90, "home"), (59, "cart")],
        [(0, "home"), (70, "home"), (500, "home")],
    ]
    for clicks in [*small, *(random_log(rng, 3 + number // 8) for number in range(120))]:
        found, expected = answer.final_windows(list(clicks), 60, 20), expected_windows(clicks, 60, 20)
        found = ([tuple(each) for each in found[0]], found[1])
        assert found == expected, f"final_windows({clicks}, 60, 20) returns {found} (right: {expected})"
