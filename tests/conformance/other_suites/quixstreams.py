# HMB's embedded broker replaces the containers with Kafka. This file is appended to quixstreams' tests/conftest.py.
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest


class HmbContainer(NamedTuple):
    """The address of an embedded broker, with the fields of quixstreams' `KafkaContainer`."""

    broker_address: str
    internal_broker_address: str


@pytest.fixture(scope="session")
def network() -> None:
    return None


@pytest.fixture(scope="session")
def kafka_container_factory() -> Callable[[], Iterator[HmbContainer]]:
    """Return a function that starts a second broker. Some tests copy records from one cluster to another."""
    import hmb

    def factory() -> Iterator[HmbContainer]:
        with hmb.Broker() as broker:
            yield HmbContainer(broker.bootstrap_servers, broker.bootstrap_servers)

    return factory


@pytest.fixture(scope="session")
def kafka_container(kafka_bootstrap_servers: str) -> HmbContainer:
    """Return an `HmbContainer` with the address of the broker that HMB's pytest plugin has started."""
    return HmbContainer(kafka_bootstrap_servers, kafka_bootstrap_servers)


@pytest.fixture(scope="session")
def schema_registry_container() -> None:
    pytest.skip("the test needs a schema registry")
