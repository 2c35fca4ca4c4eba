"""Tests of the embedded broker: settings, restarts, kills, a reset, and access without a client."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import hmb
from hmb.broker.config.keys import ConfigError
from hmb.coordinator.groups import GroupCoordinator
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from hmb.testing import embedded
from hmb.testing.settings import setting_text
from tests.waiting import until


def test_a_setting_is_a_text_a_number_a_bool_or_a_time() -> None:
    assert setting_text("num.partitions", 3) == "3"
    assert setting_text("num.partitions", "3") == "3"
    assert setting_text("log.flush.acks.all", True) == "true"
    assert setting_text("log.retention.ms", timedelta(hours=1)) == "3600000"
    assert setting_text("log.retention.hours", timedelta(days=2)) == "48"
    assert setting_text("retention.ms", "1h") == "3600000"
    assert setting_text("segment.bytes", "1MiB") == "1048576"
    with pytest.raises(ConfigError, match="the value must be a whole number of hours"):
        setting_text("log.retention.hours", "90m")
    with pytest.raises(ConfigError, match="whole number of milliseconds"):
        setting_text("log.retention.ms", timedelta(microseconds=1))
    with pytest.raises(ConfigError, match="the value must be a whole number of hours"):
        setting_text("log.retention.hours", timedelta(minutes=90))
    with pytest.raises(ConfigError, match="not a time"):
        setting_text("num.partitions", timedelta(hours=1))


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    """The embedded broker refuses an unknown setting, and the error suggests the nearest name.

    Before a bug was fixed, a misspelt setting was ignored.
    """
    with pytest.raises(ConfigError, match=r"'num\.partition', did you mean 'num\.partitions'"):
        hmb.Broker(config={"num.partition": 3})
    with hmb.Broker() as broker, pytest.raises(ConfigError, match=r"did you mean 'retention\.ms'"):
        broker.create_topic("t", config={"retention.m": 1})


def test_a_first_member_waits_for_no_further_members() -> None:
    with hmb.Broker() as broker:
        config = broker._context.config
    assert (config.classic.initial_delay, config.offsets_partitions, config.flush_acks_all) == (0, 1, False)


def test_a_test_arranges_and_asserts_without_a_client() -> None:
    with hmb.Broker() as broker:
        broker.create_topic("t", partitions=2, config={"retention.ms": timedelta(days=1)})
        assert broker.produce("t", "a", b"b", key="k", partition=1, timestamp=7) == 0
        assert broker.produce("t", None, partition=0) == 0
        assert [(each.partition, each.offset, each.key, each.value) for each in broker.records("t")] == [
            (0, 0, None, None),
            (1, 0, b"k", b"a"),
            (1, 1, b"k", b"b"),
        ]
        assert broker.records("t")[1].timestamp == 7
        assert broker.topics() == ["t"]
        assert broker.committed("nobody") == {}


def test_a_consumer_reads_what_the_test_produced_and_its_commit_is_seen() -> None:
    with hmb.Broker() as broker:
        broker.produce("t", "a", "b")
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g", offset="earliest") as consumer:
            records = iter(consumer)
            assert [next(records).value, next(records).value] == [b"a", b"b"]
            consumer.commit()
        assert broker.committed("g") == {TopicPartition("t", 0): 2}


def test_more_records_than_one_read_returns() -> None:
    with hmb.Broker() as broker:
        for _ in range(3):
            broker.produce("t", *[bytes(900_000)])
        assert [each.offset for each in broker.records("t")] == [0, 1, 2]


def test_topics_that_do_not_exist_have_no_records() -> None:
    with hmb.Broker() as broker, pytest.raises(KafkaError) as raised:
        broker.records("none")
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("end", ["stop", "kill", "nothing"])
def test_a_restart_keeps_port_directory_and_records(end: str) -> None:
    with hmb.Broker() as broker:
        servers, directory = broker.bootstrap_servers, broker.data_dir
        broker.produce("t", "a")
        if end != "nothing":
            getattr(broker, end)()
            assert not broker.is_running
        broker.restart()
        assert (broker.bootstrap_servers, broker.data_dir) == (servers, directory)
        assert [each.value for each in broker.records("t")] == [b"a"]
    assert not directory.exists()


def test_a_kill_leaves_no_marker_of_a_clean_stop_and_a_stop_does(tmp_path: Path) -> None:
    marker = tmp_path / ".kafka_cleanshutdown"
    broker = hmb.Broker(tmp_path).start()
    broker.produce("t", "a")
    broker.kill()
    assert not marker.exists()
    broker.start()
    broker.stop()
    assert marker.exists()
    with pytest.raises(RuntimeError, match="not running"):
        hmb.Broker(tmp_path).topics()


def test_a_running_broker_is_not_started_again() -> None:
    with hmb.Broker() as broker, pytest.raises(RuntimeError, match="running already"):
        broker.start()


def test_a_client_survives_a_kill_and_a_restart() -> None:
    with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("t", b"a").result(timeout=30)
        broker.kill()
        broker.restart()
        producer.send("t", b"b").result(timeout=30)
        assert [each.value for each in broker.records("t")] == [b"a", b"b"]


def test_a_kill_does_not_answer_a_waiting_consumer() -> None:
    """A stopped broker first answers a waiting fetch. A killed broker closes the connection without an answer."""
    with hmb.Broker() as broker:
        broker.create_topic("t")
        with hmb.Consumer(broker.bootstrap_servers, "t") as consumer:
            consumer.poll(0.2)
            begin = time.monotonic()
            broker.kill()
            # A stop waits up to four seconds (STOP_TIMEOUT) for the broker's threads. A kill must not wait so long.
            assert time.monotonic() - begin < 4


def test_a_reset_deletes_topics_groups_and_offsets() -> None:
    with hmb.Broker() as broker:
        broker.produce("t", "a")
        with hmb.Consumer(broker.bootstrap_servers, "t", group="g", offset="earliest") as consumer:
            next(iter(consumer))
            consumer.commit()
        broker.reset()
        assert broker.topics() == []
        assert broker.committed("g") == {}
        assert broker.produce("t", "b") == 0
        broker.restart()
        assert [each.value for each in broker.records("t")] == [b"b"]


@pytest.mark.parametrize("is_temporary", [True, False])
def test_only_a_temporary_directory_is_not_synced(
    is_temporary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hmb.Broker(None if is_temporary else tmp_path) as broker:
        synced: list[int] = []
        monkeypatch.setattr("os.fsync", synced.append)
        broker.create_topic("events")
        monkeypatch.undo()
    assert bool(synced) is not is_temporary


def test_topics_survive_a_kill_on_a_temporary_directory() -> None:
    with hmb.Broker() as broker:
        broker.produce("events", "a")
        broker.kill()
        broker.start()
        assert [each.value for each in broker.records("events")] == [b"a"]


def test_a_client_that_has_closed_its_connections_is_not_counted() -> None:
    """A client that has closed its connections no longer counts as connected.

    Before a bug was fixed, a closed consumer was counted for another 0.5 s, because the consumer's last Fetch request
    still waited for records.
    """
    with hmb.Broker() as broker:
        broker.create_topic("t")
        requests = broker.requests
        with hmb.Consumer(broker.bootstrap_servers, "t", max_wait_ms=5000) as consumer:
            assert consumer.poll(timeout=0.2) == []
            until(lambda: requests.of("LIST_OFFSETS"), "the start of the reading")
            assert broker.connected_clients
        assert broker.connected_clients == []


@pytest.mark.parametrize(
    "use",
    [
        lambda broker: broker.produce("t", "a"),
        lambda broker: broker.create_topic("t"),
        lambda broker: broker.delete_topic("t"),
        lambda broker: broker.topics(),
        lambda broker: broker.partitions("t"),
        lambda broker: broker.records("t"),
        lambda broker: broker.committed("g"),
        lambda broker: broker.run_retention(),
        lambda broker: broker.compact(),
        lambda broker: broker.reset(),
        lambda broker: broker.disk.corrupt("t"),
    ],
)
@pytest.mark.parametrize("end", ["stop", "kill", "never started"])
def test_a_broker_that_does_not_run_says_so(use: Callable[[hmb.Broker], object], end: str) -> None:
    broker = hmb.Broker()
    if end != "never started":
        broker.start().create_topic("t")
        getattr(broker, end)()
    with pytest.raises(hmb.BrokerNotRunning, match=r"the broker is not running; call start\(\) or restart\(\)"):
        use(broker)
    broker.close()


def test_a_broker_that_never_ran_ends_without_an_effect_and_restarts() -> None:
    broker = hmb.Broker()
    broker.kill()
    broker.stop()
    assert not broker.is_running
    assert broker.restart().topics() == []
    broker.close()


def test_a_start_that_cannot_load_the_groups_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the broker cannot load its groups within a time limit, its start ends with an error.

    In this test, the time limit is short, and the loader of the groups never ends.
    """
    monkeypatch.setattr(embedded, "LONGEST_LOADING", 0.01)
    monkeypatch.setattr(GroupCoordinator, "_load", lambda coordinator: None)
    broker = hmb.Broker()
    with pytest.raises(TimeoutError, match=r"has not loaded its groups after 0\.01 s"):
        broker.start()
    assert not broker.is_running
    monkeypatch.undo()
    with broker:
        assert broker.is_running
