"""Tests of remote monitoring, which computes a broker's state and page from the responses of the broker's APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

import hmb
from hmb.bench.load.chromium import CHROMIUM, browser
from hmb.monitoring.remote.page import RemotePage
from hmb.monitoring.remote.reader import MISSING, RemoteBroker
from hmb.monitoring.state import as_json
from tests.cli.conftest import Hmb, run, start

__all__ = ["run"]

QUICK = {"log.flush.acks.all": "false", "group.initial.rebalance.delay.ms": "0"}


def use(servers: str) -> None:
    """Write five batches with gzip to orders-0, and read three of their records with the group "billing".

    The timestamps of the records are old. The topic has no retention, so that the broker keeps these records.
    """
    with hmb.Admin(servers) as admin:
        admin.create_topics([hmb.NewTopic("orders", 1, 1, configs={"retention.ms": "-1"})])
    with hmb.Producer(servers, compression="gzip") as producer:
        for number in range(5):
            producer.send("orders", b"v%d" % number, key=b"<b>k", timestamp=1000 + number).result()
    with hmb.Consumer(servers, "orders", group="billing", client_id="reader") as consumer:
        seen = 0
        while seen < 3:
            seen += len(consumer.poll(1, max_records=3 - seen))
        consumer.commit()


def check_state(servers: str) -> None:
    """Check the monitoring state of a broker.

    The broker has the records and the group that the function `use` creates, and an open transaction with one record.
    """
    broker = RemoteBroker(servers)
    state = as_json(broker.state())
    topics = {topic["name"]: topic for topic in state["topics"]}
    (partition,) = topics["orders"]["partitions"]
    offsets = [partition[name] for name in ("log_start_offset", "last_stable_offset", "high_watermark")]
    assert offsets == [0, 5, 6]
    assert partition["bytes"] > 300 and partition["leader_epoch"] == 0 and partition["error"] is None
    assert [each["transaction_start"] for each in partition["producers"]] == [None, 5]
    assert topics["orders"]["configs"]["retention.ms"] == "-1"
    assert topics["__consumer_offsets"]["is_internal"]
    (group,) = state["groups"]
    assert (group["group_id"], group["type"], group["state"]) == ("billing", "classic", "Empty")
    (position,) = group["positions"]
    assert (position["committed_offset"], position["lag"], position["lag_ms"]) == (3, 3, None)
    (transaction,) = state["transactions"]
    assert (transaction["transactional_id"], transaction["state"]) == ("transfer", "Ongoing")
    assert transaction["partitions"] == ["orders-0"] and transaction["started"] is not None
    assert state["missing"] == MISSING
    assert not (state["connections"] or state["requests"] or state["events"] or state["process"])
    broker.close()


def check_page(servers: str) -> None:
    """Check that the page's server returns batches, the offset for a timestamp, and errors over HTTP."""
    broker = RemoteBroker(servers)
    page = RemotePage(broker, 0)
    page.start()
    try:
        (first, *_, last) = _get(page, "/fetched?topic=orders&partition=0&offset=1")["batches"]
        assert (first["base_offset"], first["codec"], first["records"]) == (1, "gzip", 1)
        assert (last["last_offset"], last["is_transactional"]) == (5, True)
        opened = _get(page, "/fetched-batch?topic=orders&partition=0&offset=2")
        assert opened["header"]["base_offset"] == 2 and opened["header"]["is_valid"]
        (record,) = opened["records"]
        assert (record["key"]["text"], record["value"]["text"]) == ("<b>k", "v2")
        assert any("max_timestamp" in line for line in opened["lines"])
        assert _get(page, "/offset-of-time?topic=orders&partition=0&timestamp=1003") == 3
        assert _get(page, "/state")["missing"] == MISSING
        for path, message in {
            "/fetched?topic=orders&partition=0&offset=99": "orders-0",
            "/fetched?topic=nosuch&partition=0&offset=0": "nosuch",
            "/fetched-batch?topic=orders&partition=0&offset=6": "no batch at or after offset 6",
        }.items():
            with pytest.raises(HTTPError) as refused:
                _get(page, path)
            assert refused.value.status == 404 and message in json.load(refused.value)["error"]
        with pytest.raises(HTTPError, match="401"):
            urlopen(page.url.partition("?")[0] + "state", timeout=30)
        for header in ({"Host": "attacker.example"}, {"Origin": "http://attacker.example"}):
            for path in ("state", "changes", "fetched?topic=orders&partition=0&offset=0", "page.js"):
                url = page.url.replace("?", f"{path}{'&' if '?' in path else '?'}")
                with pytest.raises(HTTPError, match="403"):
                    urlopen(Request(url, headers=header), timeout=30)
    finally:
        page.stop()
        broker.close()


def check_views(servers: str) -> None:
    """Click through the views of the page in Chromium. Each view shows numbers, or the reason why it has none."""
    broker = RemoteBroker(servers)
    page = RemotePage(broker, 0)
    page.start()
    try:
        with browser() as tab:
            tab.look()
            tab.open(page.url)
            tab.until("document.querySelector('tbody tr') !== null", "the topics are drawn")
            assert ["segments", MISSING["segments"]] in tab.rows("What this page cannot show")
            (row,) = (row for row in tab.rows("Topics") if row[0] == "orders")
            assert (row[1], row[2], row[5]) == ("1", "6", "\N{EN DASH}")
            tab.go("topic/orders")
            assert tab.run("document.querySelectorAll('.segments a').length") == 1
            assert "high watermark 6" in tab.text() and "group billing 3, lag 3" in tab.text()
            tab.go("partition/orders/0")
            tab.until("document.querySelectorAll('a[href*=fetched-batch]').length === 6", "the batches are drawn")
            assert MISSING["segments"] in tab.text()
            tab.go("fetched-batch/orders/0/2")
            tab.until("document.querySelector('pre') !== null", "the batch is drawn")
            assert tab.rows("Records")[0][2:4] == ["<b>k", "v2"]
            tab.go("look-up/orders/0/time/1003")
            tab.until("document.querySelector('a[href$=\"fetched-batch/orders/0/3\"]') !== null", "the offset is shown")
            for where, reason in {
                "orders/0/offset/99": "Offset 99 is not in the log.",
                "nosuch/0/offset/0": "No such partition: nosuch-0",
            }.items():
                tab.go(f"look-up/{where}")
                tab.until(f"document.querySelector('p.problem').innerText.startsWith('{reason}')", reason)
            tab.go("group/billing")
            assert "Empty, classic protocol, 0 members, lag 3" in tab.text()
            for view, part in {"requests": "requests", "clients": "connections", "events": "events"}.items():
                tab.go(view)
                assert MISSING[part] in tab.text(), view
            assert [row[0] for row in tab.rows("Events")] == []
            assert tab.problems() == []
    finally:
        page.stop()
        broker.close()


def _get(page: RemotePage, path: str) -> Any:
    base, _, token = page.url.partition("/?")
    with urlopen(f"{base}{path}{'&' if '?' in path else '?'}{token}", timeout=30) as response:
        return json.load(response)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with hmb.Broker(config=QUICK) as broker:
        use(broker.bootstrap_servers)
        with hmb.Producer(broker.bootstrap_servers, transactional_id="transfer", transaction_timeout=600) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("orders", b"open", timestamp=1005).result()
            yield broker.bootstrap_servers
            producer.abort_transaction()


def test_the_apis_of_hmb_make_a_state(servers: str) -> None:
    check_state(servers)


def test_the_page_reads_batches_with_fetch(servers: str) -> None:
    check_page(servers)


@pytest.mark.external
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")
def test_each_view_shows_numbers_or_a_reason(servers: str) -> None:
    check_views(servers)


@pytest.mark.external
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")
def test_bad_input_does_not_harm_the_page_of_any_broker() -> None:
    """The page shows markup as text, and shows only the first 1,000 characters of a value of 10 MB.

    If the topic is deleted or the broker stops, the page shows a message.
    """
    script = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    config = QUICK | {"message.max.bytes": "20000000"}
    with hmb.Broker(config=config) as broker, ExitStack() as stack:
        servers = broker.bootstrap_servers
        with hmb.Producer(servers, max_request_size=20_000_000, batch_size=1) as producer:
            producer.send("orders", script.encode(), key=script.encode(), headers=[(script, script.encode())]).result()
            producer.send("orders", b"x" * 10_000_000).result()
        consumer = stack.enter_context(hmb.Consumer(servers, "orders", group=script, client_id=script))
        while not consumer.poll(1):
            pass
        consumer.commit()
        remote = RemoteBroker(servers)
        stack.callback(remote.close)
        page = RemotePage(remote, 0)
        page.start()
        stack.callback(page.stop)
        tab = stack.enter_context(browser())
        tab.look()
        tab.open(page.url)
        tab.until("document.querySelector('tbody tr') !== null", "the topics are drawn")
        tab.go(f"group/{quote(script, safe='')}")
        assert tab.text("h1") == script and tab.rows("Members")[0][:2] == [script, "orders-0"]
        consumer.close()
        tab.go("fetched-batch/orders/0/0")
        tab.until("document.querySelector('pre') !== null", "the batch with markup")
        assert tab.rows("Records")[0][2:] == [script, script, f"{script}={script}"]
        tab.go("fetched-batch/orders/0/1")
        tab.until("document.querySelector('pre') !== null", "the large batch")
        assert tab.rows("Records")[0][3] == f"{'x' * 1000}\u2026 (10000000 bytes)"
        tab.go("partition/orders/0")
        with hmb.Admin(servers) as admin:
            admin.delete_topics(["orders"])
        tab.until("document.body.innerText.includes('The partition orders-0 does not exist any more.')")
        broker.stop()
        tab.until("document.getElementById('connection').textContent === 'the broker is away, trying again'")
        broker.restart()
        tab.until("document.getElementById('connection').textContent === 'live'")
        assert tab.problems() == []


def test_state_and_top_show_any_broker(run: Hmb, servers: str) -> None:
    lines = run("state", "-b", servers).stdout.splitlines()
    assert lines[0].startswith(f"{servers}, ") and "up" not in lines[0]
    assert ["orders", "0", "0", "5", "6"] in [line.split()[:5] for line in lines]
    assert f"requests: {MISSING['requests']}" in lines and f"segments: {MISSING['segments']}" in lines
    assert json.loads(run("state", "-b", servers, "--json", "groups").stdout)["groups"][0]["group_id"] == "billing"
    top = run("top", "groups", "--once", "--json", "--interval", "0.1", "-b", servers).stdout
    assert (json.loads(top)["lag"], json.loads(top)["rate"]) == (3, 0.0)
    assert MISSING["requests"] in run("top", "requests", "--once", "--interval", "0.1", "-b", servers).stdout


def test_a_wrong_source_is_one_clear_line(run: Hmb, servers: str) -> None:
    assert "leave out --data-dir" in run("state", "-b", servers, "--data-dir", "x", exit_code=2).stderr
    assert "name a broker with -b" in run("top", "--once", "-X", "client.id=x", exit_code=2).stderr
    assert "the broker serves the page" in run("ui", "--port", "0", exit_code=2).stderr
    assert "127.0.0.1:1" in run("state", "-b", "127.0.0.1:1", exit_code=4).stderr
    assert "127.0.0.1:1" in run("ui", "--port", "0", "-b", "127.0.0.1:1", exit_code=4).stderr


def test_ui_serves_the_page_until_it_is_interrupted(servers: str) -> None:
    with start("ui", "-b", servers, "--port", "0", "--json") as ui:
        assert ui.stdout is not None
        link = json.loads(ui.stdout.readline())["ui"]
        with urlopen(link.replace("/?", "/changes?"), timeout=30) as stream:
            while b"event: state" not in stream.readline():
                pass
            assert b'"orders"' in stream.readline()
        ui.send_signal(2)
        assert ui.wait(30) == 130
