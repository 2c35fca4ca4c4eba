"""A topic as a target: outputs become records, and the clock becomes the committed offsets of a consumer group.

A transaction of Kafka's protocol can write records to partitions and commit offsets of a consumer group. Either all of
these writes take effect, or none of them. A clock is a set of offsets, one for each partition, so it can be committed
as the offsets of a group. The committed offsets of the group `hailstorm-<topology>-<sink>` are therefore the clock of
the sink's last transaction. Kafka's own tools and the command `hmb groups` show this progress of the sink:
    hmb groups describe hailstorm-trending-out-0

When a sink starts, `init_transactions` fences an older producer with the same transactional id. It also waits until the
last transaction of the older producer has committed or aborted. The offsets that the sink reads after this call are
therefore final.

Source: KIP-98, "Exactly Once Delivery and Transactional Messaging"; KIP-447.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hmb.client import Admin, KafkaError, Producer
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import StaleEpochError

FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}

Encode = Callable[[Any], tuple[bytes | None, bytes | None]]  # takes an output; returns the key and value of its record


class TopicTarget:
    """A target that writes the outputs to a topic, and commits the clock in the same transaction.

    bootstrap_servers   the addresses of brokers
    topic               the topic for the outputs
    encode              takes an output; returns the key and the value of its record, as bytes or None
    """

    def __init__(self, bootstrap_servers: str, topic: str, encode: Encode) -> None:
        self._servers, self._topic, self._encode = bootstrap_servers, topic, encode
        self._producer: Producer | None = None
        self._group = ""

    def open(self, topology: str, sink: str, start: Clock) -> Clock | None:
        self._group = f"hailstorm-{topology}-{sink}"
        self._producer = Producer(self._servers, client_id="hailstorm", transactional_id=self._group)
        self._producer.init_transactions()
        with Admin(self._servers) as admin:
            committed = admin.list_group_offsets(self._group)
        return Clock({partition: noted.offset for partition, noted in committed.items()}) if committed else None

    def write(self, tuples: Sequence[Any], clock: Clock) -> None:
        assert self._producer is not None
        try:
            with self._producer.transaction():
                for item in tuples:
                    key, value = self._encode(item)
                    self._producer.send(self._topic, value, key)
                self._producer.send_offsets_to_transaction(dict(clock), self._group)
        except KafkaError as error:
            if error.code.name in FENCED:
                what = f"{self._group}: a newer start writes to {self._topic}"
                raise StaleEpochError(f"{what}: {error.message}") from error
            raise

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
