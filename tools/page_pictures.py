"""Make the pictures of the page in `docs/pictures`: a light file and a dark file for each view that the book shows.

    python tools/page_pictures.py               # all pictures, in about a minute
    python tools/page_pictures.py look-up       # one picture

The program needs Chromium, and Pillow, which matplotlib installs. It starts a broker, fills it with records and groups,
and opens its page in a headless Chromium. Run it again after a change of the page, and look at each picture before you
commit it.
"""

from __future__ import annotations

import base64
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path

from PIL import Image

import hmb
from hmb.bench.load.chromium import ChromiumTab, browser
from hmb.broker import BrokerServer
from hmb.monitoring.ports import HttpAddress, MonitoringPorts

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH = 980  # pixels
COLOURS = 256  # in a file; the pictures contain few colours, so the files become much smaller
CONFIG = {
    "log.flush.acks.all": "false",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "500",
    "log.cleaner.backoff.ms": "500",
    "log.segment.delete.delay.ms": "0",
}
CITIES = [b"Seattle", b"San Francisco", b"Portland", b"Denver"]


def produce(broker: BrokerServer, topic: str, count: int, configs: dict[str, str], pause: float = 0) -> None:
    """Create a topic, and send `count` records to it, each in a batch of its own. Pause after each tenth record."""
    with hmb.Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([hmb.NewTopic(topic, 1, configs=configs)])
    with hmb.Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            producer.send(topic, b"day %d: rain" % number, key=CITIES[number % 4], partition=0).result()
            if number % 10 == 9:
                time.sleep(pause)


@contextmanager
def members(broker: BrokerServer, group: str, pauses: dict[str, float]) -> Iterator[None]:
    """Run members of a group during a `with` block. Each member starts after its pause (seconds)."""
    stop = threading.Event()

    def consume(name: str, pause: float) -> None:
        stop.wait(pause)
        with hmb.Consumer(broker.bootstrap_servers, "orders", group=group, client_id=name) as consumer:
            while not stop.is_set():
                consumer.poll(timeout=0.1)

    threads = [threading.Thread(target=consume, args=each) for each in pauses.items()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# -- one function for each picture: it prepares the broker, opens the view, and returns the height of the picture


def look_up(broker: BrokerServer, tab: ChromiumTab, stack: ExitStack) -> int:
    produce(broker, "weather", 400, {"segment.bytes": "10000", "index.interval.bytes": "1000"})
    tab.go("look-up/weather/0/offset/203")
    tab.until("document.querySelectorAll('.steps li').length > 3", "the steps")
    return 1150


def group(broker: BrokerServer, tab: ChromiumTab, stack: ExitStack) -> int:
    with hmb.Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([hmb.NewTopic("orders", 6)])
    stack.enter_context(members(broker, "shop", {"ada": 0, "bob": 1, "eve": 6}))
    stop = threading.Event()
    stack.callback(stop.set)

    def send() -> None:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            while not stop.wait(0.02):
                producer.send("orders", b"an order")

    threading.Thread(target=send).start()
    time.sleep(35)  # The chart of the lag has a sample every 10 s.
    tab.go("group/shop")
    tab.until("document.querySelector('.machine text.present')?.textContent === 'Stable'", "a stable group")
    return 800


def request(broker: BrokerServer, tab: ChromiumTab, stack: ExitStack) -> int:
    tab.go("requests")
    time.sleep(1.5)
    produce(broker, "weather", 400, {}, pause=0.1)
    row = "[...document.querySelectorAll('tr')].find((it) => /^Produce.*followed$/s.test(it.textContent))"
    tab.until(f"{row} !== undefined", "a followed request")
    tab.run(f"{row}.querySelector('a').click()")
    tab.until("document.querySelectorAll('.way li').length > 10", "the way through the code")
    return 620


def retention(broker: BrokerServer, tab: ChromiumTab, stack: ExitStack) -> int:
    configs = {"segment.bytes": "4000", "retention.bytes": "12000"}
    produce(broker, "visits", 700, configs, pause=0.1)
    tab.go("events")
    tab.until("document.body.innerText.includes('visits-0: deleted')", "a deletion")
    return 620


def compaction(broker: BrokerServer, tab: ChromiumTab, stack: ExitStack) -> int:
    configs = {"cleanup.policy": "compact", "segment.bytes": "4000", "min.cleanable.dirty.ratio": "0.6"}
    produce(broker, "prices", 700, configs, pause=0.1)
    tab.go("partition/prices/0")
    tab.until("document.querySelectorAll('.block').length > 0", "the batches")
    return 560


VIEWS: dict[str, Callable[[BrokerServer, ChromiumTab, ExitStack], int]] = {
    "look-up": look_up,
    "group": group,
    "request": request,
    "retention": retention,
    "compaction": compaction,
}


def take(name: str, tab: ChromiumTab) -> None:
    """Make the light file and the dark file of a picture."""
    with BrokerServer(config=CONFIG) as broker, ExitStack() as stack:
        ports = MonitoringPorts(ui=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        stack.callback(ports.stop)
        tab.open(ports.urls["ui"])
        tab.until("document.querySelector('#view h1') !== null", "a view")
        height = VIEWS[name](broker, tab, stack)
        for colours in ("light", "dark"):
            tab.look(dark=colours == "dark")
            size = {"width": WIDTH, "height": height}
            tab.send("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
            tab.run("document.querySelector('.way')?.previousElementSibling.scrollIntoView()")
            tab.run("scrollBy(0, scrollY && -60)")  # The header covers the first 60 pixels.
            time.sleep(0.5)
            data = tab.send("Page.captureScreenshot", format="png")["data"]
            picture = Image.open(BytesIO(base64.b64decode(data))).convert("RGB")
            small = picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
            small.save(PICTURES / f"{name}-{colours}.png", optimize=True)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with browser() as tab:
        for name in sys.argv[1:] or VIEWS:
            print(name)
            take(name, tab)


if __name__ == "__main__":
    main()
