"""Decides whether a consumer continues after an error of a partition, and at which offset.

A Fetch request contains many partitions, and each of them can have its own error. If an error is temporary, for
example because a broker is down, the fetcher fetches this partition again. It gives up after `retry_for`
seconds without success, or after 5 seconds if the topic is unknown. It then stores the error in the partition's
`Position` object. It stores a permanent error at once. `poll` first returns all buffered records, and then
raises the stored error.

For three kinds of errors, the fetcher changes the position or the request before it fetches the partition
again:
- *The offset does not exist*, because retention has deleted its records. A consumer in a group continues at
  the place that its setting `offset` names, for example "latest". If the consumer has no group, or if this
  setting is a number, the consumer raises an error. The text of this error contains the first offset and the
  end of the log.
- *The topic was deleted, and created again with the same name.* The new topic has a new id. The Fetch request
  contains the old id, so the broker returns an error instead of records. Fetch requests to brokers older than
  Kafka 3.1 contain no topic id. With such a broker, the fetcher notices the new id in its next metadata
  response. A consumer in a group continues at the first record of the new topic. If the consumer has no group,
  or if its setting `offset` is a number, it raises an error.
- *The first message is larger than the requested number of bytes.* A broker that does not support version 3
  of Fetch sends only the beginning of the message. The next request asks for twice as many bytes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping

from hmb.client.backoff import RETRY_PAUSE
from hmb.client.connection import MAX_RESPONSE_SIZE, ConnectionFailed
from hmb.client.consuming.positions import Position
from hmb.client.metadata import Cluster, TopicMetadata
from hmb.client.offsets import Offset, list_offsets
from hmb.protocol.enums import EARLIEST, LATEST
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import NO_TOPIC_ID, TopicPartition

GONE_AFTER = 5.0  # seconds; a topic that stays unknown for longer is an error

LOGGER = logging.getLogger(__name__)


class PartitionErrors:
    """Decides what happens after an error of a partition. `count` is the number of errors so far.

    `reset` is the place where the consumer continues if the log does not have the requested offset, for example
    "latest". If `reset` is None, the consumer reports an error instead.
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
        """Handle an error of a partition. If the error is temporary, let the fetcher fetch the partition again later.

        UNKNOWN_SERVER_ERROR also counts as temporary, as in Kafka's consumer. A broker that has just become the leader
        sometimes sends this error, and the next fetch usually succeeds.
        """
        self.count += 1
        now = time.monotonic()
        position.failing_since = position.failing_since or now
        position.missing_since = (position.missing_since or now) if is_unknown_topic(error) else None
        position.retry_at = now + RETRY_PAUSE
        self._cluster.forget(position.partition.topic)
        is_server_error = isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        if (is_final(error) and not is_server_error) or self._failed_too_long(position, now):
            position.error = error

    def fetch_failed(self, position: Position, error: KafkaError) -> None:
        """Handle an error code of one partition in a Fetch response.

        If the log does not have the requested offset, a consumer in a group continues at another offset (`reset`).
        """
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            self.failed(position, error)
        elif self._reset is None:
            self.failed(position, self._out_of_range(position))
        else:
            LOGGER.warning(
                "%s does not have offset %d: the consumer continues at %s",
                position.partition,
                position.fetch_offset,
                self._reset,
            )
            position.start = self._reset

    def check_topic_id(self, position: Position, topic: TopicMetadata) -> None:
        """Store the id of a position's topic. Raises KafkaError if the topic was deleted and created again."""
        if position.topic_id in (None, NO_TOPIC_ID):
            position.topic_id = topic.topic_id
        elif topic.topic_id not in (position.topic_id, NO_TOPIC_ID):
            what = f"{position.partition} was deleted and created again since offset {position.fetch_offset}"
            if self._reset is None:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"{what}: seek to an offset of the new topic")
            # The topic was deleted and created again, and the consumer has read no record of the new topic. So it
            # continues at the new topic's first record.
            position.start, position.topic_id = "earliest", None
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, what)

    def message_was_cut(self, position: Position) -> None:
        """Double `position.max_bytes`, because a message did not fit into the response.

        The next Fetch request then asks for twice as many bytes of this partition. Raises KafkaError if `max_bytes` has
        already reached MAX_RESPONSE_SIZE.
        """
        if position.max_bytes >= MAX_RESPONSE_SIZE:
            what = f"{position.partition}: the message at {position.fetch_offset} is too large"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, what)
        position.max_bytes *= 2

    def next_retry(self) -> float:
        """Return the time of the next retry: the earliest time at which a failed partition is fetched again.

        Return infinity if no partition has failed.
        """
        failed = (it for it in self._positions.values() if it.failing_since and it.may_fetch and not it.is_in_flight)
        return min((it.retry_at for it in failed), default=math.inf)

    def _failed_too_long(self, position: Position, now: float) -> bool:
        """Return whether all fetches of a partition have failed for too long.

        The limit is `retry_for` seconds. If no broker knows the topic, the limit is `GONE_AFTER` seconds.
        """
        if position.missing_since is not None and now - position.missing_since >= GONE_AFTER:
            return True
        return position.failing_since is not None and now - position.failing_since >= self._retry_for

    def _out_of_range(self, position: Position) -> ConnectionFailed | KafkaError:
        """Return an error whose message contains the first offset and the end of the log.

        If the request for these two offsets fails, return the error of this request instead.
        """
        partition = position.partition
        try:
            first = list_offsets(self._cluster, [partition], EARLIEST)[partition]
            end = list_offsets(self._cluster, [partition], LATEST)[partition]
        except (ConnectionFailed, KafkaError) as error:
            return error
        what = f"{partition} has no offset {position.fetch_offset}; it starts at {first} and ends before {end}"
        return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, what)


def is_unknown_topic(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_final(error: Exception) -> bool:
    """Return whether an error is permanent: the same request would fail again.

    CORRUPT_MESSAGE is permanent, too, because a corrupt batch in the log stays corrupt. Kafka, however, calls this
    error retriable.
    """
    return isinstance(error, KafkaError) and (not error.code.retriable or error.code is ErrorCode.CORRUPT_MESSAGE)
