"""Tests of the errors that wrong arguments raise, and of the attributes that `help(hmb.Broker)` lists."""

from __future__ import annotations

import pydoc
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import hmb
from hmb.testing import ManualClock, SimulatedCluster

WRONG: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda _: hmb.Broker(as_version=2.8), hmb.ConfigError, r'as_version=2.8: the value must be a text, such as "2.8"'),  # type: ignore[arg-type]
    (lambda _: ManualClock().advance(5), TypeError, r"advance\(5\): give the unit, such as advance\(hours=1\)"),  # type: ignore[arg-type]
    (
        lambda broker: broker.faults.add("Produce", error=19),
        hmb.FaultError,
        "error=19: the value must be the name of an error; example: NOT_LEADER_OR_FOLLOWER",
    ),
    (
        lambda broker: broker.faults.add(0, drop=True),
        hmb.FaultError,
        "api=0: the value must be the name of an API; examples: Produce, Fetch, JoinGroup",
    ),
    (
        lambda broker: broker.faults.add("Produce", delay="1x"),
        hmb.FaultError,
        "delay='1x': the value must be a number of seconds, a text such as '500ms', or a timedelta",
    ),
    (
        lambda broker: broker.faults.add("Produce", drop=1, nth="2"),
        hmb.FaultError,
        "nth='2': the value must be a whole number",
    ),
    (lambda broker: broker.faults.add("Produce", drop=1, topic=5), hmb.FaultError, "topic=5: the value must be a text"),
    (lambda broker: broker.disk.slow("1x"), hmb.FaultError, "seconds='1x': the value must be a number of seconds"),
    (
        lambda broker: broker.produce("t", "a", key=5),
        TypeError,
        "key=5: the value must be bytes, a text or None, not int",
    ),
    (
        lambda broker: broker.produce("t", {"a": 1}),
        TypeError,
        "value={'a': 1}: the value must be bytes, a text or None, not dict",
    ),
    (
        lambda broker: broker.produce("t", "a", headers=(("h", "x"),)),
        TypeError,
        r"headers: \('h', 'x'\) must be a pair of a text and bytes, such as \('source', b'shop'\)",
    ),
    (
        lambda broker: broker.produce("t", "a", timestamp="now"),
        TypeError,
        "timestamp='now': the value must be a number of milliseconds since 1970",
    ),
]


@pytest.mark.parametrize(("use", "kind", "message"), WRONG, ids=[message[:16] for _, _, message in WRONG])
def test_a_wrong_type_gets_one_clear_line(
    broker: hmb.Broker, use: Callable[[Any], object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as error:
        use(broker)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("delay", ["500ms", 0.5, timedelta(milliseconds=500)])
def test_a_delay_has_a_unit(broker: hmb.Broker, delay: str | float | timedelta) -> None:
    assert broker.faults.add("Produce", delay=delay).delay == 0.5
    assert broker.disk.add("slow", seconds=delay).seconds == 0.5
    broker.disk.clear()


@pytest.mark.parametrize(
    ("name", "value", "units"),
    [("log.segment.bytes", "1MiBB", "known units: B, kB, .*MiB"), ("log.retention.ms", "1hh", "known units: ms, s, m")],
)
def test_an_unknown_unit_names_the_known_ones(name: str, value: str, units: str) -> None:
    with pytest.raises(hmb.ConfigError, match=f"{name}={value}: the value has an unknown unit; {units}"):
        hmb.Broker(config={name: value})


def test_a_misspelt_name_gets_one_suggestion(broker: hmb.Broker) -> None:
    with pytest.raises(hmb.FaultError, match=r"no API has the name 'Prodce', did you mean 'Produce'\?$"):
        broker.faults.add("Prodce", drop=True)
    with pytest.raises(hmb.FaultError, match=r"no API has the name 'xyz'; examples: Produce, Fetch, JoinGroup$"):
        broker.faults.add("xyz", drop=True)


@pytest.mark.parametrize("name", ["faults", "disk", "clock", "requests"])
def test_help_lists_what_a_test_uses(name: str) -> None:
    assert f"\n |  {name}\n" in pydoc.plain(pydoc.render_doc(hmb.Broker))


def test_a_cluster_has_faults_and_a_clock() -> None:
    clock = ManualClock()
    with SimulatedCluster(2, clock=clock) as cluster, hmb.Producer(cluster.bootstrap_servers) as producer:
        fault = cluster.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1)
        cluster.broker.create_topic("t", config={"retention.ms": "1h"})
        producer.send("t", b"a").result()
        assert fault.count == 1
        clock.advance(hours=2)
        assert cluster.broker.records("t") == []
        cluster.stop(1)
        cluster.stop(1)
        assert cluster.leader("t", 0) == 0
