"""Tests of `hmb top`: its keys, its tables, the trend of a lag, and its drawing on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import hmb
from hmb.broker import BrokerServer
from hmb.cli.monitoring.keyboard import keys_in
from hmb.cli.monitoring.opened import time_text
from hmb.cli.monitoring.rates import Rates
from hmb.cli.monitoring.screen import Screen
from hmb.cli.monitoring.trends import FEWEST, LagSamples, bars, trend_of
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from hmb.monitoring.state import as_json
from tests.cli.conftest import COMMAND, Hmb
from tests.monitoring.reopening import opened_again
from tests.monitoring.served_state import served_state


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with served_state(tmp_path) as url:
        yield url


def test_top_prints_rates_once(run: Hmb, url: str) -> None:
    rows = [
        json.loads(line)
        for line in run("top", "--once", "--json", "--interval", "0.1", "--state-url", url).stdout.splitlines()
    ]
    assert [(row["topic"], row["partition"], row["log_end"], row["rate"]) for row in rows] == [
        ("orders", 0, 3, 0.0), ("orders", 1, 0, 0.0)
    ]  # fmt: skip


def test_top_needs_a_terminal(run: Hmb, url: str) -> None:
    assert "use --once" in run("top", "--state-url", url, exit_code=2).stderr
    assert "add --once" in run("top", "--state-url", url, "--json", exit_code=2).stderr


def test_a_rate_is_the_growth_in_a_second() -> None:
    with hmb.Broker() as broker:
        broker.create_topic("t")
        before = as_json(broker.state())
        broker.produce("t", *[b"x"] * 10)
        after = as_json(broker.state()) | {"time": before["time"] + 2000}
    rates = Rates(before)
    rates.update(after)
    assert [row["rate"] for row in rates.rows("partitions")] == [5.0]
    # The end offset is lower than before, as if the topic had been deleted and created again. So no rate is known.
    rates.update(before | {"time": before["time"] + 4000})
    assert [row["rate"] for row in rates.rows("partitions")] == [None]


def test_keys_choose_what_top_shows() -> None:
    screen = Screen("partitions")
    screen.press("g")
    assert (screen.view, screen.choices.sorted_by) == ("groups", "lag")
    screen.press("s")
    assert screen.choices.sorted_by == "lag_s"
    for key in keys_in("/p\u00e4y\x7f\r"):
        screen.press(key)
    assert (screen.choices.filter, screen.is_typing, screen.view) == ("p\u00e4", False, "groups")
    screen.press("escape")
    screen.press("q")
    assert (screen.choices.filter, screen.is_over) == ("", True)


def test_a_terminal_sends_arrow_keys_as_several_characters() -> None:
    assert keys_in("g\x1b[A\x1bOB\x1b[6~\x1b[15~\r\x1b") == ["g", "up", "down", "page down", "enter", "escape"]


@pytest.fixture(scope="module")
def state() -> Any:
    """The state of a broker whose topic "orders" has several segments. The group "billing" has read 3 of 12 records."""
    with hmb.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        broker.create_topic("orders", config={"segment.bytes": 1000})
        broker.create_topic("prices")
        broker.produce("prices", b"x")
        for _ in range(12):
            broker.produce("orders", bytes(100))
        with hmb.Consumer(broker.bootstrap_servers, "orders", group="billing", client_id="\x1b[2Jreader") as consumer:
            seen = 0
            while seen < 3:
                seen += len(consumer.poll(1, max_records=3 - seen))
            consumer.commit()
            return as_json(broker.state())


def opened(view: str, state: Any, *keys: str) -> tuple[Screen, Rates]:
    """Return a screen on which the user has pressed keys. The screen is drawn before each key."""
    screen, rates = Screen(view), Rates(state)
    for key in keys:
        screen.table(rates)
        screen.press(key)
    return screen, rates


def test_enter_opens_the_segments_of_the_selected_partition(state: Any) -> None:
    screen, rates = opened("partitions", state, *"/orders", "enter", "enter")
    table = screen.table(rates)
    (topic,) = (each for each in state["topics"] if each["name"] == "orders")
    segments = topic["partitions"][0]["segments"]
    assert table.heading == ["orders-0: segments"]
    assert [row["base_offset"] for row in table.rows] == [each["base_offset"] for each in reversed(segments)]
    assert [row["batches"] for row in table.rows] == [each["batches"] for each in reversed(segments)]
    assert len(segments) > 1
    screen.press("down")
    assert screen.table(rates).selected == 1
    screen.press("escape")
    assert [(row["topic"], row["partition"]) for row in screen.table(rates).rows] == [("orders", 0)]


def test_the_selected_row_stays_selected_when_the_order_changes(state: Any) -> None:
    screen, rates = opened("partitions", state, "s", "down")
    table = screen.table(rates)
    assert screen.choices.sorted_by == "log_start" and table.selected == 1
    chosen, numbers = table.rows[1], set()
    while screen.choices.sorted_by != "topic":
        screen.press("s")
        table = screen.table(rates)
        numbers.add(table.selected)
        assert table.rows[table.selected] == chosen, screen.choices.sorted_by
    assert len(numbers) > 1


def test_enter_opens_the_members_of_a_group_with_their_lag(state: Any) -> None:
    screen, rates = opened("groups", state, "enter")
    (row,) = screen.table(rates).rows
    assert (row["client_id"], row["partition"], row["committed"], row["lag"]) == ("\x1b[2Jreader", "orders-0", 3, 9)
    (group,) = state["groups"]
    group = group | {"members": [group["members"][0] | {"partitions": []}]}
    screen, rates = opened("groups", state | {"groups": [group]}, "enter")
    rows = [(row["client_id"], row["partition"], row["lag"]) for row in screen.table(rates).rows]
    assert rows == [(None, "orders-0", 9), ("\x1b[2Jreader", None, None)]


def test_an_opened_row_that_is_deleted_is_named(state: Any) -> None:
    screen, rates = opened("groups", state, "enter")
    rates.update(state | {"groups": []})
    assert screen.table(rates)[:3:2] == (["billing does not exist any more"], [])
    screen.press("enter")
    assert screen.opened == ("billing",)


def test_a_request_that_may_not_be_seen_has_a_reason(state: Any) -> None:
    why = "User:bob does not have the right CLUSTER_ACTION on the cluster"
    screen, rates = opened("requests", state | {"missing": {"single requests": why}}, "enter")
    assert screen.table(rates).heading[0].endswith(why) and screen.opened is not None


@pytest.mark.parametrize(
    ("lags", "word", "change"),
    [
        ([0, 5, 9, 16, 20], "growing", 0.5),
        ([20, 16, 9, 5, 0], "shrinking", -0.5),
        ([3, 0, 7, 2, 5, 1, 6], "steady", 0.0),
        ([4] * 31, "steady", 0.0),
        ([0] * 26 + [100] + [0] * 4, "steady", 0.0),
    ],
)
def test_the_trend_of_a_lag_is_no_matter_of_chance(lags: list[int], word: str, change: float) -> None:
    trend = trend_of([[number * 10_000, lag] for number, lag in enumerate(lags)])
    assert trend is not None and trend.word == word and abs(trend.per_second - change) <= 0.1


def test_few_samples_have_no_trend() -> None:
    assert trend_of([[number * 10_000, number] for number in range(FEWEST - 1)]) is None
    assert bars([[0, 0], [1, 7], [2, 14]]) == "\u2581\u2584\u2588" and bars([[0, 0]]) == "\u2581"


def test_top_shows_the_trend_of_a_group(state: Any) -> None:
    (group,) = state["groups"]
    lags = [[state["time"] - 10_000 * n, 9 - n] for n in range(6, 0, -1)]
    screen, rates = opened("groups", state | {"groups": [group | {"lags": lags}]}, "enter")
    assert screen.table(rates).heading[1] == (
        "lag over the last 60 s: \u2583\u2584\u2584\u2585\u2586\u2587\u2588 9, growing (+0.1 records/s)"
    )
    screen.press("escape")
    assert [row["trend"] for row in screen.table(rates).rows] == ["growing"]


def test_top_takes_the_samples_that_a_broker_does_not_take(state: Any) -> None:
    (group,) = state["groups"]
    samples = LagSamples()
    for second in range(0, 100, 5):
        later = state | {"time": state["time"] + 1000 * second, "groups": [group | {"lags": []}]}
        samples.complete(later)
    lags = later["groups"][0]["lags"]
    assert [[time - state["time"], lag] for time, lag in lags] == [[10_000 * number, 9] for number in range(10)]


def test_a_time_after_the_last_date_is_a_number() -> None:
    assert time_text((1 << 63) - 1) == "9223372036854775807 ms" and time_text(250) == "1970-01-01T00:00:00.250Z"


def test_top_prints_what_enter_shows_as_json(run: Hmb, url: str) -> None:
    options = ["--once", "--json", "--interval", "0.5", "--state-url", url]
    first, _ = (json.loads(line) for line in run("top", *options).stdout.splitlines())
    assert [each["base_offset"] for each in first["opened"]] == [0] and "part" not in first
    with urlopen(url, timeout=30) as response:
        (servers,) = json.load(response)["addresses"]
    with hmb.Consumer(servers, group="billing") as consumer:
        partition = hmb.TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.commit({partition: 1})
    (group,) = (json.loads(line) for line in run("top", "groups", *options).stdout.splitlines())
    assert [(each["partition"], each["lag"]) for each in group["opened"]] == [("orders-0", 2)]
    assert group["trend"] is None and [lag for _, lag in group["lags"]][-1] == 2
    with sending(servers):
        apis = [json.loads(line) for line in run("top", "requests", *options).stdout.splitlines()]
    (produce,) = (each["opened"] for each in apis if each["api"] == "Produce")
    assert {(each["client_id"], each["contains"]) for each in produce} == {("writer", "1 batch (gzip), 1 record")}
    assert [each["ms"] for each in produce] == sorted((each["ms"] for each in produce), reverse=True)


@contextmanager
def sending(servers: str) -> Iterator[None]:
    """Send records to the topic "orders" during a `with` block."""
    stop = threading.Event()

    def send() -> None:
        with hmb.Producer(servers, client_id="writer", compression="gzip") as producer:
            while not stop.wait(0.02):
                producer.send("orders", b"x").result()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def following(*options: str) -> Iterator[int]:
    """Run `hmb top` on a terminal during a `with` block. The key q ends it."""
    terminal, inside = pty.openpty()
    termios.tcsetwinsize(inside, (30, 80))
    command = [COMMAND, "top", "--interval", "0.2", *options]
    with subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside) as top:
        os.close(inside)
        try:
            yield terminal
            os.write(terminal, b"q")
            _drain(terminal)
            assert top.wait(30) == 0
        finally:
            top.kill()


def test_top_opens_rows_on_a_terminal(url: str) -> None:
    """The arrow keys select a row, Enter opens it, Esc goes back, and the letters choose another list."""
    with urlopen(url, timeout=30) as response:
        (servers,) = json.load(response)["addresses"]
    with sending(servers), following("--state-url", url) as terminal:
        _read_until(terminal, b"orders")
        os.write(terminal, b"/orders\r\x1b[B\r")
        _read_until(terminal, b"orders-1: segments", b"base_offset")
        os.write(terminal, b"\x1b")
        _read_until(terminal, b"filter: orders", b"log_start")
        os.write(terminal, b"r")
        _read_until(terminal, b"Produce", b"p99_ms")
        os.write(terminal, b"/produce\r\r")
        _read_until(terminal, b"Produce: slowest requests", b"writer")


def test_top_continues_after_a_restart_of_the_broker(tmp_path: Path) -> None:
    with BrokerServer(tmp_path) as broker:
        ports = MonitoringPorts(state=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        assert ports.state is not None
        address = HttpAddress("127.0.0.1", ports.state.port)
        with following("--state-url", ports.urls["state"]) as terminal:
            _read_until(terminal, b"0 topics")
            ports.stop()
            _read_until(terminal, b"trying again")
            broker.context.topics.create("later", 1)
            ports = opened_again(state=address)
            ports.start(broker)
            _read_until(terminal, b"later")
        ports.stop()


def _read_until(terminal: int, *texts: bytes) -> None:
    seen, deadline = b"", time.monotonic() + 60
    while not all(text in seen for text in texts):
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536)


def _drain(terminal: int) -> None:
    """Read the program's output until the program has closed the terminal.

    Otherwise, the terminal's buffer could become full. The program would then wait for free space, and never end.
    """
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:  # On Linux, `os.read` raises an error after the program has closed the terminal.
        os.close(terminal)
