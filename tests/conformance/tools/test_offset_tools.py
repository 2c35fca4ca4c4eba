"""Tests Kafka 4.3.0's kafka-delete-records and kafka-get-offsets. The broker is killed between the two tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import hmb
from hmb.bench import peers
from hmb.client import Connection
from hmb.protocol.messages.create_topics import CreateTopicsRequest

from .. import java_clients

pytestmark = pytest.mark.external


@pytest.fixture
def broker() -> Iterator[peers.Hmb]:
    """Start a broker with the topic `events`.

    Partition 0 has ten records with the timestamps 1000 to 1009, and partition 1 is empty.
    """
    with peers.Hmb() as broker:
        wanted = CreateTopicsRequest.CreatableTopic(name="events", num_partitions=2, replication_factor=1)
        with Connection(peers.HOST, broker.port) as connection:
            connection.send(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
        with hmb.Producer(broker.bootstrap, acks=-1) as producer:
            for number in range(10):
                producer.send("events", b"%d" % number, partition=0, timestamp=1000 + number).result(timeout=30)
        yield broker


def tool(broker: peers.Hmb, name: str, *arguments: str) -> list[str]:
    output = java_clients.run(peers.kafka_43_jars(), name, "--bootstrap-server", broker.bootstrap, *arguments)
    return output.decode().splitlines()


def offsets(broker: peers.Hmb, time: str) -> list[str]:
    return tool(broker, "org.apache.kafka.tools.GetOffsetShell", "--topic", "events", "--time", time)


def test_get_offsets_and_delete_records(broker: peers.Hmb, tmp_path: Path) -> None:
    assert offsets(broker, "latest") == ["events:0:10", "events:1:0"]
    assert offsets(broker, "max-timestamp") == ["events:0:9"]
    assert offsets(broker, "1004") == ["events:0:4"]
    wanted = tmp_path / "offsets.json"
    partitions = [{"topic": "events", "partition": 0, "offset": 4}, {"topic": "events", "partition": 1, "offset": -1}]
    wanted.write_text(json.dumps({"version": 1, "partitions": partitions}))
    output = tool(broker, "org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert {"partition: events-0\tlow_watermark: 4", "partition: events-1\tlow_watermark: 0"} <= set(output)
    broker.kill()
    broker.start()
    assert offsets(broker, "earliest") == ["events:0:4", "events:1:0"]
    assert offsets(broker, "earliest-local") == ["events:0:4", "events:1:0"]
    assert offsets(broker, "latest-tiered") == []
    assert offsets(broker, "1001") == ["events:0:4"]
