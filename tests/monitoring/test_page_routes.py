"""Tests of what the broker serves to the page: files, the feed of changes, look-ups, batches and requests."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import hmb
from hmb.broker import BrokerServer
from hmb.defaults import STATE_FILE, TOKEN_FILE
from hmb.monitoring import page
from hmb.monitoring.page import feed, recent_requests, routes
from hmb.monitoring.page.feed import Feed, parts_of
from hmb.monitoring.page.log_views import batch_view, look_up_offset, look_up_time, segment_view
from hmb.monitoring.page.recent_requests import RecentRequests
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from hmb.monitoring.state import BrokerState
from hmb.protocol.errors import KafkaError
from hmb.storage.log import Log
from tests.waiting import until

ANY_PORT = HttpAddress("127.0.0.1", 0)


@pytest.fixture
def served() -> Iterator[tuple[BrokerServer, MonitoringPorts]]:
    """Run a broker that serves its page. Its topic "t" has three segments of ten batches."""
    with BrokerServer(config={"log.flush.acks.all": "false"}) as broker:
        config = {"segment.bytes": "3000", "index.interval.bytes": "500"}
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([hmb.NewTopic("t", 1, configs=config)])
        with hmb.Producer(broker.bootstrap_servers, client_id="writer") as producer:
            for number in range(30):
                producer.send("t", bytes(200), key=b"<b>", headers=[("h", b"1")], timestamp=1000 + number).result()
        ports = MonitoringPorts(ui=ANY_PORT)
        ports.start(broker)
        try:
            yield broker, ports
        finally:
            ports.stop()


def get(ports: MonitoringPorts, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    assert ports.ui is not None
    connection = http.client.HTTPConnection(ports.ui.address, timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    return response.status, dict(response.getheaders()), response.read()


def with_token(ports: MonitoringPorts, path: str) -> tuple[int, object]:
    assert ports.ui is not None
    status, _, body = get(ports, path, Authorization=f"Bearer {ports.ui.token}")
    return status, json.loads(body)


def test_the_link_becomes_a_cookie(served: tuple[BrokerServer, MonitoringPorts]) -> None:
    _, ports = served
    link = urlsplit(ports.urls["ui"])
    status, headers, _ = get(ports, f"{link.path}?{link.query}")
    assert (status, headers["Location"]) == (303, "/")
    assert "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
    cookie = headers["Set-Cookie"].partition(";")[0]
    status, headers, body = get(ports, "/", Cookie=cookie)
    assert status == 200 and b"page.js" in body
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert get(ports, "/state", Cookie=cookie)[0] == 200
    assert get(ports, "/")[0] == get(ports, "/?token=wrong")[0] == get(ports, "/changes")[0] == 401
    assert get(ports, "/state", Cookie="hmb-1=x; ;=")[0] == 401


@pytest.mark.parametrize("header", [{"Host": "attacker.example"}, {"Origin": "http://attacker.example"}])
def test_another_site_gets_no_file_of_the_page(
    served: tuple[BrokerServer, MonitoringPorts], header: dict[str, str]
) -> None:
    _, ports = served
    for path in ("/", "/page.js", "/state", "/changes", "/segment"):
        assert get(ports, path, **header)[0] == 403


def test_the_token_stays_the_same_after_a_restart(tmp_path: object) -> None:
    tokens = []
    for _ in range(2):
        with BrokerServer(str(tmp_path)) as broker:
            ports = MonitoringPorts(ui=ANY_PORT)
            ports.start(broker)
            assert ports.ui is not None
            tokens.append(ports.ui.token)
            assert (broker.data_dir / TOKEN_FILE).stat().st_mode & 0o777 == 0o600
            assert set(json.loads((broker.data_dir / STATE_FILE).read_text())) == {"state", "ui"}
            ports.stop()
    assert tokens[0] == tokens[1]


def test_a_wrong_address_is_one_clear_reason(served: tuple[BrokerServer, MonitoringPorts]) -> None:
    _, ports = served
    wrong = {
        "/segment?topic=x&partition=0&segment=0": (404, "no partition 0 of topic x"),
        "/segment?topic=t&partition=0&segment=5": (404, "no segment of t-0 begins at offset 5"),
        "/segment?topic=t&partition=0": (400, "segment must be a whole number of at least 0, not ''"),
        "/batch?topic=t&partition=0&segment=0&position=99999": (404, "is after the end"),
        "/batch?topic=t&partition=0&segment=0&position=-1": (400, "must be a whole number of at least 0, not '-1'"),
        "/look-up?topic=t&partition=0&offset=30": (404, "the offsets 0 to 29"),
        "/look-up?topic=t&partition=0&timestamp=5000": (404, "the newest record has 1029"),
        "/request?number=9": (404, "has forgotten this request"),
    }
    for path, (status, message) in wrong.items():
        found, body = with_token(ports, path)
        assert found == status and isinstance(body, dict) and message in body["error"], path


def test_the_files_of_the_page_interpret_no_text_and_load_nothing_from_elsewhere() -> None:
    """The files of the page show names and values from clients as plain text, and load nothing from other sites.

    The test searches each file for forbidden code, for example `innerHTML` and `https://`. It also checks that each
    file has at most 400 lines.
    """
    scripts = {file.name: file.read_text() for file in Path(page.__path__[0], "static").iterdir()}
    assert {"index.html", "page.css", "page.js"} <= set(scripts)
    for name, text in scripts.items():
        code = "\n".join(line for line in text.splitlines() if not line.strip().startswith("//"))
        for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://"):
            assert forbidden not in code, name
        assert len(text.splitlines()) <= 400, name


# -- the log


def log_of(broker: BrokerServer) -> Log:
    topic = broker.context.topics.get("t")
    assert topic is not None
    return topic.log(0)


def test_a_segment_shows_its_batches_and_its_index(served: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, _ = served
    log = log_of(broker)
    first = log.segments[0]
    view = segment_view(log, 0)
    assert len(view["batches"]) == first.batch_count and view["next"] is None
    assert [batch["position"] for batch in view["batches"]] == [p for p, _ in first.batches(0, first.size)]
    assert view["offset_index"]["count"] == first.offset_index.entries
    later = segment_view(log, 0, view["batches"][3]["position"])
    assert later["batches"] == view["batches"][3:]


def test_a_look_up_shows_the_steps_of_the_broker(served: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, _ = served
    log = log_of(broker)
    for offset in range(30):
        view = look_up_offset(log, offset)
        segment = log.log_segments.from_offset(offset)[0]
        position, batch = segment.find(offset, segment.size) or (-1, None)
        found = view["steps"][-1]["found"]
        assert (view["segment"], found["position"], found["last_offset"]) == (segment.base_offset, position, offset)
        entry = view["steps"][1]["entry"] or (segment.base_offset, 0)
        assert tuple(entry) == tuple(segment.offset_index.lookup(offset)) and batch is not None
        assert look_up_time(log, 1000 + offset)["offset"] == offset


def test_a_batch_shows_its_records_and_its_bytes(served: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, _ = served
    view = batch_view(log_of(broker), 0, 0)
    assert (view["header"]["base_offset"], view["header"]["codec"], view["damage"]) == (0, "none", None)
    (record,) = view["records"]
    assert record["key"] == {"bytes": 3, "text": "<b>", "is_text": True} and record["value"]["bytes"] == 200
    assert record["headers"] == [["h", {"bytes": 1, "text": "1", "is_text": True}]]
    assert view["lines"][0].split("  ")[-1] == "base_offset = 0"
    assert any("records[0].key" in line for line in view["lines"])


def test_a_value_of_ten_megabytes_is_cut() -> None:
    config = {"message.max.bytes": "20000000"}
    with BrokerServer(config=config) as broker:
        with hmb.Producer(broker.bootstrap_servers, max_request_size=20_000_000, batch_size=1) as producer:
            producer.send("t", b"x" * 10_000_000).result()
        view = batch_view(log_of(broker), 0, 0)
    assert view["records"][0]["value"]["bytes"] == 10_000_000 and len(view["records"][0]["value"]["text"]) == 1000
    assert len(json.dumps(view)) < 20_000
    assert any("more bytes of records[0].value are not shown" in line for line in view["lines"])


def test_a_damaged_batch_is_named(served: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, _ = served
    log = log_of(broker)
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    assert ", but the bytes have the CRC " in batch_view(log, 0, 0)["damage"]


# -- the feed


def events_of(chunk: bytes) -> list[tuple[str, dict[str, object]]]:
    found = []
    for block in chunk.decode().split("\n\n"):
        if block.startswith("event: "):
            name, _, data = block.partition("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_the_feed_sends_all_parts_and_then_the_changed_ones() -> None:
    with hmb.Broker() as broker:
        broker.create_topic("t", partitions=2)
        source = Feed(broker.state)
        events = source.listen()
        ((name, data),) = events_of(next(events))
        keys = [tuple(key) for key, _ in data["set"]]  # type: ignore[union-attr]
        assert name == "state" and ("partition", "t", 1) in keys and ("segment", "t", 0, 0) in keys
        broker.produce("t", b"x", partition=1)
        changed: dict[tuple[object, ...], dict[str, object]] = {}
        while ("partition", "t", 1) not in changed:
            for _, data in events_of(next(events)):
                changed |= {tuple(key): part for key, part in data["set"]}  # type: ignore[union-attr]
        assert changed["partition", "t", 1]["high_watermark"] == 1
        assert changed["segment", "t", 1, 0]["batches"] == 1
        assert ("partition", "t", 0) not in changed
        broker.delete_topic("t")
        gone: list[object] = []
        while ["topic", "t"] not in gone:
            for _, data in events_of(next(events)):
                gone += data["gone"]  # type: ignore[operator]
        assert ["segment", "t", 0, 0] in gone
        events.close()


def test_a_page_that_has_missed_changes_gets_all_parts_again() -> None:
    with hmb.Broker() as broker:
        source = Feed(broker.state, feed.OWN_PACE._replace(period=0.01))
        slow, quick = source.listen(), source.listen()
        assert events_of(next(slow))[0][0] == events_of(next(quick))[0][0] == "state"
        seen = 0
        while seen < 3 * feed.KEPT:
            seen += len(events_of(next(quick)))
        assert [name for name, _ in events_of(next(slow))] == ["state"]
        slow.close()
        quick.close()


def test_after_a_mistake_in_a_collection_the_streams_end_and_the_next_page_gets_the_state() -> None:
    with hmb.Broker() as broker:
        mistakes = [KeyError("a topic that was deleted meanwhile")]

        def current() -> BrokerState:
            if mistakes:
                raise mistakes.pop()
            return broker.state()

        source = Feed(current)
        assert list(source.listen()) == []
        events = source.listen()
        assert events_of(next(events))[0][0] == "state"
        events.close()


def test_the_feed_works_only_while_a_page_listens() -> None:
    calls = []

    def current() -> BrokerState:
        calls.append(threading.current_thread().name)
        return broker.state()

    with hmb.Broker() as broker:
        source = Feed(current)
        assert not calls
        events = source.listen()
        next(events)
        events.close()
        until(lambda: not any(each.name == "page-feed" for each in threading.enumerate()), "the thread has ended")
        assert set(calls) == {"page-feed"}
        assert events_of(next(source.listen()))[0][0] == "state"
        source.stop()


def test_too_many_pages_are_refused(
    served: tuple[BrokerServer, MonitoringPorts], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ports = served
    monkeypatch.setattr(routes, "MAX_LISTENERS", 0)
    status, body = with_token(ports, "/changes")
    assert status == 503 and body == {"error": "too many pages are open; close one of them"}


def test_the_parts_contain_the_whole_state() -> None:
    with hmb.Broker() as broker:
        broker.create_topic("t", partitions=3)
        broker.produce("t", b"x")
        state = broker.state()
        parts = parts_of(state)
    kinds = Counter(key[0] for key in parts)
    assert kinds == {"topic": 1, "partition": 3, "segment": 3, "event": len(state.events), "broker": 1}


# -- requests


def test_requests_are_recorded_only_while_a_page_asks() -> None:
    with BrokerServer() as broker:
        counters = broker.context.requests
        recorder = RecentRequests(counters)
        assert counters.observe is None
        assert recorder.view()["recent"] == [] and counters.observe is not None
        with hmb.Producer(broker.bootstrap_servers, client_id="<i>me</i>", compression="gzip") as producer:
            producer.send("t", b"x" * 100).result()
        produce = next(each for each in recorder.view()["followed"] if each["api"] == "Produce")
        assert (produce["client_id"], produce["errors"]) == ("<i>me</i>", [])
        assert produce["note"] == "1 batch (gzip), 1 record"
        assert produce in recorder.view()["recent"]
        opened = recorder.one(produce["number"])
        assert opened is not None and ["topic_data[0].name", "'t'"] in opened["request"]
        assert ["responses[0].partition_responses[0].base_offset", "0"] in opened["response"]
        functions = [(file, name) for _, file, name in opened["way"]]
        for step in (
            ("broker/network/connection.py", "AcceptedConnection._serve"),
            ("broker/dispatch.py", "Dispatcher.begin"),
            ("broker/handlers/produce.py", "handle"),
            ("storage/log.py", "Log.append"),
            ("storage/segment.py", "Segment.append"),
        ):
            assert step in functions
            functions = functions[functions.index(step) :]
        recorder.stop()
        assert counters.observe is None and recorder.one(12345) is None


def test_each_api_keeps_its_slowest_requests(served: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, ports = served
    assert with_token(ports, "/slowest-requests?seconds=60") == (200, {})
    with hmb.Producer(broker.bootstrap_servers, client_id="writer") as producer:
        for _ in range(recent_requests.SLOWEST + 5):
            producer.send("t", b"x").result()
    with hmb.Admin(broker.bootstrap_servers, client_id="reader") as admin:
        for _ in range(2 * recent_requests.SLOWEST):
            admin.describe_topics(["t"])
    _, found = with_token(ports, "/slowest-requests?seconds=60")
    assert isinstance(found, dict) and list(found) == sorted(found)
    assert len(found["Produce"]) == recent_requests.SLOWEST
    assert {each["client_id"] for each in found["Produce"]} == {"writer"}
    for requests in found.values():
        assert [each["ms"] for each in requests] == sorted((each["ms"] for each in requests), reverse=True)
    status, opened = with_token(ports, f"/request?number={found['Produce'][0]['number']}")
    assert status == 200 and isinstance(opened, dict) and opened["api"] == "Produce"
    assert with_token(ports, "/slowest-requests?seconds=x")[0] == 400


def test_an_error_of_a_response_is_named() -> None:
    with BrokerServer(config={"auto.create.topics.enable": "false"}) as broker:
        recorder = RecentRequests(broker.context.requests)
        recorder.view()
        with hmb.Admin(broker.bootstrap_servers) as admin:
            assert isinstance(admin.delete_topics(["missing"])["missing"], KafkaError)
        assert any("UNKNOWN_TOPIC_OR_PARTITION" in each["errors"] for each in recorder.view()["followed"])
