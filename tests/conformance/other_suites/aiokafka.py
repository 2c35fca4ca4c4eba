# HMB's embedded broker replaces the container with Kafka. This file is appended to aiokafka's tests/conftest.py.
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest


class HmbServer(NamedTuple):
    """The embedded broker with the fields of aiokafka's `KafkaServer`. It has no ports for TLS and SASL."""

    host: str
    port: int
    ssl_port: int = 0
    sasl_plain_port: int = 0
    sasl_ssl_port: int = 0
    container: None = None

    @property
    def hosts(self) -> list[str]:
        return [f"{self.host}:{self.port}"]


@pytest.fixture(scope="session")
def kafka_image() -> str:
    return "hmb:4.0.0"


@pytest.fixture(scope="session")
def ssl_folder() -> pathlib.Path:
    return pathlib.Path("tests/ssl_cert")


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[HmbServer]:
    """Start a broker whose new topics have two partitions, as in aiokafka's container."""
    import hmb

    with hmb.Broker(config={"num.partitions": 2}) as broker:
        host, port = broker.bootstrap_servers.rsplit(":", 1)
        yield HmbServer(host, int(port))


@pytest.fixture(scope="class")
def kerberos_utils() -> None:
    return None
