"""Step-by-step tests of the negotiator, which coordinates a topology. They need no threads and no real time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hmb.client import TopicPartition
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import StaleEpochError
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.negotiator import STEPS, Negotiator, NegotiatorEvent, NegotiatorSettings, RegistryView
from hmb.hailstorm.negotiator.conditions import ANSWERS, CONDITIONS
from hmb.hailstorm.snapshots import MemorySnapshotStore
from hmb.hailstorm.topology import Processors
from tests.hailstorm.topologies import trending

P0, P1 = TopicPartition("words", 0), TopicPartition("words", 1)
C1, C2 = Clock({P0: 10, P1: 3}), Clock({P0: 20, P1: 5})


class Driver:
    """Simulates the processors. A test sets the reports that these processors send to the negotiator."""

    def __init__(self, partitions: int = 2, **settings: Any) -> None:
        self.processors = Processors(trending(), {"words": list(range(partitions))})
        self.store = MemorySnapshotStore()
        self.negotiator = Negotiator(self.processors, self.store, NegotiatorSettings(**settings))
        self.living: dict[str, Report] = {}
        self.now = 0.0
        self.stop = False
        self.elected = True

    @property
    def state(self) -> MasterState:
        return self.negotiator.state

    def step(self, seconds: float = 0.0) -> MasterPhase | None:
        self.now += seconds
        master = self.negotiator.step(RegistryView(self.living, self.now, self.elected, self.stop))
        return master and master.phase

    def register(self, **report: Any) -> None:
        for name in self.processors.by_name:
            start = 0 if name.startswith("words") else None
            self.living[name] = Report(self.state.epoch, self.state.number, start=start, **report)

    def report(self, *names: str, **changes: Any) -> None:
        """Change the reports of the processors `names`, or of all processors if `names` is empty.

        The dict `changes` contains the new values of fields. The method also sets the field `seen` to the number of the
        negotiator's newest decision.
        """
        for name in names or self.processors.by_name:
            self.living[name] = replace(self.living[name], seen=self.state.number, **changes)

    def flow(self) -> None:
        """Let the topology reach the master state Flowing(None)."""
        self.step()
        completed = self.store.completed()
        self.register(saved=[completed] if completed else [])
        self.step()
        self.report(is_ready=True)
        assert self.step() is MasterPhase.FLOWING
        self.report()

    def pause_at(self, clock: Clock) -> None:
        self.step(seconds=1)
        self.report()
        for partition, offset in clock.items():
            self.report(f"words-{partition.partition}", position=offset)
        assert self.step() is MasterPhase.SPOUTS_PAUSED_AT
        assert self.state.clock == clock

    def split_at(self, clock: Clock) -> None:
        self.pause_at(clock)
        self.report(split=clock)
        assert self.step() is MasterPhase.FLOWING_TO


def test_a_round_of_snapshots() -> None:
    driver = Driver()
    assert driver.step() is MasterPhase.INITIALIZE
    driver.register()
    assert driver.step() is MasterPhase.SPOUTS_REWIND
    assert driver.state.clock == Clock({P0: 0, P1: 0}) and driver.state.snapshot is None
    driver.report(is_ready=True)
    assert driver.step() is MasterPhase.FLOWING
    assert driver.step(0.9) is None
    assert driver.step(0.2) is MasterPhase.SPOUTS_PAUSED
    driver.report("words-0", position=10)
    assert driver.step() is None, "words-1 is not paused"
    driver.report("words-1", position=3)
    assert driver.step() is MasterPhase.SPOUTS_PAUSED_AT
    assert driver.state.clock == C1
    driver.report("count-0", "count-1", "count-2", "topn-0", "topn-1", split=C1)
    assert driver.step() is None, "the sink has not split"
    driver.report("console-0", split=C1)
    assert driver.step() is MasterPhase.FLOWING_TO
    driver.report(stored=C1)
    assert driver.step() is MasterPhase.FLOWING
    assert driver.state.completed == C1 and driver.store.completed() == C1
    assert driver.negotiator.snapshots == 1


def test_an_answer_to_an_older_master_state_does_not_count() -> None:
    driver = Driver()
    driver.flow()
    for name in driver.processors.by_name:
        # The report is old: it contains offset 7, at which a spout paused for an earlier snapshot.
        driver.living[name] = replace(driver.living[name], position=7)
    assert driver.step(seconds=1) is MasterPhase.SPOUTS_PAUSED
    assert driver.step() is None
    driver.report()
    assert driver.step() is MasterPhase.SPOUTS_PAUSED_AT


@pytest.mark.parametrize("phase", ["rewind", "flowing", "paused", "split", "saving"])
def test_a_lost_processor_begins_a_new_epoch_in_every_phase(phase: str) -> None:
    driver = Driver()
    if phase == "rewind":
        driver.step()
        driver.register()
        driver.step()
    else:
        driver.flow()
    if phase == "paused":
        driver.step(seconds=1)
    if phase in ("split", "saving"):
        driver.pause_at(C1)
    if phase == "saving":
        driver.report(split=C1)
        driver.step()
    del driver.living["count-1"]
    assert driver.step() is MasterPhase.INITIALIZE
    assert driver.state.epoch == 2
    assert driver.negotiator.why == "count-1 disappeared"
    assert driver.step() is None, "the entries are of the older epoch"


def test_the_newest_common_clock_is_chosen() -> None:
    driver = Driver()
    driver.step()
    driver.register(saved=[C1, C2])
    driver.report("topn-1", saved=[C1])
    assert driver.step() is MasterPhase.SPOUTS_REWIND
    assert driver.state.snapshot == driver.state.clock == driver.state.completed == C1


def test_a_partition_that_is_new_begins_at_its_start() -> None:
    driver = Driver(partitions=3)
    driver.step()
    driver.register(saved=[C1])
    driver.report("words-2", start=4)
    driver.step()
    assert driver.state.snapshot == C1
    assert driver.state.clock == C1.moved({TopicPartition("words", 2): 4})


def test_a_start_never_goes_back_below_the_complete_clock() -> None:
    """When a topology starts, it never uses a snapshot that is older than the newest complete one.

    The sink may already have written all outputs of the newest complete snapshot. After a start from an older
    snapshot, the sink would write some of these outputs a second time.
    """
    driver = Driver()
    driver.store.complete(driver.store.begin_epoch(), C2)
    driver.step()
    driver.register(saved=[C2])
    driver.report("count-1", saved=[])
    assert driver.step() is MasterPhase.ENDED
    assert driver.state.error is not None
    assert "no intact snapshot of count-1 at the complete clock (words-0: 20, words-1: 5)" in driver.state.error


def test_a_failure_ends_the_topology_and_is_named() -> None:
    driver = Driver()
    driver.flow()
    driver.report("count-0", failure="count-0: transform raised ValueError")
    assert driver.step() is MasterPhase.ENDED
    assert driver.state.error == "count-0: transform raised ValueError"


def test_a_silent_processor_is_given_up() -> None:
    driver = Driver(patience=5.0)
    driver.flow()
    driver.pause_at(C1)
    driver.report(*(name for name in driver.processors.by_name if name != "topn-0"), split=C1)
    assert driver.step(4) is None
    assert driver.negotiator.waits_for(RegistryView(driver.living, driver.now)) == ["topn-0"]
    assert driver.step(2) is MasterPhase.INITIALIZE
    assert driver.negotiator.why == "topn-0 did not answer"


def test_a_snapshot_that_cannot_be_saved_is_tried_again() -> None:
    driver = Driver()
    driver.flow()
    driver.split_at(C1)
    driver.report(stored=C1)
    driver.report("count-0", stored=None, not_saved=(C1, "the disk is full"))
    assert driver.step() is MasterPhase.FLOWING
    assert driver.state.completed is None and driver.negotiator.snapshots == 0
    driver.report(not_saved=None)
    driver.split_at(C2)
    driver.report(stored=C2)
    assert driver.step() is MasterPhase.FLOWING
    assert driver.state.completed == C2


def test_a_stop_takes_a_last_snapshot() -> None:
    driver = Driver(grace_period=None)
    driver.flow()
    assert driver.step(1000) is None
    driver.stop = True
    driver.split_at(C1)
    assert driver.state.ending and not driver.state.lets_spouts_flow
    driver.report(stored=C1)
    assert driver.step() is MasterPhase.ENDED
    assert driver.state.completed == C1 and driver.state.error is None


def test_spouts_at_the_end_of_bounded_topics_end_the_topology() -> None:
    driver = Driver()
    driver.flow()
    driver.report("words-0", is_at_end=True)
    assert driver.step() is None
    driver.report("words-1", is_at_end=True)
    assert driver.step() is MasterPhase.SPOUTS_PAUSED
    assert driver.state.ending


def test_a_last_snapshot_that_cannot_be_saved_is_an_error() -> None:
    driver = Driver()
    driver.flow()
    driver.stop = True
    driver.split_at(C1)
    driver.report("count-0", not_saved=(C1, "the disk is full"))
    assert driver.step() is MasterPhase.ENDED
    assert driver.state.error == "the last snapshot was not saved: the disk is full"


def test_a_negotiator_that_lost_its_session_writes_nothing() -> None:
    driver = Driver()
    driver.flow()
    driver.elected = False
    del driver.living["count-0"]
    assert driver.step() is MasterPhase.DISCONNECTED
    assert driver.step() is None


def test_a_second_negotiator_waits() -> None:
    driver = Driver()
    driver.elected = False
    assert driver.step() is None
    assert driver.store.begin_epoch() == 1, "it has not begun an epoch"


def test_a_stale_epoch_is_left_by_the_negotiator_that_is_still_elected() -> None:
    driver = Driver()
    driver.flow()
    driver.split_at(C1)
    driver.report(stored=C1)
    assert driver.store.begin_epoch() == 2  # Another negotiator begins an epoch, and then loses its session.
    assert driver.step() is None
    assert driver.step() is MasterPhase.INITIALIZE
    assert driver.state.epoch == 3
    with pytest.raises(StaleEpochError):
        driver.store.complete(1, C1)


# -- the table


def test_every_event_has_a_condition_and_a_step() -> None:
    assert set(CONDITIONS) == set(NegotiatorEvent) == {step.event for step in STEPS}


def test_every_action_is_a_method() -> None:
    assert all(step.action is None or callable(getattr(Negotiator, step.action)) for step in STEPS)


def test_no_arrow_is_drawn_twice() -> None:
    assert len({(step.before, step.event) for step in STEPS}) == len(STEPS)


def test_every_phase_can_be_reached_and_left() -> None:
    assert {step.after for step in STEPS} == set(MasterPhase)
    assert {step.before for step in STEPS} == set(MasterPhase) - {MasterPhase.ENDED}


def test_every_phase_that_waits_gives_up_on_silent_processors() -> None:
    silent = {step.before for step in STEPS if step.event is NegotiatorEvent.PROCESSOR_SILENT}
    assert silent == set(ANSWERS) - {MasterPhase.INITIALIZE}


def test_values_of_the_registry_come_back_from_the_codec() -> None:
    master = MasterState(MasterPhase.FLOWING_TO, 3, 7, clock=C1, completed=C2, ending=True)
    assert MasterState.from_value(master.to_value()) == master
    report = Report(3, 7, ("host", 9), [C1, C2], 4, True, 5, True, C1, C2, (C1, "full"), "why", {"received": 1})
    assert Report.from_value(report.to_value()) == report
    assert str(master) == "Flowing(words-0: 10, words-1: 3), epoch 3"
