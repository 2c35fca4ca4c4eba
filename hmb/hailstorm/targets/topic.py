"""A target that writes outputs as records to a topic, and the progress of the sink as offsets of a consumer group.

A transaction of Kafka's protocol can write records to partitions and commit offsets of a consumer group. Either all of
these writes take effect, or none of them. A clock is a set of offsets, one for each partition, so it can be committed
as the offsets of a group. The committed offsets of the group `hailstorm-<topology>-<sink>` are therefore the clock of
the sink's last transaction. Kafka's own tools and the command `hmb groups` show this progress of the sink:
    hmb groups describe hailstorm-trending-out-0

When a sink starts, `init_transactions` fences an older producer with the same transactional id. `init_transactions`
also waits until the last transaction of the older producer has committed or aborted. The offsets that the sink reads
after this call are therefore final.

A topic can be deleted, and created again with the same name. The committed offsets would then still say that the
outputs are written, although the new topic does not contain them. Each committed offset therefore has the id of the
topic as its metadata. The target compares this id with the present id when it starts, and in each transaction. Brokers
older than Kafka 2.8 have no topic ids, so the target cannot compare them there.

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

    The clock of the sink contains one offset for each partition that the topology reads. The topic contains the outputs
    of all tuples below these offsets. The target writes outputs and commits these offsets in one transaction. It
    commits them as the offsets of a consumer group.

    bootstrap_servers   the addresses of brokers
    topic               the topic for the outputs
    encode              takes an output; returns the key and the value of its record, as bytes or None
    security            the settings of TLS and SASL by Kafka's names, as for `hmb.Producer`
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
                f"{self._sink}: the topic {self._topic} was {change} after the sink had written outputs to it, so it "
                "lacks these outputs. To compute all outputs again, use an empty snapshot store, and delete the group "
                f"{self._group} and the outputs in the topic"
            )
        return present
