"""Tests of `hmb state` and `hmb ui`, and of the ports of a broker that offers its state over HTTP."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from hmb.defaults import STATE_FILE
from tests.cli.conftest import Hmb, start
from tests.monitoring.served_state import served_state


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served_state(tmp_path) as url:
        yield url


def test_state_prints_all_views(run: Hmb, url: str, tmp_path: Path) -> None:
    lines = run("state", "--data-dir", str(tmp_path)).stdout.splitlines()
    assert "1 topic, 2 partitions, " in lines[0]
    assert [line.split()[:3] for line in lines if line.startswith("orders")] == [
        ["orders", "0", "0"],
        ["orders", "1", "0"],
    ]
    assert any(line.startswith("Produce") for line in lines)
    assert "groups: none" in lines
    assert any("topic: created topic orders, partitions: 2" in line for line in lines)


def test_state_prints_one_view(run: Hmb, url: str) -> None:
    lines = run("state", "--state-url", url, "segments").stdout.splitlines()
    assert [line.split()[:3] for line in lines[3:]] == [
        ["topic", "partition", "base_offset"], ["orders", "0", "0"], ["orders", "1", "0"]
    ]  # fmt: skip


def test_state_prints_json(run: Hmb, url: str) -> None:
    state = json.loads(run("state", "--state-url", url, "--json").stdout)
    assert [each["log_end_offset"] for each in state["topics"][0]["partitions"]] == [3, 0]
    assert set(json.loads(run("state", "--state-url", url, "requests", "--json").stdout)) == {"requests"}


@pytest.mark.parametrize("arguments", [["state"], ["top", "--once"]])
def test_a_broker_without_state_is_one_clear_line(run: Hmb, tmp_path: Path, arguments: list[str]) -> None:
    result = run(*arguments, "--data-dir", str(tmp_path), exit_code=3)
    assert "start the broker with `hmb broker --state 0`" in result.stderr and len(result.stderr.splitlines()) == 1


def test_a_wrong_address_is_one_clear_line(run: Hmb, url: str) -> None:
    assert "the token is missing or wrong" in run("state", "--state-url", url + "x", exit_code=2).stderr
    assert "no broker serves its state" in run("state", "--state-url", "http://127.0.0.1:1/state", exit_code=4).stderr
    assert "is not a link to the state of a broker" in run("state", "--state-url", "127.0.0.1:80", exit_code=2).stderr


def test_ui_prints_the_link_of_a_running_broker(run: Hmb, tmp_path: Path) -> None:
    options = ["--port", "0", "--data-dir", str(tmp_path), "--ui", "0", "--json"]
    with start("broker", *options) as broker:
        assert broker.stdout is not None
        opened = json.loads(broker.stdout.readline())
        assert run("ui", "--data-dir", str(tmp_path)).stdout == opened["ui"] + "\n"
        assert json.loads(run("ui", "--state-url", opened["state"], "--json").stdout) == {"ui": opened["ui"]}
        assert "topics" in run("state", "--data-dir", str(tmp_path), "--json").stdout
        broker.terminate()
        assert broker.wait(30) == 0
    assert "start the broker with `hmb broker --ui`" in run("ui", "--data-dir", str(tmp_path), exit_code=3).stderr
    assert "no broker serves" in run("ui", "--state-url", opened["state"], exit_code=4).stderr


def test_a_taken_port_of_the_page_is_named(run: Hmb, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("broker", "--port", "0", "--data-dir", str(tmp_path), "--ui", str(port), exit_code=1)
    assert f"127.0.0.1:{port}" in result.stderr and "Address already in use" in result.stderr


def test_a_broker_stops_cleanly_while_a_page_listens(tmp_path: Path) -> None:
    options = ["--port", "0", "--data-dir", str(tmp_path), "--ui", "0", "--json"]
    with start("broker", *options) as broker:
        assert broker.stdout is not None and broker.stderr is not None
        link = json.loads(broker.stdout.readline())["ui"]
        with urlopen(link.replace("/?", "/changes?"), timeout=30) as stream:
            while b"event: state" not in stream.readline():
                pass
            broker.terminate()
            assert broker.wait(30) == 0
            stream.read()  # `read` returns, because the stream has ended.
        assert broker.stderr.read() == b""


def test_ui_names_a_broker_without_a_page(run: Hmb, url: str, tmp_path: Path) -> None:
    assert "serves no page" in run("ui", "--data-dir", str(tmp_path), exit_code=3).stderr


def test_broker_prints_the_addresses_of_its_ports(tmp_path: Path) -> None:
    options = ["--port", "0", "--data-dir", str(tmp_path), "--state", "0", "--metrics", "0", "--json"]
    with start("broker", *options) as broker:
        assert broker.stdout is not None
        opened = json.loads(broker.stdout.readline())
        assert opened["state"].startswith("http://127.0.0.1:") and opened["metrics"].endswith("/metrics")
        broker.terminate()
        assert broker.wait(30) == 0
    assert not (tmp_path / STATE_FILE).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--state", "x"], "is not [HOST:]PORT"),
        (["--state", "0.0.0.0:0"], "the broker has no key for TLS"),
        (["--metrics", "192.0.2.1:0"], "cannot open the port"),
    ],
)
def test_a_wrong_port_is_one_clear_line(run: Hmb, tmp_path: Path, options: list[str], message: str) -> None:
    result = run(
        "broker", "--port", "0", "--data-dir", str(tmp_path), *options, exit_code=1 if "192" in options[1] else 2
    )
    assert message in result.stderr and len(result.stderr.splitlines()) == 1
