"""Tests of errors in a running topology: bad input, lost records, a full store, and processors that hang."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.client import NewTopic, TopicPartition
from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import HailstormError, SnapshotError, TopologyError
from hmb.hailstorm.monoids import MapOf, Sum, Tumbling
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.registry import SessionExpiredError
from hmb.hailstorm.runners import RunSettings, ThreadRunner
from hmb.hailstorm.sink import Sink
from hmb.hailstorm.snapshots import DirectorySnapshotStore, MemorySnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Topology
from tests.hailstorm.conftest import produce
from tests.hailstorm.runners.thread_runs import MakeTopic, completed_sum, run, settings, trending
from tests.hailstorm.topologies import count_bolt, word_pair
from tests.waiting import until


def broken(topic: str, **changes: Any) -> Topology:
    topology = Topology("broken")
    topology.spout("words", Spout(topic, **{"convert": word_pair, **changes.pop("spout", {})}))
    topology.bolt("count", changes.pop("bolt", count_bolt()), after="words")
    topology.sink("out", changes.pop("sink", Sink(lambda item: None)), after="count")
    return topology


def test_a_convert_that_raises_stops_the_topology(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic([[b"1", b"2", b"three"]])
    numbers = broken(topic, spout={"convert": lambda record: (int(record.value), 1)})
    problem = f"words-0: convert raised ValueError for the record of {topic}-0 at offset 2, b'three': invalid literal"
    with pytest.raises(HailstormError, match=problem):
        run(numbers, servers)


def test_a_convert_that_raises_sends_dead_letters_if_the_user_wants_it(servers: str, make_topic: MakeTopic) -> None:
    topic, dead = make_topic([[b"1", b"two", b"3"]]), make_topic([[]])
    numbers = broken(topic, spout={"convert": lambda record: (int(record.value), 1), "dead_letters": dead})
    result = run(numbers, servers)
    assert result.states["count"] == {1: 1, 3: 1}
    assert result.dead == {"words": 1}
    (letter,) = hmb.Consumer(servers, dead, until="end")
    assert letter.value == b"two"
    headers = dict(letter.headers)
    assert headers["hailstorm.origin"] == f"{topic}-0@1".encode()
    assert headers["hailstorm.error"].startswith(b"ValueError: invalid literal")


def test_a_record_that_is_of_no_use_is_skipped(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic([[b"sun", b"", b"fog"]])
    result = run(broken(topic, spout={"convert": lambda r: word_pair(r) if r.value else None}), servers)
    assert result.states["count"] == {"sun": 1, "fog": 1}


def test_a_transform_that_raises_is_named_with_its_tuple(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic([[b"sun"] * 3])
    bolt = Bolt.keyed(Sum(), lambda pair: pair[0], lambda pair: pair[1], lambda pair, state: [1 // (state["sun"] - 2)])
    functions = r"one of the user's functions \(lift, merge or transform\)"
    problem = rf"count-0: {functions} raised ZeroDivisionError for \('sun', 1\) from {topic}-0 at offset 1"
    with pytest.raises(HailstormError, match=problem):
        run(broken(topic, bolt=bolt), servers)


def test_a_state_that_cannot_be_stored_is_named(servers: str, make_topic: MakeTopic) -> None:
    bolt = Bolt(lambda item, state: [], set, set.union, lambda item: {complex(1)})
    problem = r"the state of count-0 cannot be stored: .*cannot store a complex.*hailstorm\.register"
    with pytest.raises(HailstormError, match=problem):
        run(broken(make_topic([[b"sun"]]), bolt=bolt), servers)


def test_a_sink_that_raises_is_tried_again_and_then_named(servers: str, make_topic: MakeTopic) -> None:
    failures = iter([OSError("the database is down")] * 2)

    def write(item: Any) -> None:
        for failure in failures:
            raise failure

    topic = make_topic([[b"sun"]])
    assert run(broken(topic, sink=Sink(write)), servers).states["count"] == {"sun": 1}

    def never(item: Any) -> None:
        raise OSError("the database is down")

    with pytest.raises(HailstormError, match="3 restarts without progress, most often because out-0 crashed: OSError"):
        run(broken(topic, sink=Sink(never)), servers, max_restarts=2)


def test_a_topic_that_does_not_exist_is_named(servers: str) -> None:
    with pytest.raises(TopologyError, match="the topic nowhere cannot be read"):
        run(broken("nowhere"), servers)


def test_records_that_expired_before_they_were_read_are_named(
    servers: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic([[b"sun"] * 10])
    run(broken(topic), servers, DirectorySnapshotStore(tmp_path))
    produce(servers, topic, [[b"fog"] * 10])
    with hmb.Admin(servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 15})
    problem = f"the records of {topic}-0 at offsets 10 to 14 expired before they were read"
    with pytest.raises(HailstormError, match=problem):
        run(broken(topic), servers, DirectorySnapshotStore(tmp_path))


WINDOWS = Bolt.windowed(Tumbling(1000, MapOf(Sum())), lambda pair: pair[1], lambda pair: pair[0], lambda pair: 1)


@pytest.mark.parametrize("bolt", [count_bolt(), WINDOWS], ids=["keyed", "windowed"])
def test_a_grouping_that_separates_a_key_ends_the_run_with_an_error(
    servers: str, make_topic: MakeTopic, bolt: Bolt
) -> None:
    """If a grouping sends one key to several instances, the run ends with an error.

    `check` finds this mistake earlier. If nobody runs `check`, the topology must not produce wrong outputs silently.
    """
    topology = Topology("separated")
    spout = Spout(make_topic([[b"sun"] * 40]), lambda it: ("sun", it.offset), event_time=lambda pair: pair[1])
    topology.spout("words", spout)
    topology.bolt("count", bolt, after="words", parallelism=2, group=lambda pair: pair[1])
    with pytest.raises(TopologyError, match="count: two instances have received tuples of the key 'sun'"):
        run(topology, servers)


def test_records_that_expired_before_the_first_start_are_named(servers: str, make_topic: MakeTopic) -> None:
    """The first start of a topology fails if records have already expired.

    The error message names the expired records. Without these records, the topology would count too few words. The
    option `--allow-expired` lets the topology start anyway.
    """
    topic = make_topic([[b"sun"] * 10])
    with hmb.Admin(servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 4})
    problem = f"the records of {topic}-0 at offsets 0 to 3 expired before they were read.*--allow-expired"
    with pytest.raises(HailstormError, match=problem):
        run(broken(topic), servers)
    assert run(broken(topic), servers, allow_expired=True).states["count"] == {"sun": 6}
    assert run(broken(topic, spout={"offset": "latest"}), servers).states["count"] == {}


def test_an_allowed_start_continues_at_its_snapshot(servers: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic([[b"sun"] * 10])
    with hmb.Admin(servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 4})
    run(broken(topic), servers, DirectorySnapshotStore(tmp_path), allow_expired=True)
    produce(servers, topic, [[b"fog"]])
    assert run(broken(topic), servers, DirectorySnapshotStore(tmp_path)).states["count"] == {"sun": 6, "fog": 1}


def remake(servers: str, topic: str, logs: list[list[bytes]]) -> None:
    with hmb.Admin(servers) as admin:
        admin.delete_topics([topic])
        until(lambda: topic not in {it.name for it in admin.list_topics()})
        admin.create_topics([NewTopic(topic, len(logs))])
    produce(servers, topic, logs)


def test_a_topic_that_was_made_again_is_refused_at_the_start(
    servers: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic([[b"sun"] * 10])
    run(broken(topic), servers, DirectorySnapshotStore(tmp_path))
    remake(servers, topic, [[b"fog"] * 20])
    with pytest.raises(TopologyError, match=f"another topology.*the topic {topic} was created again"):
        run(broken(topic), servers, DirectorySnapshotStore(tmp_path))


def test_a_topic_that_is_made_again_while_it_is_read_completes_no_snapshot(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic([[b"sun"] * 10])
    store = MemorySnapshotStore()
    with ThreadRunner(broken(topic), settings(servers, end=False, grace=0.02), store) as runner:
        until(lambda: completed_sum(runner) == 10)
        remake(servers, topic, [[b"fog"] * 20])
        problem = f"{topic} (was created again|cannot be read any more: there is no topic)"
        with pytest.raises(HailstormError, match=problem):
            runner.wait(60)
    assert store.completed() == Clock({TopicPartition(topic, 0): 10})


def test_new_partitions_are_noticed_and_read_at_the_next_start(
    servers: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic([[b"sun"] * 10])
    store = DirectorySnapshotStore(tmp_path)
    with ThreadRunner(broken(topic), settings(servers, end=False, grace=0.02), store) as runner:
        until(lambda: completed_sum(runner) == 10)
        with hmb.Admin(servers) as admin:
            admin.create_partitions({topic: 3})
        with pytest.raises(HailstormError, match=f"{topic} has 3 partitions, but it had 1.*Start the topology again"):
            runner.wait(60)
    produce(servers, topic, [[b"sun"], [b"fog"], [b"fog", b"rain"]])
    result = run(broken(topic), servers, DirectorySnapshotStore(tmp_path))
    assert result.states["count"] == {"sun": 11, "fog": 2, "rain": 1}


def test_a_changed_topology_needs_another_store(servers: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic([[b"sun"]])
    run(broken(topic), servers, DirectorySnapshotStore(tmp_path))
    with pytest.raises(TopologyError, match="holds snapshots of another topology"):
        run(trending(topic), servers, DirectorySnapshotStore(tmp_path))


class FullStore(MemorySnapshotStore):
    """A snapshot store that cannot save while `is_full` is set."""

    is_full = True

    def save(self, epoch: int, processor: str, clock: Clock, state: bytes) -> None:
        if self.is_full and processor == "count-0":
            raise SnapshotError("count-0: the disk is full")
        super().save(epoch, processor, clock, state)


def test_a_full_store_ends_a_run_with_an_error_and_without_a_wrong_count(servers: str, make_topic: MakeTopic) -> None:
    with pytest.raises(HailstormError, match="the last snapshot was not saved: count-0: the disk is full"):
        run(broken(make_topic([[b"sun"]])), servers, FullStore())


def test_snapshots_go_on_when_a_full_store_has_room_again(servers: str, make_topic: MakeTopic) -> None:
    topic, store = make_topic([[b"sun"] * 10]), FullStore()
    with ThreadRunner(broken(topic), settings(servers, end=False, grace=0.02), store) as runner:
        until(lambda: any(report.not_saved for report in runner.living.values()), "a save fails")
        produce(servers, topic, [[b"sun"] * 5])
        store.is_full = False
        until(lambda: completed_sum(runner) == 15, "a snapshot")
        assert runner.master is not None and runner.master.epoch == 1, "no restart was needed"
        assert runner.stop(30).states["count"] == {"sun": 15}


def test_a_damaged_snapshot_is_named_with_what_to_do(servers: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic([[b"sun"]])
    run(broken(topic), servers, DirectorySnapshotStore(tmp_path))
    (path,) = (tmp_path / "count-0").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(HailstormError, match=r"no intact snapshot of count-0 at the complete clock.*restore"):
        run(broken(topic), servers, DirectorySnapshotStore(tmp_path))


def test_a_processor_that_hangs_is_named(servers: str, make_topic: MakeTopic) -> None:
    """If a processor hangs, a warning names it.

    A thread cannot be killed. The topology therefore begins a new epoch, and waits until the thread has ended.
    """
    hangs = threading.Event()

    def write(item: Any) -> None:
        hangs.wait(30)

    topology = broken(make_topic([[b"sun"]]), sink=Sink(write))
    options = RunSettings(servers, "end", NegotiatorSettings(0.01, patience=0.3))
    with ThreadRunner(topology, options, MemorySnapshotStore()) as runner:
        until(lambda: runner.master is not None and runner.master.epoch >= 2, "a new epoch")
        until(lambda: runner.waits_for() == ["out-0"], "all others have registered")
        hangs.set()
        assert runner.wait(60).states["count"] == {"sun": 1}


def test_an_idle_processor_notices_that_its_session_has_expired(servers: str, make_topic: MakeTopic) -> None:
    """An idle processor notices that its session with the registry has expired.

    An idle processor writes nothing to the registry, so no write can fail. When the session has expired, the registry
    sends nothing to the processor. So the processor must check the session itself.
    """
    options = settings(servers, end=False, grace=None)
    with ThreadRunner(trending(make_topic([[b"sun"], []])), options, MemorySnapshotStore()) as it:
        until(lambda: "topn-0" in it.living and it.living["topn-0"].figures.get("tuples") == 1)
        thread = it.threads["topn-0"]
        assert thread._session is not None
        thread._session.close()
        until(lambda: not thread.is_alive())
        assert isinstance(thread.error, SessionExpiredError)
        it.supervise()
        until(lambda: it.master is not None and it.master.epoch == 2 and it.master.lets_spouts_flow)
