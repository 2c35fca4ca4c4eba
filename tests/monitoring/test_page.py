"""Tests of the page in a headless Chromium, against a broker with real load.

One broker and one browser serve all tests of this module, because the start of a browser takes a second.

The names of topics, groups and clients contain script tags, and so do the keys, values and headers of records. The
page must show these tags as text. If it interpreted a tag as HTML, Chromium would report a security error, and the
fixture `tab` would fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import pytest

import hmb
from hmb.bench.load.chromium import CHROMIUM, ChromiumTab, browser
from hmb.broker import BrokerServer
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from tests.monitoring.page_load import CONFIG, SCRIPT, Load, choose, each, loaded_page, number, paused
from tests.waiting import until

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)"),
]
QUOTED = quote(SCRIPT, safe="")


@pytest.fixture(scope="module")
def load() -> Iterator[Load]:
    with loaded_page() as load:
        yield load


@pytest.fixture(scope="module")
def tab(load: Load) -> Iterator[ChromiumTab]:
    with browser() as tab:
        tab.look()
        tab.open(load.link)
        tab.until("document.querySelector('tbody tr') !== null", "the topics are drawn")
        yield tab
        assert tab.problems() == []


@pytest.fixture(autouse=True)
def live(tab: ChromiumTab) -> Iterator[None]:
    """Begin each test with a page that is not paused."""
    tab.run("document.querySelector('#pause[aria-pressed=true]')?.click()")
    yield


def test_the_link_loses_its_token(tab: ChromiumTab, load: Load) -> None:
    assert "token" not in tab.run("location.href")
    assert load.servers in tab.text("header")


def shown_records(tab: ChromiumTab) -> int:
    """Return the number of records of the topic "orders" in the table of topics."""
    rows = {row[0]: row for row in tab.rows("Topics")}
    assert rows["orders"][1] == "2"
    return number(rows["orders"][2])


def test_topics_show_the_sums_of_their_partitions(tab: ChromiumTab, load: Load) -> None:
    tab.go("topics")
    before = sum(load.partition(n)["log_end_offset"] for n in range(2))
    until(lambda: shown_records(tab) >= before, "the page has followed", pause=0.05)
    assert shown_records(tab) <= sum(load.partition(n)["log_end_offset"] for n in range(2))
    choose(tab, "filter", "ORD", "input")
    assert [row[0] for row in tab.rows("Topics")] == ["orders"]


def test_a_topic_shows_segments_to_scale_and_cursors_that_move(tab: ChromiumTab, load: Load) -> None:
    tab.go("topic/orders")
    first = tab.run("document.querySelector('.cursor.high').style.left")
    shown = tab.run("document.querySelector('.legend').innerText")
    assert "high watermark" in shown and "group billing" in shown and SCRIPT in shown
    tab.until(f"document.querySelector('.legend').innerText !== {json.dumps(shown)}", "the cursors move")
    paused(tab)
    part = load.partition(0)
    labels = each(tab, ".row:first-child .segment", "it.getAttribute('aria-label')")
    bases = [number(label.removeprefix("segment ").partition(":")[0]) for label in labels]
    assert bases == [it["base_offset"] for it in part["segments"]][: len(bases)] and len(bases) > 2
    widths = each(tab, ".row:first-child .segment", "parseFloat(it.style.width)")
    wanted = [bases[n + 1] - bases[n] for n in range(len(bases) - 1)]
    assert all(abs(widths[n] / widths[0] - wanted[n] / wanted[0]) < 0.01 for n in range(len(wanted))) and first
    assert "last stable offset 0" in tab.run("document.querySelectorAll('.legend')[1].innerText")


def test_a_partition_shows_batches_in_the_colours_of_their_codecs(tab: ChromiumTab, load: Load) -> None:
    tab.go("partition/orders/0/0")
    tab.until("document.querySelectorAll('.block').length > 5", "the batches are drawn")
    part = load.partition(0)
    segment = part["segments"][0]
    row = next(row for row in tab.rows("Segments") if row[0] == "0 (shown below)")
    assert number(row[1]) == part["segments"][1]["base_offset"]
    assert number(row[3]) == segment["batches"] == len(tab.rows("Batches"))
    assert row[4] == f"{segment['offset_index_entries']:,} + {segment['time_index_entries']:,}"
    assert tab.run("document.querySelectorAll('.marks i').length") == segment["offset_index_entries"] > 0
    codecs = {row[4] for row in tab.rows("Batches")}
    assert codecs == {"none", "gzip", "zstd"}
    assert set(each(tab, ".block", "it.className")) == {f"block codec-{codec}" for codec in codecs}
    producers = {row[5] for row in tab.rows("Batches")}
    tab.run("document.querySelector('input[value=producer]').click()")
    assert len(set(each(tab, ".block", "it.className"))) == len(producers)


def test_an_open_transaction_is_shown(tab: ChromiumTab, load: Load) -> None:
    tab.go("partition/orders/1")
    tab.until("document.body.innerText.includes('since offset 0')", "the open transaction")
    tab.go("clients")
    assert [row[:4:3] for row in tab.rows("Transactional producers")] == [[SCRIPT, "Ongoing"]]


def test_a_click_on_a_batch_opens_it(tab: ChromiumTab, load: Load) -> None:
    tab.go("partition/orders/0/0")
    tab.until("document.querySelectorAll('.block').length > 5")
    tab.run("document.querySelectorAll('.block')[1].click()")
    tab.until("location.hash.startsWith('#/batch/') && document.querySelector('pre') !== null", "the batch")
    fields = dict(tab.rows("Header"))
    records = tab.rows("Records")
    assert int(fields["count"]) == len(records) and records[0][2] == SCRIPT and records[0][4] == f"{SCRIPT}={SCRIPT}"
    assert number(records[0][0]) == int(fields["base_offset"])
    assert f"base_offset = {fields['base_offset']}" in tab.text("pre")


def test_a_look_up_goes_through_its_steps(tab: ChromiumTab, load: Load) -> None:
    offset = load.partition(0)["segments"][1]["base_offset"] + 50
    tab.go(f"look-up/orders/0/offset/{offset}")
    tab.until("document.querySelectorAll('.steps > li').length === 3", "three steps")
    assert each(tab, ".steps h2", "it.innerText") == [
        "Search the segments for the offset",
        "Search the offset index of the segment",
        "Scan the log",
    ]
    found = tab.rows("Headers from byte")[-1]
    low, high = (number(part) for part in found[1].split(" to "))
    assert low <= offset <= high and found[3] == "found"
    buttons = "[...document.querySelectorAll('main button')].find((it) => it.textContent === '%s').click()"
    tab.run(buttons % "Back")
    assert "step 2 of 3" in tab.text("main") and "Scan the log" not in tab.text("main")
    tab.run(buttons % "Next step")
    assert "Scan the log" in tab.text("main")
    link = tab.run("document.querySelector('p[role=status] a').textContent")
    assert link == f"batch at byte {found[0]}"


def test_a_wrong_look_up_is_one_clear_sentence(tab: ChromiumTab) -> None:
    tab.go("look-up/orders/0/offset/99999999")
    tab.until("document.getElementById('view').innerText.includes('is not in the log, which contains')")
    tab.go(f"look-up/{QUOTED}/0/offset/1")
    tab.until(f"document.body.innerText.includes({json.dumps(f'no partition 0 of topic {SCRIPT}')})")


def test_a_time_is_looked_up_with_the_time_index(tab: ChromiumTab, load: Load) -> None:
    timestamp = load.partition(0)["segments"][1]["max_timestamp"]
    tab.go(f"look-up/orders/0/time/{timestamp}")
    tab.until("document.querySelectorAll('.steps > li').length === 4", "four steps")
    expected = load.broker.context.topics.get("orders").log(0).offset_for_timestamp(timestamp)  # type: ignore[union-attr]
    assert expected is not None and f"has offset {expected.offset:,}." in tab.text("main")


@pytest.mark.parametrize(("name", "protocol"), [("billing", "classic"), (SCRIPT, "consumer")])
def test_a_group_shows_its_members_lag_and_state(tab: ChromiumTab, load: Load, name: str, protocol: str) -> None:
    tab.go("group/" + quote(name, safe=""))
    tab.until("document.querySelector('.machine text.present') !== null", "the state machine")
    state = next(it for it in load.state()["groups"] if it["group_id"] == name)
    assert each(tab, ".machine text.present", "it.textContent") == [state["state"]]
    (member,) = tab.rows("Members")
    assert (member[0], member[1]) == (SCRIPT, "orders-0, orders-1")
    assert f"{state['state']}, {protocol} protocol, 1 member" in tab.text("main")
    assert tab.run("document.querySelector('.chart').getAttribute('aria-label')").startswith("The lag was at most")
    if protocol == "classic":
        tab.until("document.body.innerText.includes('rebalance after generation 0')", "the rebalance with its cause")
        tab.until("document.querySelectorAll('.machine .arrow').length === 10", "the transitions of the table")


def test_positions_of_a_group_are_those_of_the_state(tab: ChromiumTab, load: Load) -> None:
    tab.go("group/billing")
    tab.until("document.body.innerText.includes('orders-1')")
    shown = {row[0]: number(row[1]) for row in tab.rows("Committed offsets")}
    state = next(it for it in load.state()["groups"] if it["group_id"] == "billing")
    for position in state["positions"]:
        assert shown[f"orders-{position['partition']}"] <= position["committed_offset"]


def test_requests_show_rates_and_one_request_with_its_way(tab: ChromiumTab, load: Load) -> None:
    tab.go("requests")
    row = next(row for row in tab.rows("APIs") if row[0] == "Produce")
    produce = next(it for it in load.state()["requests"] if it["api"] == "Produce")
    assert 0 < number(row[1]) <= produce["count"] and row[2].endswith("/s") and row[4].endswith("ms")
    followed = "[...document.querySelectorAll('tr')].find((it) => /^Produce.*followed$/s.test(it.textContent))"
    tab.until(f"{followed} !== undefined", "a followed request")
    uncompressed = "[...document.querySelectorAll('tr')].some((it) => it.textContent.includes('(none)'))"
    tab.until(uncompressed, "a request with a batch that is not compressed")
    produced = [row for row in tab.rows("Followed") + tab.rows("Last requests") if "(none)" in row[4]]
    assert {row[1] for row in produced} - {SCRIPT} == {"client-none"}
    tab.run(f"{followed}.querySelector('a').click()")
    tab.until("document.querySelectorAll('.way li').length > 10", "the way through the code")
    way = tab.text(".way")
    assert way.index("AcceptedConnection._serve") < way.index("Log.append") < way.index("Segment.append")
    assert ["topic_data[0].name", "'orders'"] in tab.rows("Fields of the request")


def test_events_are_on_a_time_line(tab: ChromiumTab, load: Load) -> None:
    tab.go("events")
    paused(tab)
    count = tab.run("document.querySelectorAll('.timeline circle').length")
    assert 4 < count <= len(load.state()["events"])
    assert "orders-0: a new segment begins at offset" in tab.text("main")
    assert "Events since the start of the broker at 2" in tab.text("main")
    choose(tab, "kind", "topic", "change")
    assert {row[1] for row in tab.rows("Events")} == {"topic"}


def test_pause_stops_the_page_and_step_shows_one_change(tab: ChromiumTab) -> None:
    tab.go("topics")
    paused(tab)
    before = tab.rows("Topics")
    tab.until("/[0-9]+ changes? waits?/.test(document.getElementById('connection').textContent)")
    assert tab.rows("Topics") == before
    tab.until("/[3-9] changes wait/.test(document.getElementById('connection').textContent)")
    tab.run("document.getElementById('step').click()")
    until(lambda: tab.rows("Topics") != before, "the page shows the change", pause=0.05)
    tab.run("document.body.focus()")
    tab.press("p", "KeyP", 80)
    tab.until("document.getElementById('connection').textContent === 'live'")


def test_the_keyboard_alone_opens_a_view(tab: ChromiumTab) -> None:
    tab.go("topics")
    tab.run("document.querySelector('nav a[data-view=groups]').focus()")
    tab.press("Enter", "Enter", 13)
    tab.until("location.hash === '#/groups' && document.querySelector('h1').innerText === 'Groups'")
    focusable = tab.run("[...document.querySelectorAll('a, button, input, select')].every((it) => it.tabIndex >= 0)")
    unnamed = tab.run(
        "[...document.querySelectorAll('a, button')].filter((it) => !it.textContent.trim() && !it.ariaLabel).length"
    )
    assert focusable and unnamed == 0


@pytest.fixture
def quiet(tab: ChromiumTab, load: Load, tmp_path: Path) -> Iterator[None]:
    """Start a broker that has no clients, and open its page.

    The broker has one topic with 500 batches, and two groups with the same committed offset.
    """
    many = hmb.TopicPartition("many", 0)
    with BrokerServer(str(tmp_path), config=CONFIG) as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([hmb.NewTopic("many", 1)])
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for count in range(500):
                producer.send("many", bytes(100 + count % 60)).result()
        for group in ("billing", "audit"):
            with hmb.Consumer(broker.bootstrap_servers, group=group) as consumer:
                consumer.assign([many])
                consumer.commit({many: 500})
    with BrokerServer(str(tmp_path), config=CONFIG) as broker:
        ports = MonitoringPorts(ui=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        tab.open(ports.urls["ui"])
        yield
        tab.look()
        tab.open(load.link)
        tab.until("document.querySelector('tbody tr') !== null")
        ports.stop()


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_a_bar_of_many_batches_has_no_gaps(tab: ChromiumTab, quiet: None, *, phone: bool) -> None:
    tab.look(phone=phone)
    tab.go("partition/many/0/0")
    tab.until("document.querySelectorAll('.block').length === 500", "the batches are drawn")
    gaps = each(tab, ".block", "getComputedStyle(it, '::after').width")
    assert set(gaps) == {"0px"} and min(each(tab, ".block", "it.getBoundingClientRect().width")) >= 1


def test_lines_at_the_same_offset_share_the_height(tab: ChromiumTab, quiet: None) -> None:
    tab.go("topic/many")
    tab.until("document.querySelectorAll('.cursor').length === 3", "the high watermark and two groups")
    boxes = "(({top, bottom, right}) => [top, bottom, right])(it.getBoundingClientRect())"
    lines = sorted(each(tab, ".cursor", boxes))
    assert all(upper[1] <= lower[0] + 0.1 for upper, lower in pairwise(lines))
    (end,) = each(tab, ".bar", "it.getBoundingClientRect().right")
    assert max(right for _, _, right in lines) <= end
    # The hashes of the names "audit" and "billing" select the colours 1 and 5, in each browser and after each start.
    assert each(tab, ".cursor", "it.className") == ["cursor high", "cursor tone1", "cursor tone5"]
    assert "active segment from 0" in tab.text(".legend")


def test_after_a_restart_the_page_says_what_the_broker_has_forgotten(tab: ChromiumTab, quiet: None) -> None:
    tab.go("events")
    assert "A restart clears them." in tab.text("main") and [row[1] for row in tab.rows("Events")] == ["recovery"]
    tab.go("partition/many/0")
    assert [row[3] for row in tab.rows("Segments")] == ["\N{EN DASH}"]
    assert "The broker has not counted the batches of segments that are older than its start." in tab.text("main")


def test_a_phone_shows_times_without_their_date(tab: ChromiumTab, load: Load) -> None:
    try:
        tab.look(phone=True)
        tab.go("events")
        times = each(tab, "td time", "[it.innerText, it.title]")
        assert len(times) > 4
        assert all(shown == title.partition("T")[2].removesuffix("Z") for shown, title in times)
    finally:
        tab.look()


def test_a_phone_shows_the_whole_time_line_and_a_low_header(tab: ChromiumTab, load: Load) -> None:
    try:
        tab.look(phone=True)
        tab.go("events")
        # The height of the window is 844 px.
        assert tab.run("document.querySelector('header').getBoundingClientRect().height") < 100
        right = "it.getBoundingClientRect().right"
        tab.until(f"[...document.querySelectorAll('.timeline *')].every((it) => {right} <= 390)", "the whole time line")
        newest = max(each(tab, ".timeline circle", right))
        assert 300 < newest <= 390
    finally:
        tab.look()


def test_a_row_that_has_not_changed_is_not_drawn_again(tab: ChromiumTab, quiet: None) -> None:
    tab.go("topic/many")
    tab.until("document.body.innerText.includes('records in the last minute: 0.0/s')", "a rate")
    changes = """new Promise((done) => {
        const changes = [], all = { attributes: true, characterData: true, childList: true, subtree: true };
        const observer = new MutationObserver((found) => changes.push(...found.map((it) => it.target.outerHTML)));
        observer.observe(document.querySelector('.row'), all);
        setTimeout(() => done(changes), 1000);
    })"""
    assert tab.run(changes) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_no_view_needs_sideways_scrolling(tab: ChromiumTab, tmp_path: Path, *, dark: bool, phone: bool) -> None:
    """Each view fits on the screen. pytest keeps the screenshots in its temporary directory."""
    try:
        tab.look(dark=dark, phone=phone)
        for route in ("topics", "topic/orders", "partition/orders/0/0", "group/billing", "requests", "events"):
            tab.go(route)
            assert tab.run("document.documentElement.scrollWidth") <= (390 if phone else 1280), route
            tab.screenshot(tmp_path / f"{route.replace('/', '-')}.png")
            assert (tmp_path / f"{route.replace('/', '-')}.png").stat().st_size > 5000  # An empty page has 3,000 bytes.
        ground = tab.run("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") is not dark
    finally:
        tab.look()
