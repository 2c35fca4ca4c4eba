"""Tests that `hmb state -b`, `hmb top -b` and `hmb ui -b` can show the state of an Apache Kafka 4.3.0 broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.load.chromium import CHROMIUM
from tests.monitoring.test_remote import check_page, check_state, check_views, use

pytestmark = pytest.mark.external


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with peers.Kafka43(config={"group.initial.rebalance.delay.ms": "0"}) as kafka:
        use(kafka.bootstrap)
        with hmb.Producer(kafka.bootstrap, transactional_id="transfer", transaction_timeout=600) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("orders", b"open", timestamp=1005).result()
            yield kafka.bootstrap
            producer.abort_transaction()


def test_the_apis_of_kafka_make_a_state(servers: str) -> None:
    check_state(servers)


def test_the_page_of_kafka_reads_batches_with_fetch(servers: str) -> None:
    check_page(servers)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")
def test_each_view_of_kafka_shows_numbers_or_a_reason(servers: str) -> None:
    check_views(servers)
