"""Tests of windows of event time. The results must be the same for every order of the tuples.

The tests also check late records, closed windows and idle partitions.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hmb.client import ConsumerRecord, TopicPartition
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.checking import check
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterPhase, MasterState
from hmb.hailstorm.monoids import MapOf, Sessions, Sliding, Sum, Tumbling
from hmb.hailstorm.monoids.windows import WindowsOf
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.event_time import IDLE, PartitionTimes, Watermark
from hmb.hailstorm.processors.spouts import SpoutMachine
from hmb.hailstorm.runners import run, start
from hmb.hailstorm.simulation import Simulation
from hmb.hailstorm.sink import Sink
from hmb.hailstorm.snapshots import DirectorySnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processors, Topology
from tests.hailstorm import topologies
from tests.hailstorm.conftest import produce
from tests.waiting import until

P0, P1 = TopicPartition("words", 0), TopicPartition("words", 1)
LATENESS = 10  # ms


def timed(record: ConsumerRecord) -> tuple[str, int]:
    """Return (word, event time in ms)."""
    return record.value.decode(), record.timestamp


def topology(windows: WindowsOf, lateness: int = LATENESS) -> Topology:
    made = Topology("windows")
    spout = Spout("words", timed, event_time=lambda item: item[1], allowed_lateness=lateness)
    made.spout("words", spout)
    bolt = Bolt.windowed(windows, time=lambda item: item[1], key=lambda item: item[0], value=lambda item: 1)
    made.bolt("window", bolt, after="words", parallelism=2)
    made.sink("out", Sink(lambda item: None), after="window")
    return made


def timed_logs(seed: int, partitions: int = 2, count: int = 40) -> topologies.Logs:
    """Return records whose event times mostly increase.

    Sometimes an event time is lower than the last one, by more than the allowed lateness.
    """
    chance = random.Random(seed)
    logs = []
    for partition in range(partitions):
        time, log = 0, []
        for offset in range(count):
            time += chance.randint(0, 8)
            back = chance.choice([0, 0, 0, 5, 30])
            log.append(topologies.record("words", partition, offset, chance.choice(topologies.WORDS), time - back))
        logs.append(log)
    return {"words": logs}


def in_time(logs: topologies.Logs) -> list[tuple[str, int]]:
    """Return a pair (word, time) for each record that is not late.

    The function checks the records of each partition in the order of their offsets.
    """
    kept = []
    for log in logs["words"]:
        times = PartitionTimes(LATENESS)
        kept += [timed(record) for record in log if not times.is_late(record.timestamp)]
    return kept


def test_a_record_is_late_by_the_records_before_it_in_its_partition() -> None:
    """A record is late if the records before it in its partition are much newer.

    The numbers are those of the worked example in the docstring of `event_time`.
    """
    times = PartitionTimes(10)
    assert [times.is_late(time) for time in (100, 105, 97, 120, 109)] == [False, False, False, False, True]
    assert times.mark == 110 and times.late == 1


class KeptForever(Tumbling):
    """Tumbling windows that are never dropped. So a test can compare all of them with a batch job."""

    def expire(self, state: dict[Any, Any], watermark: int) -> dict[Any, Any]:
        return state


@pytest.mark.parametrize("seed", range(12))
def test_windows_equal_the_batch_answer_in_every_order(seed: int) -> None:
    logs = timed_logs(seed)
    expected: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for word, time in in_time(logs):
        expected[time - time % 20][word] += 1
    result = Simulation(topology(KeptForever(20, MapOf(Sum()))), logs, seed, crashes=seed % 4).run()
    assert result.states["window"] == expected


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "windows", [Tumbling(20, MapOf(Sum())), Sliding(40, 20, MapOf(Sum())), Sessions(6, Sum())], ids=["t", "sl", "se"]
)
def test_dropped_windows_are_complete_and_no_open_one_is_lost(windows: WindowsOf, seed: int) -> None:
    """After windows are dropped, only windows that end after the watermark remain. No dropped window begins again."""
    logs = timed_logs(seed)
    outputs: list[Any] = []
    made = topology(windows)
    del made.nodes["out"]
    made.sink("out", Sink(outputs.append), after="window")
    left = Simulation(made, logs, seed).run().states["window"]
    everything = windows.empty()
    for word, time in in_time(logs):
        everything = windows.absorb(everything, windows.lift((time, (word, 1))))
    watermark = min(newest(log) for log in logs["words"]) - LATENESS
    last = dict(outputs)
    for key, value in final_values(windows, everything).items():
        assert last[key] == value, "the last output of each window is complete"
    complete = final_values(windows, everything)
    still_open = final_values(windows, left)
    assert still_open.items() <= complete.items()
    assert still_open.keys() >= final_values(windows, windows.expire(everything, watermark)).keys()


def newest(log: Any) -> int:
    return max(record.timestamp for record in log)


def final_values(windows: WindowsOf, state: dict[Any, Any]) -> dict[Any, int]:
    """Return the value of each (key, start of a window) in a state."""
    if isinstance(windows, Sessions):
        return {(key, first): value for key, sessions in state.items() for first, _, value in sessions}
    return {(key, start): value for start, words in state.items() for key, value in words.items()}


def test_check_accepts_a_topology_with_windows() -> None:
    assert check(topology(KeptForever(20, MapOf(Sum()))), timed_logs(1)) == []


# -- a spout and a bolt, step by step


def machines(lateness: int = 0) -> tuple[SpoutMachine, SpoutMachine, BoltMachine]:
    made = topology(Tumbling(10, MapOf(Sum())), lateness)
    del made.nodes["window"], made.nodes["out"]
    bolt = Bolt.windowed(Tumbling(10, MapOf(Sum())), lambda item: item[1], lambda item: item[0], lambda item: 1)
    made.bolt("window", bolt, after="words")
    processors = Processors(made, {"words": [0, 1]})
    start = Clock({P0: 0, P1: 0})
    spouts = [SpoutMachine(processors, processors.named(f"words-{n}"), 1, start) for n in (0, 1)]
    return spouts[0], spouts[1], BoltMachine(processors, processors.named("window-0"), 1, start)


def read(spout: SpoutMachine, bolt: BoltMachine, *times: int) -> None:
    """Let the spout read one new record for each event time in `times`, and pass the tuples on to the bolt."""
    first = spout.position
    records = [
        topologies.record("words", spout.partition.partition, first + n, "sun", time) for n, time in enumerate(times)
    ]
    spout.take(records, first + len(records))
    pass_on(spout, bolt)


def pass_on(spout: SpoutMachine, bolt: BoltMachine) -> None:
    for _, payloads in spout.outbox:
        bolt.receive(payloads)
    spout.outbox.clear()


def take_snapshot(bolt: BoltMachine, clock: Clock, number: int) -> None:
    bolt.observe(MasterState(MasterPhase.SPOUTS_PAUSED_AT, 1, number, clock=clock))
    assert bolt.save is not None
    bolt.saved(clock)
    bolt.observe(MasterState(MasterPhase.FLOWING, 1, number + 1))


def test_windows_are_dropped_when_a_snapshot_begins() -> None:
    one, other, bolt = machines()
    read(one, bolt, 5, 12, 25)
    read(other, bolt, 8, 21)
    assert bolt.watermark.time == 21
    assert set(bolt.state.merged()) == {0, 10, 20}
    take_snapshot(bolt, Clock({P0: 3, P1: 2}), 1)
    assert set(bolt.state.merged()) == {20}
    assert bolt.state.closed == 21


def test_a_slow_partition_holds_the_watermark_back_and_an_idle_one_does_not() -> None:
    one, other, bolt = machines()
    read(one, bolt, 100)
    assert bolt.watermark.time < 0, "nothing is known of the other partition"
    read(other, bolt, 20)
    assert bolt.watermark.time == 20
    other.idle()
    pass_on(other, bolt)
    assert bolt.watermark.time == 100
    one.idle()
    pass_on(one, bolt)
    assert bolt.watermark.time == 100, "all partitions are idle: the watermark stays"


def test_a_partition_that_was_idle_cannot_start_a_closed_window_again() -> None:
    one, other, bolt = machines()
    other.idle()
    pass_on(other, bolt)
    read(one, bolt, 5, 25)
    take_snapshot(bolt, Clock({P0: 2, P1: 0}), 1)
    read(other, bolt, 7, 26)
    assert bolt.state.merged() == {20: {"sun": 2}}
    assert bolt.state.late == 1


def test_the_closed_windows_are_part_of_the_snapshot() -> None:
    """A snapshot stores which windows are closed. These windows stay closed after a restart.

    The bolt closes windows while one partition is idle. After the restart, the bolt receives a tuple with event time 7
    from this partition. The tuple is late, because its window is still closed.
    """
    one, other, bolt = machines()
    other.idle()
    pass_on(other, bolt)
    read(one, bolt, 5, 25)
    bolt.observe(MasterState(MasterPhase.SPOUTS_PAUSED_AT, 1, 1, clock=Clock({P0: 2, P1: 0})))
    assert bolt.save is not None
    saved = bolt.save.state.to_value()
    _, _, restored = machines()
    restored.restore(saved)
    read(other, restored, 7)
    assert restored.state.late == 1 and restored.state.merged() == {20: {"sun": 1}}


def test_a_spout_restores_the_newest_event_time() -> None:
    one, _, bolt = machines(lateness=5)
    read(one, bolt, 100)
    one.observe(MasterState(MasterPhase.SPOUTS_PAUSED_AT, 1, 1, clock=Clock({P0: 1, P1: 0})))
    assert one.save is not None
    saved = one.save.state.to_value()
    again, _, bolt = machines(lateness=5)
    again.restore(saved)
    read(again, bolt, 94, 95)
    assert again.late == [(0, 94)] and again.late_count == 1


def test_watermarks_are_the_minimum_over_the_processors_that_carry_a_partition() -> None:
    watermark = Watermark({P0: frozenset(["a", "b"]), P1: frozenset(["a", "b"])})

    def receive(sender: str, **times: int) -> None:
        by_partition = {TopicPartition("words", int(name[1])): time for name, time in times.items()}
        watermark.advance(Payloads(1, sender, (), P0, Clock(), times=by_partition))

    receive("a", p0=50, p1=70)
    assert watermark.time < 0
    receive("b", p0=40, p1=IDLE)
    assert watermark.time == 40 and watermark.marks() == {P0: 40, P1: 70}
    receive("b", p0=60, p1=IDLE)
    assert watermark.time == 50


def test_the_late_tuples_of_a_bolt_are_counted_across_runs(
    servers: str, make_topic: Callable[..., str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A bolt continues to count its late tuples after a restart.

    The bolt subtracts 1,000 ms from each event time. The first snapshot closes all windows before 2,000 ms. The next
    tuples have the times 1,010 and 1,012 ms in the bolt, so they are late.
    """
    topic = make_topic([[b"2000", b"2005"]])
    made = Topology("late")
    made.spout("words", Spout(topic, lambda r: ("sun", int(r.value)), event_time=lambda item: item[1]))
    early = Bolt.windowed(Tumbling(10, MapOf(Sum())), lambda it: it[1] - 1000, lambda it: it[0], lambda it: 1)
    made.bolt("window", early, after="words")
    with start(made, servers, DirectorySnapshotStore(tmp_path), grace_period=None) as runner:
        until(lambda: "window-0" in runner.living and runner.living["window-0"].figures.get("tuples") == 2)
        assert runner.stop(30).late == {}
    produce(servers, topic, [[b"2010", b"2012", b"2011"]])
    found = run(made, servers, DirectorySnapshotStore(tmp_path), until="end").late
    assert found == {"words": 1, "window": 2}
    late = r"window-0: \d tuples arrived after their windows had closed, .* The last of these tuples was \('sun', 201"
    assert re.search(late, caplog.text)
    produce(servers, topic, [[b"2020"]])
    assert run(made, servers, DirectorySnapshotStore(tmp_path), until="end").late == {"words": 1, "window": 3}


def test_a_late_record_of_a_real_topic_is_left_out_and_named(
    servers: str, make_topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic([[b"100", b"120", b"109", b"111"]])
    made = Topology("late")
    spout = Spout(topic, lambda r: ("sun", int(r.value)), event_time=lambda item: item[1], allowed_lateness=10)
    made.spout("words", spout)
    windows = KeptForever(1000, MapOf(Sum()))
    made.bolt("window", Bolt.windowed(windows, lambda i: i[1], lambda i: i[0], lambda i: 1), after="words")
    made.sink("out", Sink(lambda item: None), after="window")
    assert run(made, servers, until="end").states["window"] == {0: {"sun": 3}}
    late = f"1 records of {topic}-0 are late and are left out. The last late record has offset 2 and event time 109 ms"
    assert late in caplog.text
