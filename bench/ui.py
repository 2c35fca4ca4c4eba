"""Measures how fast a broker serves its web page and its metrics, and how much the page slows the broker down.

These commands are examples:
    hmb bench ui
    hmb bench ui --repeat 5 --num-records 2000000

The result is a table with six figures (measured numbers), and the goal of each. Three figures measure the web page and
the metrics, and three figures measure how much the page slows the broker down.

For the first three numbers, the benchmark starts a broker with a topic of 1,000 partitions, a partition of 1,000
segments, and 100 groups. The browser Chromium loads the web page of this broker, but opens no window. These numbers
are:
- *first drawing*: how many ms the browser takes to load and draw a view of the page. The benchmark measures
  a view with 1,000 partitions and a view with 1,000 segments. The longer of the two times is the result.
- *changes a second*: how many times a second the page shows new numbers, while a producer sends 1,000
  records/s.
- *metrics*: how many ms one request for `/metrics` takes.

For the last three numbers, the benchmark starts two brokers with 100 partitions each. The first broker has no web page.
The second broker has one, and a client reads the page's stream of changes, as a browser does. HMB's producer sends
records as fast as it can, to one broker after the other. The benchmark then compares the second broker with the first
broker:
- *lost throughput*: by how many percent the throughput of the second broker is lower
- *additional processor time*: how much more processor time the second broker uses in each second of the run
- *additional memory*: how much more memory the second broker uses

On a machine that is busy with other work, trust the processor time more than the throughput.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from http.client import HTTPConnection
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from hmb.client import Consumer, Producer, TopicPartition
from hmb.defaults import STATE_FILE

from .load.chromium import ChromiumTab, browser
from .load.producers import rate_and_cpu
from .load.workload import Workload
from .measurement import POSITIVE, Measurement, scenario
from .peers import START_SECONDS, Hmb, PeerFailed, free_ports, resident_bytes, topics
from .report.goals import FigureGoal, goal_table
from .report.samples import Sample
from .report.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY, LONG, BUSY = "many", "long", "busy"  # topics
PARTITIONS, SEGMENTS, GROUPS = 1_000, 1_000, 100
BUSY_PARTITIONS = 100
SMALLEST_SEGMENT = 200  # bytes; a segment of the topic LONG contains one batch
RATE = 1_000  # records per second
WATCHED = 10.0  # seconds for which the benchmark counts the changes of the page
SCRAPES = 15  # the number of requests for /metrics


# The keys name the measured numbers. The values contain a label and a limit (a maximum, or with `is_least` a minimum).
GOALS = {
    "first_drawing_ms": FigureGoal("first drawing, ms", 1_000),
    "changes_per_second": FigureGoal("changes a second", 5, is_least=True),
    "metrics_ms": FigureGoal("metrics, ms", 100),
    "lost_percent": FigureGoal("lost throughput, %", 2),
    "cpu_percent": FigureGoal("additional processor time, % of one", 2),
    "memory_mb": FigureGoal("additional memory, MB", 10),
}


class FigureGoalView:
    """Makes the table of the benchmark `ui`. For each measured number, the table shows the median and the goal."""

    def tables(self, samples: Sequence[Sample]) -> list[Table]:
        """Return one table with the figures of all rounds."""
        figures = {name: [sample.figures[name] for sample in samples] for name in GOALS}
        return [goal_table("The page and the metrics of a broker", GOALS, figures)]

    def charts(self, samples: Sequence[Sample]) -> dict[str, Figure]:
        """Return no chart, because the table is enough: it compares each measured number with its goal."""
        return {}


VIEW = FigureGoalView()


def served() -> Hmb:
    """Return a broker that is not running. After its start, it serves its web page and its metrics on one port."""
    port = str(free_ports(1)[0])
    return Hmb(options=("--ui", port, "--metrics", port))


def link(broker: Hmb) -> str:
    """Return the link to the web page of a broker. The link contains a token.

    When the broker starts, it stores the link in a file in its data directory. The function waits until the file
    contains the link.

    Raises PeerFailed if the file does not contain the link within START_SECONDS seconds.
    """
    file = broker.data_dir / STATE_FILE
    deadline = time.monotonic() + START_SECONDS
    while not file.exists() or not (text := file.read_text(encoding="utf-8")):
        if time.monotonic() > deadline:
            raise PeerFailed(f"the broker does not serve its page; its log ends:\n{broker.log_tail()}")
        time.sleep(0.02)
    found: str = json.loads(text)["ui"]
    return found


# -- measurements of a broker with many partitions, segments and groups


def fill(bootstrap: str) -> None:
    """Create a topic with many partitions, a partition with many segments, and many groups."""
    topics.create(bootstrap, MANY, partitions=PARTITIONS)
    topics.create(bootstrap, LONG, {"segment.bytes": str(SMALLEST_SEGMENT)})
    with Producer(bootstrap) as producer:
        for _ in range(SEGMENTS):
            producer.send(LONG, bytes(SMALLEST_SEGMENT // 2)).result()
    for number in range(GROUPS):
        with Consumer(bootstrap, group=f"group-{number}") as consumer:
            partitions = [TopicPartition(MANY, (number * 10 + n) % PARTITIONS) for n in range(10)]
            consumer.assign(partitions)
            consumer.commit(dict.fromkeys(partitions, 0))


def drawing_ms(tab: ChromiumTab, url: str, route: str, selector: str, count: int) -> float:
    """Open a view of the page. Return the time (ms) until the view shows `count` elements that match `selector`."""
    tab.open("about:blank")
    tab.send("Page.navigate", url=f"{url}#/{route}")
    tab.until(f"document.querySelectorAll({json.dumps(selector)}).length >= {count}", f"{count} of {selector}")
    drawn: float = tab.run("new Promise((done) => requestAnimationFrame(() => done(performance.now())))")
    return drawn


COUNT_CHANGES = """new Promise((done) => {{
  let changes = 0;
  const observer = new MutationObserver(() => {{ changes += 1; }});
  observer.observe(document.querySelector('#view'), {{ childList: true, characterData: true, subtree: true }});
  setTimeout(() => {{ observer.disconnect(); done(changes); }}, {ms});
}})"""


def changes_per_second(tab: ChromiumTab, bootstrap: str, url: str) -> float:
    """Send RATE records/s to all partitions. Return how many times a second the view of the topic shows new numbers."""
    tab.open(f"{url}#/topic/{MANY}")
    tab.until("document.querySelectorAll('.lane').length > 0", "the partitions")
    stop = threading.Event()
    thread = threading.Thread(target=_send_at_rate, args=(bootstrap, stop))
    thread.start()
    try:
        changes: int = tab.run(COUNT_CHANGES.format(ms=WATCHED * 1000))
    finally:
        stop.set()
        thread.join()
    return changes / WATCHED


def _send_at_rate(bootstrap: str, stop: threading.Event) -> None:
    begun, sent = time.monotonic(), 0
    with Producer(bootstrap) as producer:
        while not stop.wait(0.01):
            while sent < (time.monotonic() - begun) * RATE:
                producer.send(MANY, bytes(100), partition=sent % PARTITIONS)
                sent += 1


def metrics_ms(broker: Hmb) -> float:
    """Return the median time (ms) of a request for /metrics."""
    times = []
    for _ in range(SCRAPES):
        begun = time.perf_counter()
        with closing(HTTPConnection(urlsplit(link(broker)).netloc, timeout=60)) as connection:
            connection.request("GET", "/metrics")
            connection.getresponse().read()
        times.append((time.perf_counter() - begun) * 1000)
    return median(times)


def measure_page() -> dict[str, float]:
    """Return measurements of a broker that has many partitions, segments and groups: name -> measured value."""
    with served() as broker:
        fill(broker.bootstrap)
        scrape = metrics_ms(broker)
        with browser() as tab:
            url = link(broker)
            tab.open(url)  # The browser exchanges the token for a cookie.
            page = url.partition("?")[0]
            partitions = drawing_ms(tab, page, f"topic/{MANY}", ".lane", PARTITIONS)
            segments = drawing_ms(tab, page, f"partition/{LONG}/0", ".segment", SEGMENTS)
            changes = changes_per_second(tab, broker.bootstrap, page)
    return {
        "partitions_ms": partitions,
        "segments_ms": segments,
        "first_drawing_ms": max(partitions, segments),
        "changes_per_second": changes,
        "metrics_ms": scrape,
    }


# -- measurements of how much throughput, CPU time and memory an open web page costs a busy broker


@contextmanager
def reader(url: str) -> Iterator[None]:
    """Read the stream of changes of a broker during a `with` block. A page in a browser reads the same stream."""
    address, token = urlsplit(url).netloc, urlsplit(url).query.partition("=")[2]
    with closing(HTTPConnection(address, timeout=60)) as connection:
        connection.request("GET", "/changes", headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set() and response.read1():
                pass

        thread = threading.Thread(target=read)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            # This call waits for about five seconds at most. The thread checks `stop` after each read, and the broker
            # sends at least one line every five seconds.
            thread.join()


class BusyBrokers:
    """Two brokers with 100 partitions each.

    The first broker serves no web page. The second broker serves its web page, and a client reads the stream of
    changes.
    """

    def __init__(self, stack: ExitStack, records: int) -> None:
        self._workload = Workload(100, 16_384, records)
        self._without, self._with = stack.enter_context(Hmb()), stack.enter_context(served())
        self._runs = 0
        for broker in (self._without, self._with):
            topics.create(broker.bootstrap, BUSY, partitions=BUSY_PARTITIONS)
            rate_and_cpu(broker, BUSY, self._workload)  # This run is the warm-up.

    def measure(self) -> dict[str, float]:
        """Measure how much slower a broker is, and how much more memory it uses, when it serves its web page.

        The function sends records as fast as possible to two brokers, one after the other. Only one of the brokers
        serves a web page. The result contains the throughput (records/s) of the broker with the web page.

        The result also contains three costs of the web page: the lost throughput (%), the additional processor time (%
        of one processor), and the additional memory (MB).
        """
        self._runs += 1
        runs = {}
        for broker in (self._without, self._with) if self._runs % 2 else (self._with, self._without):
            with reader(link(broker)) if broker is self._with else nullcontext():
                runs[broker] = rate_and_cpu(broker, BUSY, self._workload)
        (rate, cpu), (rate_without, cpu_without) = runs[self._with], runs[self._without]
        memory = resident_bytes(self._with.pid) - resident_bytes(self._without.pid)
        return {
            "records_per_second": rate,
            "lost_percent": 100 * (1 - rate / rate_without),
            "cpu_percent": 100 * (cpu - cpu_without) * rate / self._workload.records,
            "memory_mb": memory / 1e6,
        }


@scenario("ui", VIEW)
@click.option(
    "--num-records", type=POSITIVE, default=1_000_000, show_default=True, help="Records to write in each run."
)
def command(measurement: Measurement, num_records: int) -> None:
    """Measure how fast a broker serves its web page and its metrics, and how much the page slows the broker down.

    The result is a table. It compares each of six measured numbers with its goal, for example at most 100 ms. The
    benchmark needs the browser Chromium, which shows the page.
    """
    progress = measurement.progress(2 * measurement.round_count + 1)
    progress.step("two brokers at full load: warm-up")
    busy = BusyBrokers(measurement.stack, num_records)
    costs = []
    for number in range(measurement.round_count):
        progress.step(f"full load, round {number + 1}")
        costs.append(busy.measure())
    for number, cost in enumerate(costs):
        progress.step(f"the page, round {number + 1}")
        measurement.add(number, "HMB", "HMB", {"records": num_records}, cost | measure_page())
