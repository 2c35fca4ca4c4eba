"""Tests for the second exercise of lab 13.

In each test, `answer` is the student's module `second.py`.
"""

import json


class Crash(Exception):
    """A simulated crash of the coordinator. The check then creates a new coordinator with the same journal."""


class World:
    """The data that survives a crash of the coordinator: the journal and the markers in the partitions.

    A coordinator writes entries to the journal, and markers to partitions. All writes are numbered in their
    order, beginning with 1. If the number of a write is in the set `crashes`, this write raises Crash, and
    changes nothing.
    """

    def __init__(self, crashes=()):
        self.entries, self.markers, self.operations, self.crashes = [], [], 0, set(crashes)

    def _step(self):
        self.operations += 1
        if self.operations in self.crashes:
            raise Crash

    def append(self, entry):
        self._step()
        self.entries.append(json.loads(json.dumps(entry)))

    def __iter__(self):
        return iter(json.loads(json.dumps(self.entries)))

    def write_marker(self, partition, name, epoch, outcome):
        self._step()
        self.markers.append((partition, name, epoch, outcome))

    def coordinator(self, answer):
        """Return a new coordinator. If the coordinator crashes during its start, start it again."""
        for _ in range(len(self.crashes) + 1):
            try:
                return answer.Coordinator(self, self.write_marker)
            except Crash:
                continue
        raise AssertionError("the coordinator does not start")


def test_markers(answer):
    """`end` writes one marker with the outcome (commit or abort) to each partition of the transaction.

    If the producer adds a partition twice, `end` still writes only one marker to this partition.
    """
    world = World()
    coordinator = world.coordinator(answer)
    for outcome, partitions in (("commit", ["a", "b"]), ("abort", ["b", "b", "c"]), ("commit", [])):
        world.markers.clear()
        epoch = coordinator.begin("bank")
        for partition in partitions:
            coordinator.add("bank", epoch, partition)
        coordinator.end("bank", epoch, outcome)
        expected = [(partition, "bank", epoch, outcome) for partition in sorted(set(partitions))]
        case = f"add {partitions}, end with {outcome!r}"
        assert sorted(world.markers) == expected, f"{case}: the markers are {world.markers} (right: {expected})"


def test_epochs(answer):
    """The first call of `begin` for a producer's name returns the epoch 0.

    Each later call for this name returns the next epoch, even after a restart of the coordinator.
    """
    world = World()
    coordinator = world.coordinator(answer)
    for number in range(6):
        coordinator = world.coordinator(answer) if number % 2 else coordinator
        found = coordinator.begin("bank")
        assert found == number, f"begin('bank') number {number + 1} returns {found!r} (right: {number})"
        coordinator.end("bank", found, "commit")
    found = coordinator.begin("shop")
    assert found == 0, f"begin('bank') was called six times: begin('shop') returns {found!r} (right: 0)"


def test_fencing(answer):
    """A call of `add` or `end` with an old epoch raises `Fenced`.

    The call writes neither a journal entry nor a marker.
    """
    world = World()
    coordinator = world.coordinator(answer)
    old = coordinator.begin("bank")
    coordinator.add("bank", old, "a")
    coordinator.begin("bank")
    before = len(world.entries), len(world.markers)
    for name, call in (
        ("add", lambda: coordinator.add("bank", old, "b")), ("end", lambda: coordinator.end("bank", old, "commit")),
    ):  # fmt: skip
        case = f"begin, begin again, and {name} with the epoch of the first one"
        try:
            call()
        except answer.Fenced:
            after = len(world.entries), len(world.markers)
            assert after == before, f"{case} raises Fenced, but writes to the journal or to a partition"
        else:
            raise AssertionError(f"{case} does not raise Fenced")


def test_after_the_end(answer):
    """After a call of `end`, a second call of `end` with the same outcome raises no exception and writes nothing.

    A call of `end` with the opposite outcome raises `Ended` and writes nothing. A call of `add` also raises `Ended` and
    writes nothing. These rules also hold after a restart of the coordinator.
    """
    for outcome, other in (("commit", "abort"), ("abort", "commit")):
        for restarts in (False, True):
            world = World()
            coordinator = world.coordinator(answer)
            epoch = coordinator.begin("bank")
            coordinator.add("bank", epoch, "a")
            coordinator.end("bank", epoch, outcome)
            case = f"begin, add 'a', end with {outcome!r}" + (", a new coordinator" if restarts else "")
            coordinator = world.coordinator(answer) if restarts else coordinator
            before = len(world.entries), len(world.markers)
            coordinator.end("bank", epoch, outcome)
            after = len(world.entries), len(world.markers)
            assert after == before, f"{case}: the same end again writes to the journal or to a partition"
            for name, call in (
                (f"end with {other!r}", lambda: coordinator.end("bank", epoch, other)),  # noqa: B023
                ("add of 'b'", lambda: coordinator.add("bank", epoch, "b")),  # noqa: B023
            ):
                try:
                    call()
                except answer.Ended:
                    after = len(world.entries), len(world.markers)
                    assert after == before, f"{case}: {name} raises Ended, but writes to the journal or to a partition"
                else:
                    raise AssertionError(f"{case}: {name} does not raise Ended")


def test_an_open_transaction(answer):
    """`begin` aborts the open transaction of a producer that has crashed, even after a restart of the coordinator.

    The abort markers contain the epoch of the aborted transaction.
    """
    for restarts in (False, True):
        world = World()
        coordinator = world.coordinator(answer)
        epoch = coordinator.begin("bank")
        coordinator.add("bank", epoch, "a")
        coordinator.add("bank", epoch, "b")
        case = "begin, add 'a', add 'b'" + (", a new coordinator with the same journal" if restarts else "")
        coordinator = world.coordinator(answer) if restarts else coordinator
        assert world.markers == [], f"{case}: the transaction may continue, but it has the markers {world.markers}"
        coordinator.begin("bank")
        expected = [("a", "bank", epoch, "abort"), ("b", "bank", epoch, "abort")]
        assert sorted(world.markers) == expected, f"{case}, begin: the markers are {world.markers} (right: {expected})"


def test_a_restart(answer):
    """A new coordinator does nothing for transactions that are complete."""
    world = World()
    coordinator = world.coordinator(answer)
    for name in ("bank", "shop"):
        epoch = coordinator.begin(name)
        coordinator.add(name, epoch, "a")
        coordinator.end(name, epoch, "commit")
    before = list(world.markers)
    world.coordinator(answer).begin("bank")
    more = world.markers[len(before) :]
    assert not more, f"two complete transactions, a new coordinator, and begin: it writes the markers {more}"


def attempt(answer, world, outcomes):
    """Run a transaction for each outcome ("commit" or "abort") in `outcomes`.

    After a crash, create a new coordinator, and try again with a new transaction. Return a list with a tuple
    (epoch, added partitions, expected outcome) for each transaction that has begun. If a crash interrupts a
    transaction that should commit, the expected outcome is None, because both outcomes are correct.
    """
    done, coordinator = [], world.coordinator(answer)
    for outcome in outcomes:
        for _ in range(len(world.crashes) + 1):
            epoch, added = None, []
            try:
                epoch = coordinator.begin("bank")
                for partition in "abc":
                    coordinator.add("bank", epoch, partition)
                    added.append(partition)
                coordinator.end("bank", epoch, outcome)
                done.append((epoch, added, outcome))
                break
            except Crash:
                if epoch is not None:
                    done.append((epoch, added, None if outcome == "commit" else "abort"))
                coordinator = world.coordinator(answer)
    for _ in range(len(world.crashes) + 1):
        try:
            coordinator.begin("bank")  # After this call, every older transaction has ended.
            return done
        except Crash:
            coordinator = world.coordinator(answer)
    raise AssertionError("each call of the method `begin` raises Crash")


def test_crashes(answer):
    """All partitions of a transaction get markers with the same outcome, even if the coordinator crashes.

    The coordinator can crash at any step.
    """
    once = [{first} for first in range(1, 20)]
    twice = [{first, first + later} for first in range(1, 12) for later in range(1, 8)]
    for crashes in once + twice:
        world = World(crashes)
        done = attempt(answer, world, ["commit", "commit"])
        case = f"two transactions with the partitions a, b and c, and a crash before step {sorted(world.crashes)}"
        epochs = [epoch for epoch, _, _ in done]
        repeated = [epoch for epoch in epochs if epochs.count(epoch) > 1]
        assert not repeated, (
            f"{case}: begin returns the epoch {repeated[0]} for two transactions (right: each transaction has its own"
            f" epoch). The transactions, as (epoch, added partitions, outcome), are {done}"
        )
        for epoch, added, outcome in done:
            markers = {(partition, result) for partition, _, at, result in world.markers if at == epoch}
            results = {result for _, result in markers}
            assert len(results) <= 1, f"{case}: the transaction {epoch} has the markers {sorted(markers)}"
            missing = sorted(set(added) - {partition for partition, _ in markers})
            assert not missing, f"{case}: the transaction {epoch} has no marker in {missing}, only {sorted(markers)}"
            assert outcome is None or results <= {outcome}, f"{case}: {outcome} was acknowledged; {sorted(markers)}"
