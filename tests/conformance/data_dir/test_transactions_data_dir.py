"""Kafka 4.3.0 writes transactions to a data directory. HMB opens this directory, and then Kafka opens it again.

Each broker must find the producer ids, the producer epochs and the open transactions of the previous broker.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from hmb.bench import peers
from hmb.client import Connection
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.conformance.test_transactions import read
from tests.waiting import until

pytestmark = pytest.mark.external

SECONDS, TOPIC = 30.0, "t"
IDS = ["done", "gone", "open"]


def write(bootstrap: str, name: str, value: bytes, how: str) -> object:
    """Write one transaction. If the transaction stays open, return the object that keeps it open."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": 900_000, "log_level": 0}
    )
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(TOPIC, value, partition=0)
    producer.flush(SECONDS)
    if how == "commit":
        producer.commit_transaction(SECONDS)
    elif how == "abort":
        producer.abort_transaction(SECONDS)
    return producer


def described(port: int) -> list[Any]:
    """Wait until the coordinator has loaded its transactions and none of them is ending. Return their descriptions."""
    with Connection(peers.HOST, port) as connection:
        found: list[Any] = []

        def has_offset() -> bool:
            connection.send(FindCoordinatorRequest(key_type=1, coordinator_keys=IDS), 4)
            found[:] = connection.send(DescribeTransactionsRequest(transactional_ids=IDS)).transaction_states
            return not any(each.error_code or each.transaction_state.startswith("Prepare") for each in found)

        until(has_offset)
        return found


def test_transactions_move_from_kafka_to_hmb_and_back(kafka_43: Path, tmp_path: Path) -> None:
    directory = tmp_path / "data-dir"
    with peers.Kafka43(directory) as kafka:
        kept = [
            write(kafka.bootstrap, "done", b"1", "commit"),
            write(kafka.bootstrap, "gone", b"2", "abort"),
            write(kafka.bootstrap, "open", b"3", "nothing"),
        ]
        of_kafka = described(kafka.port)
    assert [each.transaction_state for each in of_kafka] == ["CompleteCommit", "CompleteAbort", "Ongoing"]
    with peers.Hmb(directory) as hmb:
        assert described(hmb.port) == of_kafka
        assert read(hmb.bootstrap, TOPIC, "read_committed") == [b"1"]
        # When this producer starts, it also aborts the open transaction of the previous producer.
        kept.append(write(hmb.bootstrap, "open", b"4", "commit"))
        kept.append(write(hmb.bootstrap, "done", b"5", "abort"))
        kept.append(write(hmb.bootstrap, "gone", b"6", "nothing"))
        of_hmb = described(hmb.port)
        assert read(hmb.bootstrap, TOPIC, "read_committed") == [b"1", b"4"]
    assert [each.producer_id for each in of_hmb] == [each.producer_id for each in of_kafka]
    assert all(now.producer_epoch > then.producer_epoch for now, then in zip(of_hmb, of_kafka, strict=True))
    with peers.Kafka43(directory) as kafka:
        assert described(kafka.port) == of_hmb
        assert read(kafka.bootstrap, TOPIC, "read_committed") == [b"1", b"4"]
        kept.append(write(kafka.bootstrap, "gone", b"7", "commit"))
        assert read(kafka.bootstrap, TOPIC, "read_committed") == [b"1", b"4", b"7"]
