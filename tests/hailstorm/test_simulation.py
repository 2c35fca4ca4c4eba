"""Tests of Hailstorm's snapshot protocol in thousands of simulated runs. Each run has a random order of events.

The results of each run must be exact. If a test plants a defect in the code, at least one run must fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hmb.hailstorm import simulation
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.master import MasterState
from hmb.hailstorm.monoids import Max
from hmb.hailstorm.negotiator import Negotiator
from hmb.hailstorm.negotiator.conditions import Situation
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors import emitter
from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.emitter import Emitter
from hmb.hailstorm.processors.low_water_marks import LowWaterMarks
from hmb.hailstorm.processors.participant import Participant
from hmb.hailstorm.processors.split_state import SplitState
from hmb.hailstorm.snapshots import MemorySnapshotStore
from tests.hailstorm import paper_rules
from tests.hailstorm.simulations import run_combining, run_tracing, run_trending
from tests.hailstorm.topologies import tracing, word_logs

RUNS: tuple[Callable[..., Any], ...] = (run_trending, run_tracing, run_combining)

SEEDS = 2000
CHUNK = 100
DEFECT_SEEDS = 400  # A test plants a defect in the code, and tries up to 400 seeds. For one of them, a run must fail.


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_snapshots_and_results_are_exact_in_every_order(first: int) -> None:
    """In every run, each complete snapshot equals the result of a batch job over the records in this snapshot.

    The final results of the run are also exact. The offsets in a low water mark never decrease.
    """
    snapshots = replayed = 0
    for seed in range(first, first + CHUNK):
        result = RUNS[seed % 3](seed, crashes=seed % 5)
        snapshots += result.snapshots
        replayed += result.replayed
    assert snapshots > CHUNK and replayed > CHUNK, "the seeds must include recoveries"


def test_the_seeds_include_a_negotiator_that_hung_and_returns() -> None:
    """In some random runs, a negotiator hangs until its session has ended, and then continues to work.

    The snapshot store refuses the old epoch of this negotiator, and the registry refuses its decisions.
    """
    traces = [line for seed in range(60) for line in run_trending(seed, crashes=6).trace if "hung" in line]
    assert any("is refused" in line for line in traces)


def test_a_run_is_repeated_by_its_seed() -> None:
    assert run_trending(7, crashes=3).trace == run_trending(7, crashes=3).trace
    assert run_trending(7, crashes=3).trace != run_trending(8, crashes=3).trace


@pytest.mark.parametrize("seed", range(40))
def test_a_held_back_sink_writes_each_output_once_without_a_crash(seed: int) -> None:
    result = run_tracing(seed)
    assert result.states["written"] == sorted(Counter(result.states["third"]).elements())


@pytest.mark.parametrize("seed", range(40))
def test_a_held_back_sink_loses_nothing_in_a_crash(seed: int) -> None:
    result = run_tracing(seed, crashes=4)
    written, expected = Counter(result.states["written"]), Counter(result.states["third"])
    assert not expected - written
    assert written.keys() == expected.keys()


# -- planted defects: each test `test_hole_...` uses a faulty rule of the Hailstorm paper, and each test
# `test_defect_...` adds another defect. The simulation must find the defect.


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    monkeypatch.setattr(simulation, "MAX_STEPS", 8_000)  # A stalled run then fails soon.
    yield lambda owner, name, value: monkeypatch.setattr(owner, name, value)


def first_failure(**options: Any) -> str:
    """Return the error message of the first seed that fails. If no seed fails, fail the test."""
    for seed in range(DEFECT_SEEDS):
        for run in RUNS:
            try:
                run(seed, **options)
            except (AssertionError, TopologyError) as error:
                return str(error)
    pytest.fail(f"the defect was not found in {DEFECT_SEEDS} seeds")


def test_hole_a_marks_that_travel_only_with_tuples_stall_a_snapshot(plant: Callable[..., None]) -> None:
    """The Hailstorm paper has a faulty rule: processors send low water marks only together with tuples.

    A bolt that receives no tuples then receives no marks. The bolt waits forever for marks, and never saves its state.
    """
    distribute = Emitter._distribute

    def only_tuples(self: Emitter, made: Payloads, targets: list[str], instances: Any) -> None:
        distribute(self, made, targets, instances)
        self.outbox[:] = [(target, payloads) for target, payloads in self.outbox if payloads.tuples]

    plant(Emitter, "_distribute", only_tuples)
    assert "has not ended" in first_failure()


def test_hole_b_a_mark_that_must_equal_the_clock_stalls_a_snapshot(plant: Callable[..., None]) -> None:
    """The Hailstorm paper has a faulty rule: a low water mark must be equal to the clock of the snapshot.

    A mark and a clock contain one offset for each partition. For example, the clock is (10, 20), and a bolt's mark
    changes from (10, 15) to (12, 20). The mark never equals the clock, so the bolt never saves its state.
    """
    plant(Clock, "has_reached", lambda self, goal: all(self[p] == goal[p] for p in self))
    assert "has not ended" in first_failure()


def test_hole_c_spouts_that_resume_before_the_split_spoil_a_snapshot(plant: Callable[..., None]) -> None:
    """The Hailstorm paper has a faulty rule: the spouts resume before all bolts have begun the snapshot.

    The spouts then send new tuples, which do not belong to the snapshot. A bolt that has not begun the snapshot wrongly
    saves these tuples in the snapshot.
    """
    plant(Negotiator, "steps", paper_rules.steps_without_waiting_for_the_split())
    plant(Participant, "bolt_machine", paper_rules.BoltThatSplitsWhenFlowing)
    plant(Participant, "sink_machine", paper_rules.SinkThatSplitsWhenFlowing)
    assert "instead of" in first_failure()


def test_hole_d_outputs_computed_from_both_states_reach_the_next_snapshot(plant: Callable[..., None]) -> None:
    """The Hailstorm paper has a faulty rule: during a snapshot, a bolt also uses later tuples for all its outputs.

    For example, a bolt has counted 3 tuples of the snapshot and 2 later tuples. For the third tuple of the snapshot,
    the bolt must send the count 3. By the paper's rule it sends 5, and the next bolt saves 5 in the snapshot.
    """
    plant(Participant, "bolt_machine", paper_rules.BoltOfThePaper)
    assert "topn at" in first_failure()


def test_hole_e_a_tuple_above_the_clock_that_does_not_wait_leaves_an_old_value(plant: Callable[..., None]) -> None:
    """The Hailstorm paper has a faulty rule: later tuples do not wait until a bolt's snapshot is complete.

    For example, a bolt counts 4 tuples of the snapshot and 4 later tuples, and sends the total count 8. One more tuple
    of the snapshot arrives. The bolt sends 5, its count for the snapshot, but never sends the new total count 9.
    """
    plant(Participant, "bolt_machine", paper_rules.BoltThatMergesAtOnce)
    assert "topn at" in first_failure()


def test_defect_a_maximum_instead_of_a_minimum(plant: Callable[..., None]) -> None:
    def advance(self: LowWaterMarks, payloads: Payloads) -> bool:
        self.clock = self.clock.moved({p: max(self.clock[p], offset) for p, offset in payloads.mark.items()})
        return True

    plant(LowWaterMarks, "advance", advance)
    assert first_failure()


def test_defect_the_boundary_tuple_enters_the_snapshot(plant: Callable[..., None]) -> None:
    """The simulation finds a defect: for each partition, a bolt adds one tuple too many to a snapshot.

    For example, the snapshot's clock contains offset 10, so the last offset in the snapshot should be 9. The bolt also
    adds the tuple from offset 10. After a restart from this snapshot, the tuple counts twice.
    """
    without_waiting = BoltMachine._without_waiting

    def one_too_many(self: BoltMachine, payloads: Payloads, clock: Clock) -> Payloads:
        return without_waiting(self, payloads, Clock({p: offset + 1 for p, offset in clock.items()}))

    plant(BoltMachine, "_without_waiting", one_too_many)
    assert first_failure()


def test_defect_combined_tuples_take_the_offset_after_their_batch(plant: Callable[..., None]) -> None:
    """The simulation finds a defect: the combiner assigns merged tuples an offset that is too high by 1.

    For example, the tuples of a batch have the offsets 7 to 10. The merged tuples must have the last of these offsets,
    10, but they have the offset 11. A snapshot of the offsets 0 to 10 then lacks the merged tuples.
    """
    combine = emitter.combine

    def one_too_many(payloads: Payloads, *others: Any) -> Any:
        combined, firsts = combine(payloads, *others)
        combined.offsets = [offset + 1 for offset in combined.offsets]
        return combined, firsts

    plant(emitter, "combine", one_too_many)
    assert "count at" in first_failure()


def test_defect_a_snapshot_of_the_whole_state(plant: Callable[..., None]) -> None:
    """The simulation finds a defect: a bolt saves the snapshot's tuples (state A) and also later tuples (state B)."""

    def to_value(self: SplitState) -> Any:
        merged = self.merged()
        return [dict(merged) if isinstance(self.a, dict) else merged, self.closed, self.late_in_a]

    plant(SplitState, "to_value", to_value)
    assert "instead of" in first_failure()


def test_defect_tuples_of_an_older_epoch_are_merged(plant: Callable[..., None]) -> None:
    receive = BoltMachine.receive

    def without_fence(self: BoltMachine, payloads: Payloads) -> None:
        payloads.epoch = self.epoch
        receive(self, payloads)

    plant(BoltMachine, "receive", without_fence)
    assert first_failure(crashes=3)


def test_defect_each_processor_restores_its_own_newest_snapshot(plant: Callable[..., None]) -> None:
    rewind = Participant._rewind

    def newest_of_its_own(self: Participant, master: MasterState) -> None:
        saved = self._store.clocks(self.name)
        if master.snapshot is not None and saved:
            newest = max(saved, key=lambda clock: sum(clock.values()))
            self._store = _Renamed(self._store, newest)  # type: ignore[assignment]
        rewind(self, master)

    plant(Participant, "_rewind", newest_of_its_own)
    assert first_failure(crashes=8)


class _Renamed:
    """A snapshot store that always returns one fixed snapshot of a processor, even if another snapshot is requested."""

    def __init__(self, store: Any, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def load(self, processor: str, clock: Clock) -> Any:
        return self._store.load(processor, self._clock)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_defect_an_answer_to_an_earlier_master_state_counts(plant: Callable[..., None]) -> None:
    """The simulation finds a defect: the negotiator accepts a processor's answer to an earlier decision.

    For example, the negotiator pauses all spouts again. The report of a slow spout still contains the offset of an
    earlier pause, and the negotiator accepts this offset.
    """
    plant(Situation, "_has_answered", lambda self, report, is_answer: is_answer(self.state, report))
    plant(simulation, "GRACE_PERIOD", 0.0)
    assert first_failure()


@pytest.mark.parametrize("seed", range(5))
def test_a_processor_saves_once_at_each_clock_of_an_epoch(seed: int) -> None:
    """Each processor saves its state only once for each snapshot.

    A bolt without state saves None. After this save, the processor must not save None again for the same snapshot.
    """
    saves: Counter[tuple[int, str, Clock]] = Counter()

    class CountingStore(MemorySnapshotStore):
        def save(self, epoch: int, processor: str, clock: Clock, state: bytes) -> None:
            saves[epoch, processor, clock] += 1
            super().save(epoch, processor, clock, state)

    run = simulation.Simulation(tracing(), word_logs(seed), seed)
    run.store = CountingStore()
    for name, processor in run.processors.by_name.items():
        run._participants[name] = run._new_participant(processor)
    run._negotiator = run._new_negotiator()
    run.run()
    assert {name for _, name, _ in saves} >= {"plain-0", "plain-1", "first-0"}
    assert set(saves.values()) == {1}


def test_tuples_above_the_clock_enter_b_even_if_the_empty_state_is_none() -> None:
    state = SplitState(Bolt.over(Max(), lambda item, largest: [largest]))
    state.split(Clock(), 0)
    assert state.is_gathering
    state.freeze()
    assert not state.is_gathering and state.b is None
    state.b = 7
    assert state.a is None and state.merged() == 7
    state.join()
    assert (state.a, state.b, state.is_frozen) == (7, None, False)
