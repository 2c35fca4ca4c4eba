"""The errors of partitions: which errors the fetcher retries, how long, and from which offset it continues.

A fetch covers many partitions, and each of them can fail alone. Each error is therefore stored in the position of its
partition. A temporary error, for example of a broker that is down, is retried for `retry_for` seconds. The consumer
raises an error after the application has received all buffered records.

Three errors change the position before the next attempt:

- *The offset does not exist*, because retention has deleted its records. A consumer in a group continues at its
  `offset` setting. Any other consumer gets an error with the offsets that exist.
- *The topic was deleted and created again.* The new topic has a new id, so the fetcher does not mistake its records for
  those of the old topic. Brokers before Kafka 3.1 do not check the id in a fetch. With them, the fetcher notices the
  new topic when it reads the metadata again.
- *The first message is larger than the limit of a fetch.* Brokers before Fetch v3 then send only a part of it. The next
  fetch asks for twice as many bytes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping

from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.positions import Position
from hmb.client.metadata import Cluster, TopicMetadata
from hmb.client.offsets import Offset, list_offsets
from hmb.client.retries import RETRY_PAUSE
from hmb.protocol.enums import EARLIEST, LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition

GONE_AFTER = 5.0  # seconds; after this time, a topic that no broker knows is an error
LARGEST_FETCH = 256 * 1024 * 1024  # bytes of one partition

LOGGER = logging.getLogger(__name__)


class PartitionErrors:
    """The errors of a consumer's partitions. `count` is the number of failed fetches.

    `reset` is the offset at which to continue if an offset does not exist. None means that this is an error.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Mapping[TopicPartition, Position],
        reset: Offset | None,
        retry_for: float,
    ) -> None:
        self._cluster = cluster
        self._positions = positions
        self._reset = reset
        self._retry_for = retry_for
        self.count = 0

    def failed(self, position: Position, error: ConnectionFailed | KafkaError) -> None:
        """Store an error of a partition. The fetcher retries it until `_is_hopeless` returns True.

        A broker that begins to lead a partition may answer UNKNOWN_SERVER_ERROR. The next fetch usually succeeds, so
        the fetcher retries it, too, as Kafka's consumer does.
        """
        self.count += 1
        now = time.monotonic()
        position.failing_since = position.failing_since or now
        position.missing_since = (position.missing_since or now) if is_unknown_topic(error) else None
        position.retry_at = now + RETRY_PAUSE
        self._cluster.forget(position.partition.topic)
        is_server_error = isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        if (is_final(error) and not is_server_error) or self._is_hopeless(position, now):
            position.error = error

    def fetch_failed(self, position: Position, error: KafkaError) -> None:
        """Handle the error of one partition in a response. In a group, an offset that does not exist is reset."""
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            self.failed(position, error)
        elif self._reset is None:
            self.failed(position, self._out_of_range(position))
        else:
            LOGGER.warning(
                "%s does not have offset %d: the consumer continues at %s",
                position.partition,
                position.fetched,
                self._reset,
            )
            position.start = self._reset

    def check_topic_id(self, position: Position, topic: TopicMetadata) -> None:
        """Store the id of a position's topic. Raises KafkaError if the topic was deleted and created again."""
        if position.topic_id in (None, NO_TOPIC_ID):
            position.topic_id = topic.topic_id
        elif topic.topic_id not in (position.topic_id, NO_TOPIC_ID):
            what = f"{position.partition} was deleted and created again since offset {position.fetched}"
            if self._reset is None:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{what}: seek to an offset of the new topic")
            # The topic was deleted, and created again with another id. The consumer has read no records of the new
            # topic, so it begins at the start.
            position.start, position.topic_id = "earliest", None
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, what)

    def message_was_cut(self, position: Position) -> None:
        """Let the next fetch ask for twice as many bytes. Raises KafkaError if the message is larger than any fetch."""
        if position.max_bytes >= LARGEST_FETCH:
            what = f"{position.partition}: the message at {position.fetched} is too large"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)
        position.max_bytes *= 2

    def next_retry(self) -> float:
        """Return the time at which the next failed partition may be retried, or infinity without one."""
        return min(
            (it.retry_at for it in self._positions.values() if it.failing_since and it.may_fetch), default=math.inf
        )

    def _is_hopeless(self, position: Position, now: float) -> bool:
        """Return whether an error has lasted too long. An unknown topic becomes an error after `GONE_AFTER` seconds."""
        if position.missing_since is not None and now - position.missing_since >= GONE_AFTER:
            return True
        return position.failing_since is not None and now - position.failing_since >= self._retry_for

    def _out_of_range(self, position: Position) -> ConnectionFailed | KafkaError:
        """Return an error that names the offsets that exist, or the error of the request for these offsets."""
        partition = position.partition
        try:
            first = list_offsets(self._cluster, [partition], EARLIEST)[partition]
            end = list_offsets(self._cluster, [partition], LATEST)[partition]
        except (ConnectionFailed, KafkaError) as error:
            return error
        what = f"{partition} has no offset {position.fetched}; it starts at {first} and ends before {end}"
        return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, what)


def is_unknown_topic(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_final(error: Exception) -> bool:
    """Return whether a retry cannot help. A corrupt batch stays corrupt, although Kafka calls the error retriable."""
    return isinstance(error, KafkaError) and (not error.code.retriable or error.code is ErrorCode.CORRUPT_MESSAGE)
