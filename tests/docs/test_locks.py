"""Tests of the page `docs/tour/locks.md`, which lists locks in the order in which a thread may take them.

The page must contain all locks of the broker, the clients and the monitoring.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hmb
from tests.docs.conftest import EXTENSIONS
from tests.lock_order import Name, recorded_order
from tests.waiting import until

ROOT = EXTENSIONS.parents[1]
ROW = re.compile(r"^\| (\d+) \| `([\w/.]+)` \| `(\w+)` \|", re.MULTILINE)
DECLARATION = re.compile(
    r"^\s*(?:self\.)?(\w+)(?:: [\w.]+)? = .*?threading\.(?:Lock\b|RLock\b|Condition\b(?!\(\w))", re.MULTILINE
)
CLIENT_TABLE, MONITORING_TABLE = "## The locks of the clients", "## The locks of monitoring"
FOLDERS = ("protocol", "records", "storage", "coordinator", "broker")
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "20",
    "log.flush.offset.checkpoint.interval.ms": "20",
    "log.retention.check.interval.ms": "20",
}


def orders_of_page() -> tuple[dict[Name, int], dict[Name, int], dict[Name, int]]:
    """Return the order of the broker's locks, of the clients' locks, and of the locks of monitoring."""
    text = (ROOT / "docs" / "tour" / "locks.md").read_text(encoding="utf-8")
    broker, _, others = text.partition(CLIENT_TABLE)
    clients, _, monitoring = others.partition(MONITORING_TABLE)
    return _order(broker), _order(clients), _order(monitoring)


def _order(text: str) -> dict[Name, int]:
    return {(file, lock): int(number) for number, file, lock in ROW.findall(text)}


def _declared(folders: tuple[str, ...]) -> set[Name]:
    found = set[Name]()
    for path in (path for folder in folders for path in (ROOT / "hmb" / folder).rglob("*.py")):
        file = path.relative_to(ROOT / "hmb").as_posix()
        found |= {(file, name) for name in DECLARATION.findall(path.read_text(encoding="utf-8"))}
    return found


def use(directory: Path) -> None:
    """Run a broker with producers, a consumer group, a transaction, retention, compaction and deletions."""
    small = {"segment.bytes": "2000", "min.cleanable.dirty.ratio": "0.01"}
    with hmb.Broker(data_dir=directory, config=SETTINGS) as broker, hmb.Admin(broker.bootstrap_servers) as admin:
        compacted = hmb.NewTopic("compacted", 1, configs=small | {"cleanup.policy": "compact"})
        deleted = hmb.NewTopic("deleted", 2, configs=small | {"retention.bytes": "3000"})
        admin.create_topics([compacted, deleted])
        with hmb.Producer(broker.bootstrap_servers, acks="all") as producer:
            for number in range(40):
                producer.send("compacted", bytes(500), b"key %d" % (number % 3)).result()
                producer.send("deleted", bytes(500)).result()
        with hmb.Producer(broker.bootstrap_servers, transactional_id="x") as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send("compacted", b"value", b"key")
        with hmb.Consumer(broker.bootstrap_servers, "compacted", group="g") as consumer:
            until(lambda: bool(consumer.poll(timeout=0.1)))
            consumer.commit()
        until(lambda: len(list((directory / "deleted-0").glob("*.log"))) < 5)
        admin.delete_records({hmb.TopicPartition("compacted", 0): 3})
        admin.delete_topics(["deleted"])
    hmb.Broker(data_dir=directory).start().stop()


def test_the_page_names_every_lock_of_the_broker() -> None:
    assert _declared(FOLDERS) == set(orders_of_page()[0])


def test_the_page_names_every_lock_of_the_clients() -> None:
    assert _declared(("client",)) == set(orders_of_page()[1])


def test_the_page_names_every_lock_of_monitoring() -> None:
    assert _declared(("monitoring",)) == set(orders_of_page()[2])


def test_the_threads_of_a_broker_and_of_its_clients_take_locks_in_the_order_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = recorded_order(monkeypatch)
    use(tmp_path)
    for numbers, least in zip(orders_of_page()[:2], (20, 2), strict=True):
        pairs = {(first, second) for first, second in order.pairs if first in numbers and second in numbers}
        assert len(pairs) > least
        assert [pair for pair in pairs if numbers[pair[0]] >= numbers[pair[1]]] == []
