"""Topics as targets: one Kafka transaction writes outputs of a sink, and commits the sink's progress.

A Kafka transaction can write records and also commit offsets of a consumer group. Either all of this takes
effect, or nothing. So each transaction of a sink also commits the *clock* of the sink: one offset for each
partition that the topology reads. The group is `hailstorm-<topology>-<sink instance>`. Kafka's own tools and
the command `hmb groups` show these offsets:
    hmb groups describe hailstorm-trending-out-0

When a sink starts, an older process of the same sink may still be running. The method `init_transactions`
*fences* the older process's producer: the broker then refuses its requests. The method also waits until the
older producer's last transaction has committed or aborted. After that, the older process can no longer commit
input offsets. Only then does the new process read the committed input offsets.

A user can delete a topic and create it again with the same name. The new topic does not contain the old
outputs, but the committed offsets still say that the sink has written them. To detect this, the target stores
the id of the topic as the metadata of each committed offset. At each start and in each transaction, it compares
this id with the topic's present id.

Brokers older than Kafka 2.8 have no topic ids. With these brokers, the target cannot detect that its topic was
deleted and created again.

Source: KIP-98, "Exactly Once Delivery and Transactional Messaging"; KIP-447.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hmb.client import Admin, KafkaError, OffsetAndMetadata, Producer
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import StaleEpochError, TopologyError

FENCED = {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}

Encode = Callable[[Any], tuple[bytes | None, bytes | None]]  # takes an output; returns the key and value of its record


class TopicTarget:
    """A target that writes the outputs of a sink to a topic.

    The clock of the sink contains one offset for each partition that the topology reads. In one transaction, the
    target writes outputs to the topic, and commits these offsets for a consumer group. The topic then contains the
    outputs of all records below the committed offsets.

    bootstrap_servers   the addresses of brokers
    topic               the topic for the outputs
    encode              takes an output; returns the key and the value of its record, as bytes or None
    security            settings for TLS and SASL, for example {"security.protocol": "SSL"}, as for `hmb.Producer`
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, encode: Encode, security: Mapping[str, str] | None = None
    ) -> None:
        self._servers, self._topic, self._encode, self._security = bootstrap_servers, topic, encode, security
        self._producer: Producer | None = None
        self._group = self._sink = ""
        self._topic_id = ""  # the id of the topic at the last transaction; empty if it is not known

    def open(self, topology: str, sink: str, start: Clock) -> Clock | None:
        self._group, self._sink = f"hailstorm-{topology}-{sink}", sink
        self._producer = Producer(
            self._servers, client_id="hailstorm", transactional_id=self._group, security=self._security
        )
        self._producer.init_transactions()
        with Admin(self._servers, security=self._security) as admin:
            committed = admin.list_group_offsets(self._group)
        self._topic_id = max((noted.metadata for noted in committed.values()), default="")
        self._checked_id()
        return Clock({partition: noted.offset for partition, noted in committed.items()}) if committed else None

    def write(self, tuples: Sequence[Any], clock: Clock) -> None:
        assert self._producer is not None
        try:
            with self._producer.transaction():
                for item in tuples:
                    key, value = self._encode(item)
                    self._producer.send(self._topic, value, key)
                topic_id = self._checked_id()
                offsets = {partition: OffsetAndMetadata(offset, topic_id) for partition, offset in clock.items()}
                self._producer.send_offsets_to_transaction(offsets, self._group)
            self._topic_id = topic_id
        except KafkaError as error:
            if error.code.name in FENCED:
                what = f"{self._group}: a newer start writes to {self._topic}"
                raise StaleEpochError(f"{what}: {error.message}") from error
            raise

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()

    def _checked_id(self) -> str:
        """Return the present id of the topic, or "" if the topic does not exist or its broker has no topic ids.

        Raises TopologyError if the topic was deleted or created again since the last transaction.
        """
        with Admin(self._servers, security=self._security) as admin:
            found = admin.describe_topics([self._topic])[self._topic]
        if not isinstance(found, KafkaError):
            present, change = str(found.topic_id) if found.topic_id.int else "", "created again"
        elif found.code.name == "UNKNOWN_TOPIC_OR_PARTITION":
            present, change = "", "deleted"
        else:
            raise found
        if self._topic_id not in ("", present):
            raise TopologyError(
                f"{self._sink}: the topic {self._topic} was {change}, so the earlier outputs of the sink are lost. "
                "To compute all outputs again, use an empty snapshot store, delete the group "
                f"{self._group}, and delete the outputs in the topic"
            )
        return present
