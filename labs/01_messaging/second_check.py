"""Tests for the second exercise of lab 1.

In each test, `answer` is the student's module `second.py`, and `rng` generates random test cases.
"""


def taken(queue, now, case):
    """Call `take`, and return the receipt and the job. If `take` does not return a pair, the check fails."""
    found = queue.take(now)
    assert isinstance(found, tuple) and len(found) == 2, f"{case}: take({now}) returns {found!r} (right: a pair)"
    return found


def filled(answer, timeout, *jobs):
    queue = answer.Queue(timeout)
    for job in jobs:
        queue.put(job)
    return queue


def test_order(answer):
    """`take` delivers jobs in the order in which `put` added them.

    When a worker takes a job, the worker has `timeout` seconds for it. Before this time is over, `take`
    delivers the job to no other worker. If no job can be delivered, `take` returns `None`.
    """
    queue, case = filled(answer, 10, "a", "b", "b"), "put('a'), put('b'), put('b')"
    found = [taken(queue, 0, case) for _ in range(3)]
    jobs = [job for _, job in found]
    assert jobs == ["a", "b", "b"], f"{case}: three calls of take(0) deliver {jobs}"
    assert len({receipt for receipt, _ in found}) == 3, f"{case}: three deliveries have the receipts {found}"
    again = queue.take(9)
    assert again is None, f"{case}, three calls of take(0): the workers still have all jobs, but take(9) is {again!r}"


def test_done(answer):
    """After a worker has acknowledged a job with `done`, this job is never delivered again."""
    queue, case = filled(answer, 10, "a", "b"), "put('a'), put('b'), take(0)"
    receipt, _ = taken(queue, 0, case)
    result = queue.done(receipt)
    assert result is True, f"{case}, done of this job returns {result!r} (right: True)"
    _, job = taken(queue, 100, f"{case}, done")
    assert job == "b", f"{case}, done: take(100) delivers {job!r}, although 'a' is done"
    result = queue.done(receipt)
    assert result is False, f"{case}, done, and done again with the same receipt returns {result!r} (right: False)"


def test_a_lost_worker(answer):
    """If a worker does not acknowledge its job within `timeout` seconds, `take` delivers the job again.

    It delivers this job before all newer jobs.
    """
    queue, case = filled(answer, 10, "a", "b"), "Queue(10), put('a'), put('b'), take(0)"
    taken(queue, 0, case)
    _, job = taken(queue, 10, case)
    assert job == "a", f"{case}, no done: take(10) delivers {job!r} (right: 'a' again)"
    _, job = taken(queue, 11, case)
    assert job == "b", f"{case}, take(10): take(11) delivers {job!r} (right: 'b')"
    again = queue.take(19)
    assert again is None, f"{case}, take(10), take(11): the time of 'a' begins again at 10, but take(19) is {again!r}"
    _, job = taken(queue, 20, case)
    assert job == "a", f"{case}, take(10), take(11): take(20) delivers {job!r} (right: 'a')"


def test_an_old_receipt(answer):
    """Each delivery of a job has its own number, the receipt.

    If a job was delivered twice, only the receipt of the second delivery is valid. With the first receipt, `done`
    returns `False` and does not remove the job.
    """
    queue, case = filled(answer, 10, "a"), "put('a'), take(0), take(10)"
    old, _ = taken(queue, 0, case)
    new, _ = taken(queue, 10, case)
    assert old != new, f"{case}: both deliveries have the receipt {old!r}"
    result = queue.done(old)
    assert result is False, f"{case}: done with the receipt of take(0) returns {result!r} (right: False)"
    _, job = taken(queue, 20, f"{case}, done with the receipt of take(0), which removes nothing")
    assert job == "a", f"{case}, done with the receipt of take(0): take(20) delivers {job!r}"
    queue = filled(answer, 10, "a")
    late, _ = taken(queue, 0, "put('a'), take(0)")
    result = queue.done(late)
    assert result is True, "put('a'), take(0): no other worker has got the job, so done at any time returns True"


def test_random_workers(answer, rng):
    """`take` always delivers the oldest job that no worker has.

    This is true even if some workers do not acknowledge their jobs in time.
    """
    for length in range(4, 64):
        queue, free, held, now, steps = answer.Queue(5), [], {}, 0, []
        for number in range(length):
            now += rng.randrange(3)
            free += sorted(job for job, (_, due) in held.items() if due <= now)
            held = {job: each for job, each in held.items() if each[1] > now}
            action = rng.choice(["put", "take", "take", "done"])
            if action == "put":
                queue.put(number)
                free.append(number)
                steps.append(f"put({number})")
            elif action == "take":
                found, expected = queue.take(now), min(free, default=None)
                job = None if found is None else found[1]
                steps.append(f"take({now})")
                assert job == expected, f"Queue(5), {', '.join(steps)}: delivers {job!r} (right: {expected!r})"
                if found is not None:
                    free.remove(job)
                    held[job] = found[0], now + 5
            elif held:
                job = rng.choice(sorted(held))
                steps.append(f"done of job {job}")
                result = queue.done(held.pop(job)[0])
                assert result is True, f"Queue(5), {', '.join(steps)}: returns {result!r}"
