"""Tests of the HTTP ports of a broker: which clients may read which pages."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from hmb.broker import BrokerServer
from hmb.defaults import STATE_FILE
from hmb.monitoring.ports import HttpAddress, MonitoringPorts, PublicAddressError


@pytest.fixture
def ports() -> Iterator[tuple[BrokerServer, MonitoringPorts]]:
    with BrokerServer() as broker:
        ports = MonitoringPorts(HttpAddress("127.0.0.1", 0), HttpAddress("127.0.0.1", 0))
        ports.start(broker)
        try:
            yield broker, ports
        finally:
            ports.stop()


def get(url: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request(method, f"{parts.path}?{parts.query}", headers=headers)
    response = connection.getresponse()
    return response.status, response.read()


def test_the_state_needs_the_token(ports: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, opened = ports
    url = opened.urls["state"]
    status, body = get(url)
    assert (status, json.loads(body)["cluster_id"]) == (200, broker.context.cluster_id)
    without = url.partition("?")[0]
    assert get(without)[0] == 401
    assert get(f"{without}?token=wrong")[0] == 401
    assert get(without, Authorization=f"Bearer {url.partition('token=')[2]}")[0] == 200


@pytest.mark.parametrize("header", [{"Host": "attacker.example"}, {"Origin": "http://attacker.example"}])
def test_a_page_of_another_site_reads_nothing(
    ports: tuple[BrokerServer, MonitoringPorts], header: dict[str, str]
) -> None:
    _, opened = ports
    for url in opened.urls.values():
        assert get(url, **header)[0] == 403


def test_the_port_of_the_state_serves_the_slowest_requests(ports: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, opened = ports
    url = opened.urls["state"].replace("/state?", "/slowest-requests?seconds=5&")
    assert get(url) == (200, b"{}\n") and broker.context.requests.observe is not None
    assert get(url.partition("&")[0])[0] == 401
    opened.stop()
    assert broker.context.requests.observe is None


def test_metrics_and_health_need_no_token(ports: tuple[BrokerServer, MonitoringPorts]) -> None:
    _, opened = ports
    status, body = get(opened.urls["metrics"])
    assert status == 200 and b"kafka_brokers 1.0" in body
    assert get(opened.urls["metrics"].replace("/metrics", "/healthz")) == (200, b"ok\n")
    assert get(opened.urls["metrics"], method="POST")[0] == 405


def test_a_partition_that_refuses_records_is_not_healthy(ports: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, opened = ports
    log = broker.context.topics.create("t", 1).log(0)
    log.group_commit.fail(OSError("the disk failed"))
    status, body = get(opened.urls["metrics"].replace("/metrics", "/healthz"))
    assert status == 503 and body.startswith(b"t-0: ")


def test_only_the_owner_may_read_the_address(ports: tuple[BrokerServer, MonitoringPorts]) -> None:
    broker, opened = ports
    path = broker.data_dir / STATE_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    (url,) = json.loads(path.read_text()).values()
    assert url != opened.urls["state"] and get(url)[0] == 200  # The owner's token also works when the broker has users.
    opened.stop()
    assert not path.exists()


def test_two_options_with_one_address_share_a_port() -> None:
    address = HttpAddress("127.0.0.1", 0)
    ports = MonitoringPorts(address, address)
    assert ports.state is ports.metrics
    ports.stop()


def test_the_state_is_not_served_to_other_computers_without_tls() -> None:
    with pytest.raises(PublicAddressError, match="the broker has no key for TLS"):
        MonitoringPorts(state=HttpAddress("0.0.0.0", 0))
    MonitoringPorts(metrics=HttpAddress("0.0.0.0", 0)).stop()


@pytest.mark.parametrize(
    ("text", "address"), [("9308", ("127.0.0.1", 9308)), ("::1:80", ("::1", 80)), ("[::1]:80", ("::1", 80))]
)
def test_an_address_is_parsed(text: str, address: tuple[str, int]) -> None:
    assert HttpAddress.parse(text) == address


@pytest.mark.parametrize("text", ["", "host", "1:", "70000", "-1", "host:x"])
def test_a_wrong_address_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not \\[HOST:\\]PORT"):
        HttpAddress.parse(text)
