"""A fetch session with one leader (KIP-227). This module decides which partitions the next Fetch request contains.

The problem: a consumer of 1,000 partitions sends Fetch requests again and again, although most partitions have not
changed since the previous request. If each request names all partitions, the client must encode 1,000 partitions for
every request. The broker must decode them every time.

The idea: the leader stores the consumer's partitions and their fetch offsets in a *session*. Later requests then name
only the changes. A request names new partitions, and partitions whose fetch offset or size limit has changed. In a
separate list, it names the partitions that the leader must remove from the session. The response contains only
partitions with news: new records, an error, a new high watermark or a new log start offset. Each request of a session
has a number, its *epoch*:
    Fetch(session 0, epoch 0, all 1,000 partitions)          ----->
                                        <-----  session 7, all 1,000 partitions
    Fetch(session 7, epoch 1)                                ----->
                                        <-----  session 7, records of t-5
    Fetch(session 7, epoch 2, t-5 from 20)                   ----->

The first request of a session names all partitions (a *full fetch*). Each later request names only changes
(an *incremental fetch*). The client sends another full fetch in these cases:
- The previous request has failed, or the client was interrupted while it handled the response, for example by
  Ctrl-C. The client then does not know which partitions the leader has stored.
- The leader does not know the session any more (FETCH_SESSION_ID_NOT_FOUND).
- The leader expects another epoch than the epoch in the request (INVALID_FETCH_SESSION_EPOCH).
- The id of a topic has changed, or the client has switched between topic names and topic ids.
- The consumer has removed a partition and added it again, so the partition's new `Position` has no high
  watermark. An incremental fetch returns the high watermark only after a change, but a full fetch always
  returns it.

A session saves work only if the consumer reads many partitions. This table compares the cost of one fetch without and
with a session, if there are no new records to fetch. The times are the CPU times of HMB's consumer and of HMB's broker.
They were measured on a busy machine with two cores:
                   size of the request        time of the consumer     time of the broker
    partitions      without / with session       without / with           without / with
             1           98 / 47 bytes            0.5 / 0.4 ms             0.4 / 0.2 ms
            10          395 / 47 bytes            0.6 / 0.4 ms             0.5 / 0.3 ms
           100        3,365 / 47 bytes            2.2 / 0.6 ms             2.3 / 0.3 ms
         1,000       33,066 / 47 bytes             29 /   4 ms              26 /   2 ms

Fetch requests for few partitions are small even without a session, and a consumer that waits for records sends
only two a second. A session would save little, but a broker can store only 1,000 sessions by default
(`max.incremental.fetch.session.cache.slots`).

A consumer therefore uses a session with a broker only if it fetches at least 10 partitions (LEAST_PARTITIONS)
from this broker. Otherwise, each request names all partitions and belongs to no session.

Limits: when a consumer closes its connections, it does not end its fetch sessions. The broker keeps these sessions,
although nobody uses them any more. But a broker stores only a limited number of sessions. When it needs room for a new
session, it removes an unused one.

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
    """A partition that the consumer wants to fetch, with its values for the next Fetch request.

    The Fetch request contains `topic_id`, `fetch_offset` and `max_bytes`. It does not contain `position`, the object
    that stores how far the consumer has read the partition.
    """

    position: Position
    topic_id: UUID
    fetch_offset: int
    max_bytes: int

    def is_other(self, known: PartitionToFetch) -> bool:
        """Return whether the `position` object or the topic id has changed since the previous Fetch request.

        `known` contains the partition's values at the time of the previous Fetch request. If the consumer removes a
        partition and adds it again, the partition gets a new `position` object.
        """
        return self.position is not known.position or self.topic_id != known.topic_id


Partitions = Mapping[TopicPartition, PartitionToFetch]


class FetchRequestData(NamedTuple):
    """The part of a Fetch request that depends on the fetch session.

    - `named` contains the partitions in the request's list `topics`.
    - `forgotten` contains the partitions that the leader must remove from the session.
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
    """The fetch session with one leader. This object does not send or receive anything itself.

    - The fetcher calls `next` before each request. It calls `completed` after it has handled a response without an
      error. If the fetcher does not call `completed`, the next request names all partitions (a full fetch).
    - `_known` contains all partitions that the consumer wanted to fetch from this leader with the previous request.
      For example, the consumer wanted 1,000 partitions, but the request named only the 3 partitions with a new
      fetch offset. `_known` then contains all 1,000.
    - `_epoch` is the number of the next request in the session. If `_epoch` is above 0, the leader has stored
      exactly the partitions in `_known`.
    """

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_SESSION_EPOCH  # the epoch of the next request
        self._sent_epoch = INITIAL_SESSION_EPOCH
        self._known: Partitions = {}
        self._uses_ids = False

    def next(self, wanted: Partitions, version: int, *, uses_ids: bool) -> FetchRequestData:
        """Return the part of the next Fetch request that depends on the session.

        `wanted` contains all partitions that the consumer wants to fetch. `uses_ids` is true if the request identifies
        topics by id, and false if by name.
        """
        before, epoch = self._known, self._epoch
        if version < FIRST_VERSION_OF_SESSIONS or len(wanted) < LEAST_PARTITIONS:
            epoch = FINAL_SESSION_EPOCH
        elif uses_ids != self._uses_ids or any(
            (known := before.get(partition)) is not None and each.is_other(known) for partition, each in wanted.items()
        ):
            epoch = INITIAL_SESSION_EPOCH
        self._known, self._uses_ids = wanted, uses_ids
        # If the returned request fails, the next request must be a full fetch. So `_epoch`, the epoch of the next
        # request, is INITIAL_SESSION_EPOCH, until the method `completed` replaces this value.
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
