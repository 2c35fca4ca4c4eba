"""Tests of the pytest plugin. Each test starts a second pytest that loads the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import hmb
from hmb.storage.state.identity import DataDirectoryError

pytest_plugins = "pytester"


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    assert [each.value for each in entry_points(group="pytest11", name="hmb")] == ["hmb.testing.plugin"]


def test_the_plugin_imports_nothing_of_hmb_until_a_fixture_is_used() -> None:
    code = "import hmb.testing.plugin, sys; print(sorted(name for name in sys.modules if name.startswith('hmb')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['hmb', 'hmb.testing', 'hmb.testing.plugin']"


def test_each_test_has_a_topic_of_its_own_on_one_broker(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import hmb
        import pytest

        seen = set()

        @pytest.mark.parametrize("number", [1, 2])
        def test_topic(hmb_topic, hmb_broker, kafka_bootstrap_servers, number):
            assert hmb_broker.topics() == [hmb_topic]  # the topic of the first test is deleted
            seen.add((hmb_topic, kafka_bootstrap_servers))
            with hmb.Producer(kafka_bootstrap_servers) as producer:
                producer.send(hmb_topic, b"a").result()
            assert [record.value for record in hmb_broker.records(hmb_topic)] == [b"a"]

        def test_two():
            assert len({topic for topic, _ in seen}) == 2
            assert len({address for _, address in seen}) == 1
    """)
    run.runpytest_subprocess().assert_outcomes(passed=3)


def test_a_broker_that_a_test_has_killed_serves_the_next_test(run: pytest.Pytester) -> None:
    run.makepyfile("""
        def test_kill(hmb_broker, hmb_topic):
            hmb_broker.kill()

        def test_next(hmb_broker, hmb_topic):
            assert hmb_broker.produce(hmb_topic, "a") == 0
    """)
    run.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_broker_that_a_test_has_killed_deletes_the_topic_of_this_test(run: pytest.Pytester) -> None:
    run.makepyfile("""
        def test_kill(hmb_broker, hmb_topic):
            hmb_broker.kill()

        def test_without_a_topic(hmb_broker):
            assert hmb_broker.topics() == []
    """)
    run.runpytest_subprocess().assert_outcomes(passed=2)


def test_only_a_test_that_records_requests_shows_them(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import hmb

        def test_records(hmb_broker, hmb_topic, hmb_requests):
            with hmb.Producer(hmb_broker.bootstrap_servers) as producer:
                producer.send(hmb_topic, b"a").result()
            assert hmb_requests.of("Produce")

        def test_fails(hmb_broker):
            assert False
    """)
    result = run.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*hmb: last requests*")


def test_faults_that_a_test_adds_to_the_broker_end_with_the_test(run: pytest.Pytester) -> None:
    run.makepyfile("""
        def test_adds(hmb_broker):
            hmb_broker.disk.add("full")
            hmb_broker.faults.add("Produce", drop=True)

        def test_next(hmb_broker):
            assert hmb_broker.faults.added == [] and hmb_broker.disk.added == []
            hmb_broker.produce("t", "a")
    """)
    run.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_failed_sync_does_not_disturb_the_next_test(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import pytest
        import hmb

        def test_fails(hmb_broker):
            hmb_broker.produce("t", "a")
            hmb_broker.disk.add("failing")
            with pytest.raises(hmb.KafkaError):
                for _, log in hmb_broker._running.logs.items():
                    log.flush()

        def test_next(hmb_broker):
            hmb_broker.produce("t", "a")
    """)
    run.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_report_shows_active_faults_and_each_line_once(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import logging
        import hmb

        def test_fails(hmb_broker, hmb_topic):
            fault = hmb_broker.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", delay=0.01, times=1)
            hmb_broker.disk.add("slow", seconds=0.001)
            with hmb.Producer(hmb_broker.bootstrap_servers, client_id="shop") as producer:
                producer.send(hmb_topic, b"a").result()
            logging.getLogger("hmb.broker.topics").warning("a warning")
            assert False
    """)
    result = run.runpytest_subprocess()
    text = result.stdout.str()
    assert (
        "a fault applies to the PRODUCE request of the client 'shop': error=NOT_LEADER_OR_FOLLOWER, delay=0.01" in text
    )
    assert "a fault simulates a slow disk during a write or a sync" in text
    result.stdout.fnmatch_lines(["*hmb: active faults*", '{"api": "PRODUCE"*"count": 1}', '{"disk": "slow"*'])
    assert text.count("created topic test_fails") == text.count("a warning\n") == 1
    assert "disconnected" not in text


def test_the_report_of_a_failed_test_shows_the_log_and_the_last_records(run: pytest.Pytester) -> None:
    run.makepyfile("""
        def test_before(hmb_broker):
            hmb_broker.create_topic("earlier")

        def test_fails(hmb_topic, hmb_broker):
            hmb_broker.produce("orders", *map(str, range(7)), key="k")
            assert False
    """)
    output = run.runpytest_subprocess().stdout
    output.fnmatch_lines(
        [
            "*hmb: log of the broker*",
            "*INFO*created topic orders*",
            "*hmb: last records*",
            "orders: 7 records, the last 5:",
            "  orders-0@6 b'k' = b'6'",
        ]
    )
    log = output.str().partition("hmb: log of the broker")[2].partition("hmb: last records")[0]
    assert "created topic earlier" not in log  # This line was logged during the previous test.


def test_faults_end_with_their_test(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import hmb

        def test_fault(hmb_broker, hmb_topic, hmb_faults):
            fault = hmb_faults.add("PRODUCE", cut="after", times=1)
            with hmb.Producer(hmb_broker.bootstrap_servers) as producer:
                producer.send(hmb_topic, b"a").result()
            assert fault.count == 1
            hmb_faults.add("PRODUCE", cut="before")

        def test_no_fault(hmb_broker, hmb_topic):
            with hmb.Producer(hmb_broker.bootstrap_servers) as producer:
                producer.send(hmb_topic, b"a").result(timeout=30)
    """)
    run.runpytest_subprocess().assert_outcomes(passed=2)


def test_another_broker_is_tested_with_an_option(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import hmb

        def test_address(kafka_bootstrap_servers, hmb_topic):
            with hmb.Producer(kafka_bootstrap_servers) as producer:
                producer.send(hmb_topic, b"a").result()

        def test_needs_the_embedded_broker(hmb_broker):
            pass
    """)
    with hmb.Broker() as broker:
        result = run.runpytest_subprocess(f"--hmb-bootstrap={broker.bootstrap_servers}", "-rs")
        assert broker.topics() == []
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*--hmb-bootstrap names another one*"])


def test_a_kept_directory_is_named_at_the_end(run: pytest.Pytester) -> None:
    run.makepyfile("""
        def test_topic(hmb_broker, hmb_topic):
            hmb_broker.produce(hmb_topic, "a")
    """)
    os.environ["TMPDIR"] = str(run.path)
    try:
        result = run.runpytest_subprocess("--hmb-keep")
    finally:
        del os.environ["TMPDIR"]
    (line,) = (line for line in result.outlines if "the broker's data is kept in" in line)
    directory = Path(line.rpartition(" ")[2])
    with hmb.Broker(directory) as broker:
        (topic,) = broker.topics()
        assert [record.value for record in broker.records(topic)] == [b"a"]


def test_the_broker_of_a_failed_test_stays_open_with_its_page(run: pytest.Pytester) -> None:
    """The broker's page shows the topic of the failed test, because no fixture has deleted the topic yet."""
    run.makepyfile("""
        import json, urllib.request
        from hmb.testing.fixtures import page

        def read_state(show):
            def show_and_read(line):
                show(line)
                if "open at" in line:
                    link = line.split()[-1].replace("/?", "/state?")
                    state = json.load(urllib.request.urlopen(link))
                    show(f"topics: {[each['name'] for each in state['topics']]}")
            return show_and_read

        keep_open = page.keep_open
        page.keep_open = lambda broker, test, show: keep_open(broker, test, read_state(show))

        def test_fails(hmb_broker, hmb_topic):
            assert not hmb_topic

        def test_without_broker():
            assert False
    """)
    result = run.run(sys.executable, "-m", "pytest", "--hmb-ui", stdin=b"\n")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "*::test_fails has failed; its broker is open at http://127.0.0.1:*/[?]token=*",
            "*topics: *'test_fails-*",
            "hmb: press Enter to continue",
        ]
    )
    assert str(result.stdout).count("has failed; its broker") == 1


def test_consumers_that_a_test_leaves_open_do_not_stop_the_run(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import hmb

        left = []

        def test_leaves_a_consumer_open(hmb_topic, hmb_broker, kafka_bootstrap_servers):
            hmb_broker.produce(hmb_topic, "a")
            consumer = hmb.Consumer(kafka_bootstrap_servers, hmb_topic, group="g", offset="earliest")
            assert next(iter(consumer)).value == b"a"
            left.append(consumer)

        def test_next(hmb_topic, hmb_broker):
            assert hmb_broker.topics() == [hmb_topic]
    """)
    run.runpytest_subprocess(timeout=60).assert_outcomes(passed=2)


def test_a_second_broker_on_a_directory_gets_one_clear_line(tmp_path: Path) -> None:
    with hmb.Broker(tmp_path), pytest.raises(DataDirectoryError, match="is in use by another broker; stop it") as error:
        hmb.Broker(tmp_path).start()
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_a_test_that_moves_the_clock_leaves_the_real_time_to_the_next_test(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import time
        from datetime import timedelta

        import hmb

        def test_a_week_passes(hmb_broker, hmb_topic, hmb_clock, kafka_bootstrap_servers):
            hmb_broker.create_topic("week", config={"retention.ms": timedelta(days=7)})
            hmb_broker.produce("week", "a")
            hmb_clock.advance(days=8, expire_members=True)
            assert hmb_broker.records("week") == []
            read(kafka_bootstrap_servers, hmb_broker, hmb_topic)
            hmb_broker.stop()

        def test_the_time_is_real(hmb_broker, hmb_topic, kafka_bootstrap_servers):
            assert hmb_broker.topics() == [hmb_topic]
            read(kafka_bootstrap_servers, hmb_broker, hmb_topic)  # with the same group as the first test
            assert abs(hmb_broker.records(hmb_topic)[0].timestamp / 1000 - time.time()) < 3600

        def read(servers, broker, topic):
            broker.produce(topic, "b")
            for protocol in ("classic", "consumer"):
                with hmb.Consumer(servers, topic, group=f"g-{protocol}", group_protocol=protocol) as consumer:
                    assert [record.value for record in consumer.poll(timeout=30)] == [b"b"]
    """)
    run.runpytest_subprocess().assert_outcomes(passed=2)


def test_each_test_has_a_group_of_its_own(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import pytest

        seen = set()

        @pytest.mark.parametrize("number", [1, 2])
        def test_group(hmb_group, number):
            assert hmb_group.startswith(f"test_group-{number}")
            seen.add(hmb_group)

        def test_two():
            assert len(seen) == 2
    """)
    run.runpytest_subprocess().assert_outcomes(passed=3)


@pytest.mark.parametrize("servers", ["127.0.0.1:1", "nothing"])
def test_a_bootstrap_address_without_a_broker_is_one_line(run: pytest.Pytester, servers: str) -> None:
    run.makepyfile("def test_address(kafka_bootstrap_servers): pass")
    result = run.runpytest_subprocess(f"--hmb-bootstrap={servers}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --hmb-bootstrap: *{servers}*"])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()
