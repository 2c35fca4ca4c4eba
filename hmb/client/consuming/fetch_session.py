"""A fetch session with one leader (KIP-227). This module decides which partitions the next Fetch request contains.

The problem: a consumer of 1,000 partitions sends Fetch requests again and again, and most partitions have not changed
since the previous request. If each request names all partitions, the client encodes all these names each time, and the
broker decodes them each time.

The idea: the leader stores the partitions and their fetch offsets in a *session*. A request then names only new
partitions, and partitions whose fetch offset or size limit has changed. A second list names the partitions that the
leader must remove from the session. The response contains only partitions that have changed: they have new records, an
error, a new high watermark or a new log start offset. The requests of a session are numbered, and the number of a
request is its *epoch*:
    Fetch(session 0, epoch 0, all 1,000 partitions)          ----->
                                        <-----  session 7, all 1,000 partitions
    Fetch(session 7, epoch 1)                                ----->
                                        <-----  session 7, records of t-5
    Fetch(session 7, epoch 2, t-5 from 20)                   ----->

The first request of a session names all partitions: it is a *full fetch*. Each later request is an *incremental fetch*.
The client begins with a full fetch again in these cases:
- The previous response has not arrived, or an exception (for example after Ctrl-C) interrupted the client while it
  handled the response. The client then does not know which partitions the leader has stored.
- The leader does not know the session any more (FETCH_SESSION_ID_NOT_FOUND), or it expects another epoch than the epoch
  in the request (INVALID_FETCH_SESSION_EPOCH).
- The consumer has removed a partition and added it again. The partition then has a new `Position`, which does not
  contain the high watermark yet. The response to a full fetch contains the high watermark of every partition. The
  response to an incremental fetch contains it only if it has changed.

A session saves work only if the consumer reads many partitions. This table compares the cost of one fetch without a
session and with a session, if no new records exist. The times are CPU times of HMB's consumer and of HMB's broker, on a
busy machine with two cores:
                   size of the request        time of the consumer     time of the broker
    partitions      without / with session       without / with           without / with
             1           98 / 47 bytes            0.5 / 0.4 ms             0.4 / 0.2 ms
            10          395 / 47 bytes            0.6 / 0.4 ms             0.5 / 0.3 ms
           100        3,365 / 47 bytes            2.2 / 0.6 ms             2.3 / 0.3 ms
         1,000       33,066 / 47 bytes             29 /   4 ms              26 /   2 ms

A consumer that waits for records sends two Fetch requests a second. If it reads few partitions, a fetch session saves
almost nothing. But a broker stores at most 1,000 sessions (`max.incremental.fetch.session.cache.slots`). The consumer
therefore uses a session only if it fetches at least LEAST_PARTITIONS partitions from the leader. Otherwise, each
request names all partitions and belongs to no session.

Limits: a consumer does not end its sessions when it closes its connections. A broker stores a limited number of
sessions. When a new session needs space, the broker removes an unused session.

Source: KIP-227; Kafka's `FetchSessionHandler`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from hmb.client.consuming.positions import Position
from hmb.protocol.enums import FINAL_SESSION_EPOCH, INITIAL_SESSION_EPOCH, INT32_MAX, NO_SESSION
from hmb.protocol.errors import FETCH_SESSION_ERRORS, ErrorCode
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.topics import TopicPartition

FIRST_VERSION_OF_SESSIONS = FetchRequest.first_version("session_id")
LEAST_PARTITIONS = 10


class PartitionToFetch(NamedTuple):
    """A partition that the consumer fetches now, with the values that a Fetch request contains for this partition."""

    position: Position
    topic_id: UUID
    fetch_offset: int
    max_bytes: int

    def is_other(self, known: PartitionToFetch) -> bool:
        """Return whether this object and `known` have different positions or different topic ids.

        `known` describes the same partition in the previous request.
        """
        return self.position is not known.position or self.topic_id != known.topic_id


Partitions = Mapping[TopicPartition, PartitionToFetch]


class FetchRequestData(NamedTuple):
    """The fields of a Fetch request that depend on the session.

    The next request contains the partitions in `named`. The leader must remove the partitions in `forgotten` from the
    session.
    """

    session_id: int
    epoch: int
    named: Partitions
    forgotten: Partitions

    @property
    def topics(self) -> list[FetchRequest.FetchTopic]:
        """The partitions in the request, in the format of a Fetch request."""
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for (name, partition), it in self.named.items():
            topic = topics.setdefault(name, FetchRequest.FetchTopic(topic=name, topic_id=it.topic_id))
            topic.partitions.append(
                FetchRequest.FetchTopic.FetchPartition(
                    partition=partition, fetch_offset=it.fetch_offset, partition_max_bytes=it.max_bytes
                )
            )
        return list(topics.values())

    @property
    def forgotten_topics(self) -> list[FetchRequest.ForgottenTopic]:
        """The partitions that the leader must remove from the session, in the format of a Fetch request."""
        topics: dict[str, FetchRequest.ForgottenTopic] = {}
        for (name, partition), it in self.forgotten.items():
            topic = topics.setdefault(name, FetchRequest.ForgottenTopic(topic=name, topic_id=it.topic_id))
            topic.partitions.append(partition)
        return list(topics.values())


class FetchSessionHandler:
    """The session with one leader. This class does no input or output.

    - The fetcher calls `next` before each request. The fetcher calls `completed` after it has handled a response
      without an error. If the fetcher does not call `completed`, the next request is a full fetch.
    - `_known` contains all partitions that the consumer wanted to fetch when it sent the previous request, also those
      that this request did not name. If the epoch of the next request (`_epoch`) is above 0, the leader's session
      contains exactly these partitions.
    """

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_SESSION_EPOCH  # the epoch of the next request
        self._sent_epoch = INITIAL_SESSION_EPOCH
        self._known: Partitions = {}
        self._uses_ids = False

    def next(self, wanted: Partitions, version: int, *, uses_ids: bool) -> FetchRequestData:
        """Return the fields of the next Fetch request that depend on the session.

        `wanted` contains the partitions to fetch. `uses_ids` is true if the request contains topic ids instead of
        names.
        """
        before, epoch = self._known, self._epoch
        if version < FIRST_VERSION_OF_SESSIONS or len(wanted) < LEAST_PARTITIONS:
            epoch = FINAL_SESSION_EPOCH
        elif uses_ids != self._uses_ids or any(
            (known := before.get(partition)) is not None and each.is_other(known) for partition, each in wanted.items()
        ):
            epoch = INITIAL_SESSION_EPOCH
        self._known, self._uses_ids = wanted, uses_ids
        # The present request gets the epoch `epoch`. `_epoch` is the epoch of the next request. If the present request
        # fails, the next request must be a full fetch, so set `_epoch` to INITIAL_SESSION_EPOCH now. If the response
        # contains no error, `completed` replaces this value with the next epoch of the session.
        self._sent_epoch, self._epoch = epoch, INITIAL_SESSION_EPOCH
        if epoch <= INITIAL_SESSION_EPOCH:
            return FetchRequestData(self._id, epoch, wanted, {})
        named = {partition: each for partition, each in wanted.items() if before.get(partition) != each}
        forgotten = {partition: each for partition, each in before.items() if partition not in wanted}
        return FetchRequestData(self._id, epoch, named, forgotten)

    def completed(self, session_id: int) -> None:
        """Continue the session after a response.

        `session_id` is the id in the response. If it is 0, the leader has created no session.
        """
        continues = session_id == self._id or self._sent_epoch == INITIAL_SESSION_EPOCH
        self._id = session_id
        if session_id != NO_SESSION and continues:
            self._epoch = 1 if self._sent_epoch == INT32_MAX else self._sent_epoch + 1

    def is_lost(self, error_code: int) -> bool:
        """Return True if `error_code` means that the leader cannot continue the session.

        The next request is then a full fetch.
        """
        if self._sent_epoch <= INITIAL_SESSION_EPOCH or error_code not in FETCH_SESSION_ERRORS:
            return False
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id = NO_SESSION
        return True
