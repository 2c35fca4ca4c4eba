"""Tests of the tours: pages of the documentation that follow one kind of request through the code.

A test sends real requests, and records which functions are called (tests/tracing.py). The functions on a page must be
called in the order of the page. Other calls may come between them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

import hmb
from tests.docs.test_pages import DOCS, INCLUDE
from tests.test_tours import join_with_two_members, tours
from tests.tracing import ROOT, Call, first_missing, recorded_calls

TOPIC = "weather"
SETTINGS = {"group.initial.rebalance.delay.ms": "300", "log.index.interval.bytes": "1"}
Scenario = Callable[[str], None]


def produce(servers: str) -> None:
    """Send several batches, so that the index gets an entry. Wait until the batches are on disk."""
    with hmb.Producer(servers, acks="all") as producer:
        for number in range(3):
            producer.send(TOPIC, b"rain %d" % number).result()


def fetch(servers: str) -> None:
    """Wait for a record in a long poll, and read it."""
    with hmb.Producer(servers) as producer, hmb.Consumer(servers, TOPIC) as consumer:
        assert consumer.poll(timeout=0.3) == []
        producer.send(TOPIC, b"rain").result()
        assert [record.value for record in consumer.poll(timeout=10)] == [b"rain"]


def join_group(servers: str) -> None:
    """Let two consumers join one group."""
    join_with_two_members(servers, TOPIC)


SCENARIOS: dict[str, Scenario] = {"produce": produce, "fetch": fetch, "join_group": join_group, "send": produce}

# A section of a tour, from its heading, for example "## 7 to 9. The log assigns offsets", to the next heading.
STEPS = re.compile(
    r"^## (?P<first>\d+)(?: (?:and|to) (?P<last>\d+))?\. (?P<section>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
NAMES = {"produce": "Produce", "fetch": "Fetch", "join_group": "JoinGroup", "send": "Producer.send"}


def functions_of(page: str) -> list[Call]:
    """Return each function that a page includes, in the order of the page."""
    path = DOCS / "tour" / f"{page}.md"
    found = INCLUDE.findall(path.read_text())
    return [Call(str((path.parent / file).resolve().relative_to(ROOT)), name) for file, name in found]


@pytest.mark.parametrize("page", NAMES)
def test_the_headings_have_the_numbers_of_the_steps(page: str) -> None:
    """Each section of a page shows steps of a tour, and the section's heading contains the numbers of these steps.

    For example, the section "7 to 9" shows the functions of the steps 7, 8 and 9. No step of the tour is missing.
    """
    steps = tours()[NAMES[page]]
    last = 0
    for heading in STEPS.finditer((DOCS / "tour" / f"{page}.md").read_text()):
        first, last_before = int(heading["first"]), last
        last = int(heading["last"] or first)
        assert first == last_before + 1, heading["section"]
        functions = [function for _, function in INCLUDE.findall(heading["section"])]
        wanted = [step.function for step in steps[first - 1 : last]]
        assert [function for function in functions if function in wanted] == wanted
    assert last == len(steps)


@pytest.mark.parametrize("page", SCENARIOS)
def test_a_request_calls_the_functions_of_its_tour_in_order(page: str) -> None:
    with recorded_calls() as calls, hmb.Broker(config=SETTINGS) as broker:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([hmb.NewTopic(TOPIC, 2)])
        SCENARIOS[page](broker.bootstrap_servers)
    missing = first_missing(functions_of(page), calls)
    assert missing is None, f"{page}.md shows {missing}, which was not called after the function before it"


@pytest.mark.parametrize(("page", "name"), NAMES.items())
def test_a_page_shows_each_hop_of_the_tour_in_the_docstring_of_hmb(page: str, name: str) -> None:
    missing = first_missing(tours()[name], functions_of(page))
    assert missing is None, f"{page}.md does not show {missing} after the hop before it"


@pytest.mark.parametrize(("page", "most"), [("produce", 13), ("fetch", 9), ("join_group", 8), ("send", 10)])
def test_a_tour_visits_few_files(page: str, most: int) -> None:
    files = {f"hmb/{call.file}" for call in functions_of(page)}
    assert 3 <= len(files) <= most
    text = inspect.cleandoc((DOCS / "tour" / f"{page}.md").read_text())
    assert all(f"`{file}`" in text for file in files)
