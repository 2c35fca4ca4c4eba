"""Tests of the pytest plugin in several runs at once, and in the workers of pytest-xdist."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

pytest_plugins = "pytester"


def test_two_runs_at_once_do_not_disturb_each_other(run: pytest.Pytester) -> None:
    """Two runs of pytest at the same time do not disturb each other.

    Each process starts its own broker, as workers of pytest-xdist do.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    run.makepyfile("""
        import socket

        def test_meet(hmb_broker, hmb_topic):
            hmb_broker.produce(hmb_topic, "a")
            with socket.create_connection(("127.0.0.1", PORT), timeout=60) as meeting:
                meeting.sendall(b"x")
                assert meeting.recv(1) == b"y"  # both brokers run
            assert len(hmb_broker.records(hmb_topic)) == 1
    """.replace("PORT", str(port)))
    with listener:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(run.path)]
        runs = [subprocess.Popen(command, cwd=run.path, stdout=subprocess.DEVNULL) for _ in range(2)]
        listener.settimeout(60)
        clients = [listener.accept()[0] for _ in runs]
        for client in clients:
            client.sendall(b"y")
        assert [each.wait(60) for each in runs] == [0, 0]
        for client in clients:
            client.close()


def test_two_workers_of_xdist_have_a_broker_each(run: pytest.Pytester) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    run.makepyfile("""
        import os
        import pathlib
        import hmb
        import pytest

        @pytest.mark.parametrize("number", range(20))
        def test_topic(hmb_topic, hmb_broker, kafka_bootstrap_servers, number):
            assert hmb_broker.topics() == [hmb_topic]
            with hmb.Producer(kafka_bootstrap_servers) as producer:
                producer.send(hmb_topic, b"a").result()
            assert [record.value for record in hmb_broker.records(hmb_topic)] == [b"a"]
            pathlib.Path(os.environ["PYTEST_XDIST_WORKER"]).write_text(kafka_bootstrap_servers)
    """)
    run.runpytest_subprocess("-n2", "-p", "xdist").assert_outcomes(passed=20)
    addresses = [(run.path / worker).read_text() for worker in ("gw0", "gw1")]
    assert addresses[0] != addresses[1]


def test_workers_of_xdist_report_kept_directories_and_open_connections(run: pytest.Pytester) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    run.makepyfile("""
        import hmb
        import pytest

        left = []

        @pytest.mark.parametrize("number", range(2))
        def test_leaves(hmb_topic, hmb_broker, number):
            hmb_broker.produce(hmb_topic, "a")
            left.append(hmb.Consumer(hmb_broker.bootstrap_servers, hmb_topic, offset="earliest"))
            assert next(iter(left[-1])).value == b"a"
    """)
    os.environ["TMPDIR"] = str(run.path)
    try:
        result = run.runpytest_subprocess("-n1", "-p", "xdist", "--hmb-keep")
    finally:
        del os.environ["TMPDIR"]
    result.stdout.fnmatch_lines(
        [
            f"hmb: the broker's data is kept in {run.path}*",
            "hmb: *::test_leaves?0? left * open; close each client*",
            "hmb: *::test_leaves?1? left * open; close each client*",
        ]
    )
