"""Helpers that create, fill and delete topics with one partition, before or while Spark reads them."""

from __future__ import annotations

from typing import Any

import hmb
from hmb.client.admin import NewTopic, raised
from hmb.protocol.topics import TopicPartition
from hmb.spark.batch import RangePartition


def create(servers: str, name: str, **configs: str) -> None:
    with hmb.Admin(servers) as admin:
        raised(admin.create_topics([NewTopic(name, 1, configs=configs)])[name])


def delete(servers: str, name: str) -> None:
    with hmb.Admin(servers) as admin:
        raised(admin.delete_topics([name])[name])


def delete_before(servers: str, topic: str, offset: int) -> None:
    with hmb.Admin(servers) as admin:
        raised(admin.delete_records({TopicPartition(topic, 0): offset})[TopicPartition(topic, 0)])


def fill(servers: str, topic: str, values: list[bytes | None], **settings: Any) -> None:
    with hmb.Producer(servers, **settings) as producer:
        for value in values:
            producer.send(topic, value, partition=0)


def ranges(planned: Any) -> list[str]:
    """Return the ranges of planned tasks as strings."""
    return [str(each.offsets) for each in planned if isinstance(each, RangePartition)]
