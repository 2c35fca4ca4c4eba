"""A broker with a monitoring page, clients of this broker, and functions that operate the page in a browser."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.request import Request, urlopen

import hmb
from hmb.bench.load.chromium import ChromiumTab
from hmb.broker import BrokerServer
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from tests.waiting import until

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"
MARKUP = SCRIPT.encode()
CONFIG = {"log.flush.acks.all": "false", "group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}


class Load:
    """A broker with a monitoring page, and clients that use the broker until the test ends."""

    def __init__(self, broker: BrokerServer, ports: MonitoringPorts) -> None:
        self.broker, self.ports = broker, ports
        self.servers = broker.bootstrap_servers
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def link(self) -> str:
        return self.ports.urls["ui"]

    def state(self) -> Any:
        with urlopen(Request(self.ports.urls["state"]), timeout=30) as response:
            return json.load(response)

    def partition(self, number: int = 0) -> Any:
        topics = {it["name"]: it for it in self.state()["topics"]}
        return topics["orders"]["partitions"][number]

    def has_arrived(self) -> bool:
        """Return whether the views have something to show: several segments, and groups with committed offsets."""
        state = self.state()
        has_positions = [group["group_id"] for group in state["groups"] if group["positions"] and group["members"]]
        return len(self.partition()["segments"]) > 2 and len(has_positions) == 2

    def start(self) -> None:
        """Produce with each codec, read in two groups, and keep one transaction open."""
        for codec in ("none", "gzip", "zstd"):
            self._run(self._produce, codec)
        self._run(self._consume, "classic", "billing")
        self._run(self._consume, "consumer", SCRIPT)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, work: Any, *arguments: str) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _produce(self, codec: Any) -> None:
        client_id = SCRIPT if codec == "gzip" else f"client-{codec}"
        with hmb.Producer(self.servers, compression=codec, client_id=client_id) as producer:
            while not self._stop.wait(0.01):
                producer.send("orders", MARKUP * 3, key=MARKUP, headers=[(SCRIPT, MARKUP)], partition=0)

    def _consume(self, protocol: Any, group: str) -> None:
        with hmb.Consumer(self.servers, "orders", group=group, group_protocol=protocol, client_id=SCRIPT) as consumer:
            while not self._stop.is_set():
                consumer.poll(timeout=0.05)


@contextmanager
def loaded_page() -> Iterator[Load]:
    """Run a broker with a monitoring page, and clients of this broker, until the `with` block ends."""
    with BrokerServer(config=CONFIG) as broker, ExitStack() as stack:
        with hmb.Admin(broker.bootstrap_servers) as admin:
            configs = {"segment.bytes": "30000", "index.interval.bytes": "2000"}
            admin.create_topics([hmb.NewTopic("orders", 2, configs=configs)])
        ports = MonitoringPorts(ui=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        stack.callback(ports.stop)
        load = Load(broker, ports)
        load.start()
        stack.callback(load.stop)
        transactional = hmb.Producer(broker.bootstrap_servers, transactional_id=SCRIPT, transaction_timeout=600)
        producer = stack.enter_context(transactional)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"open", partition=1).result()
        until(load.has_arrived, "segments and groups exist", pause=0.2)
        yield load
        producer.abort_transaction()


def paused(tab: ChromiumTab) -> None:
    tab.run("document.getElementById('pause').click()")
    tab.until("document.getElementById('connection').textContent.startsWith('paused')")
    # The page may have begun to draw a change before the click on "Pause". Wait until it has drawn this change.
    tab.run("new Promise((done) => setTimeout(done, 300))")


def choose(tab: ChromiumTab, element: str, value: str, event: str) -> None:
    """Set the value of the form field with the id `element`, as a user does.

    After the change, the field receives an event with the name `event`, for example "change".
    """
    tab.run(f"document.getElementById('{element}').value = '{value}'")
    tab.run(f"document.getElementById('{element}').dispatchEvent(new Event('{event}'))")


def each(tab: ChromiumTab, selector: str, expression: str) -> list[Any]:
    """Evaluate a JavaScript expression for each element that matches the selector, and return the values.

    In the expression, the variable `it` is the element. For example, `it.id` is the id of the element.
    """
    found: list[Any] = tab.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((it) => {expression})")
    return found


def number(text: str) -> int:
    return int(text.replace(",", ""))
