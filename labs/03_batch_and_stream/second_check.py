"""Tests for the second exercise of lab 3.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""


def sessions_of(times, gap):
    """Return the sessions of one user, computed from all clicks at once."""
    found = []
    for time in sorted(times):
        if found and time - found[-1][1] <= gap:
            found[-1] = (found[-1][0], time, found[-1][2] + 1)
        else:
            found.append((time, time, 1))
    return found


def compare(answer, times, gap=30):
    """Add one user's clicks to a `Sessions` object. After each click, check the list of open sessions."""
    sessions = answer.Sessions(gap)
    for number, time in enumerate(times):
        sessions.add("anna", time)
        found = [tuple(each) for each in sessions.open("anna")]
        expected = sessions_of(times[: number + 1], gap)
        case = f"gap {gap}, clicks at {times[: number + 1]} in this order"
        assert found == expected, f"{case}: the open sessions are {found} (right: {expected})"


def test_in_order(answer):
    """A click belongs to a session if its event time is at most `gap` seconds after the last click of the session."""
    compare(answer, [100])
    compare(answer, [100, 110, 130])
    compare(answer, [100, 130])
    compare(answer, [100, 131])
    compare(answer, [100, 200, 210, 300])


def test_late_clicks(answer):
    """A late click belongs to a session if the session begins at most `gap` seconds after the click.

    It also belongs to a session if the session has clicks before and after the late click's event time.
    """
    compare(answer, [100, 80])
    compare(answer, [100, 70])
    compare(answer, [100, 69])
    compare(answer, [100, 120, 110])
    compare(answer, [200, 100])


def test_merging(answer, rng):
    """If a late click belongs to two sessions, `add` merges the two sessions into one."""
    compare(answer, [100, 150, 125])
    compare(answer, [100, 150, 200, 175, 125])
    for number in range(200):
        compare(answer, [rng.randrange(400) for _ in range(2 + number // 15)])


def test_users(answer, rng):
    """The sessions of one user do not depend on the clicks of other users."""
    sessions, clicks = answer.Sessions(30), []
    for _ in range(60):
        user, time = rng.choice(["anna", "ben", "carla"]), rng.randrange(1000)
        sessions.add(user, time)
        clicks.append((user, time))
        found = [tuple(each) for each in sessions.open(user)]
        expected = sessions_of([at for name, at in clicks if name == user], 30)
        assert found == expected, f"after {clicks}: the sessions of {user} are {found} (right: {expected})"
    found = list(sessions.open("nobody"))
    assert found == [], f"a user without clicks has no session, but open returns {found}"


def test_closing(answer, rng):
    """`close` removes all final sessions, and returns them. All other sessions stay open.

    A session is final if it can get no more clicks: each future click has the time `watermark` or later.
    """
    for times, watermark, count in (([100], 130, 0), ([100], 131, 1), ([100, 120, 200], 151, 1), ([100], 90, 0)):
        sessions = answer.Sessions(30)
        for time in times:
            sessions.add("anna", time)
        every = sessions_of(times, 30)
        found = [tuple(each) for each in sessions.close(watermark)]
        expected = [(*each, "anna") for each in every[:count]]
        case = f"gap 30, clicks at {times}, close({watermark})"
        assert found == expected, f"{case} returns {found} (right: {expected})"
        left = [tuple(each) for each in sessions.open("anna")]
        assert left == every[count:], f"{case}: the open sessions are then {left} (right: {every[count:]})"
    for _ in range(50):
        sessions, clicks, newest, closed = answer.Sessions(30), [], 0, []
        for _ in range(40):
            newest += rng.randrange(25)
            click = rng.choice(["anna", "ben"]), max(0, newest - rng.choice([0, 0, 10, 20]))
            clicks.append(click)
            sessions.add(*click)
            closed += [tuple(each) for each in sessions.close(newest - 20)]
        closed += [tuple(each) for each in sessions.close(newest + 100)]
        expected = []
        for user in ("anna", "ben"):
            expected += [(*each, user) for each in sessions_of([at for name, at in clicks if name == user], 30)]
        case = f"clicks {clicks}, and close(newest time - 20) after each click"
        found, right = sorted(closed), sorted(expected)
        assert found == right, f"{case}: the sessions are {found} (right: {right})"
