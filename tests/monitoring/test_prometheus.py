"""Tests of the metrics with a real Prometheus server: it accepts the metrics, and each query returns a value."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

import hmb
from hmb.broker import BrokerServer
from hmb.monitoring.ports import HttpAddress, MonitoringPorts
from tests.waiting import until

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
DASHBOARD, CONFIG = HOW_TO / "hmb-dashboard.json", HOW_TO / "prometheus.yml"
# promtool complains about these names. HMB keeps them, because dashboards for Kafka expect the names of kafka_exporter
# and of the JMX exporter. docs/how-to/monitor.md lists them, too.
KEPT = {
    "kafka_consumergroup_current_offset_sum": 'non-histogram and non-summary metrics should not have "_sum" suffix',
    "kafka_consumergroup_lag_sum": 'non-histogram and non-summary metrics should not have "_sum" suffix',
    "kafka_network_requestmetrics_totaltimems": 'non-summary metrics should not have "quantile" label',
}
pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is missing: apt-get install prometheus"),
]


@pytest.fixture
def metrics() -> Iterator[str]:
    """Yield the address of a broker's metrics. A producer and a group have used this broker."""
    with BrokerServer(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        broker.context.topics.create("orders", 2)
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for number in range(100):
                producer.send("orders", b"x", partition=number % 2)
        with hmb.Consumer(broker.bootstrap_servers, "orders", group="billing") as consumer:
            next(iter(consumer))
            consumer.commit()
        ports = MonitoringPorts(metrics=HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        yield ports.urls["metrics"]
        ports.stop()


def test_promtool_complains_only_about_kept_names(metrics: str) -> None:
    with urlopen(metrics) as response:
        text = response.read()
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    complaints = {line for line in (checked.stderr + checked.stdout).decode().splitlines() if line}
    assert complaints == {f"{name} {complaint}" for name, complaint in KEPT.items()}
    assert all(f"`{name}`" in (HOW_TO / "monitor.md").read_text() for name in KEPT)


def test_each_query_of_the_dashboard_has_values(metrics: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    target = metrics.removeprefix("http://").removesuffix("/metrics")
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.read_text().replace("127.0.0.1:9308", target).replace("5s", "1s"))
    arguments = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path}", f"--web.listen-address=127.0.0.1:{port}"]
    with subprocess.Popen(["prometheus", *arguments], stderr=subprocess.DEVNULL) as prometheus:
        try:
            for query in _queries():
                until(partial(_values, port, query), query)
            assert _values(port, "sum(kafka_consumergroup_lag)") == ["99"]
        finally:
            prometheus.terminate()


def _queries() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def _values(port: int, query: str) -> list[str]:
    """Return the current values of a query, or an empty list if Prometheus does not respond yet."""
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={quote(query)}") as response:
            result: list[dict[str, Any]] = json.load(response)["data"]["result"]
    except OSError:
        time.sleep(0.2)
        return []
    return [each["value"][1] for each in result]
