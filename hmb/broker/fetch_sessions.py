"""In a fetch session (KIP-227), requests and responses list only changes since the previous request.

A consumer of a thousand partitions fetches the same partitions again and again, and most of these partitions have no
new records. Without a session, each request and each response contains all thousand partitions. In a session, the
broker remembers the partitions that the consumer fetches. For each partition, it also remembers the high watermark and
the log start offset that it has sent last. The requests and responses of a session contain only changes.

A response in a session contains only partitions with *news*: new records, an error, a new high watermark or a
new log start offset.

In the next example, each line shows a request and its response. Epoch 0 begins a session, and epoch -1 ends it.
Requests with epoch 0 or -1 are full fetches, which contain all partitions. Session 0 means "no session":
    fetch, session 0, epoch 0   all partitions       ->  session 7   all partitions          (a full fetch)
    fetch, session 7, epoch 1   changed partitions   ->  session 7   partitions with news    (an incremental fetch)
    fetch, session 7, epoch 2   no partitions        ->  session 7   no partitions           (nothing has changed)
    fetch, session 7, epoch -1  all partitions       ->  session 0   all partitions          (the session ends)

After the first request of a session, a Fetch request names only the partitions that the client adds or changes.
The client changes a partition when it sends a new fetch offset or a new size limit. A request can also list
partitions that the broker must remove from the session (`forgotten_topics_data`).

The epoch of a Fetch request is the number of the request in its session. If a request is lost or repeated, the broker
receives a wrong epoch and returns INVALID_FETCH_SESSION_EPOCH.

The broker keeps fetch sessions in a cache, and can remove a session. If a client uses a session that the broker has
removed, the client gets FETCH_SESSION_ID_NOT_FOUND, and begins again with a full fetch. If the cache has no room for a
new session, the response contains the session id 0. The client then continues with full fetches.

The cache of fetch sessions has two limits. It contains at most `max.incremental.fetch.session.cache.slots` sessions,
and all sessions together contain at most MAX_SESSION_PARTITIONS partitions.

If a client wants a new session and the cache contains no free slot, the broker may remove one old session. As
in Kafka, two rules select this session. In both rules, T is the setting
`min.incremental.fetch.session.eviction.ms` (2 minutes by default):
- *Unused sessions.* If some sessions have been unused for longer than T, the broker removes the session that
  has been unused for the longest time.
- *Small sessions.* Otherwise, the broker looks at the sessions that were created more than T ago, and selects
  the session with the fewest partitions. It removes this session only if the new session has more partitions.

Source: KIP-227, KIP-516 (topic ids); Kafka's `FetchSession`.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hmb.broker.topics.registry import Topics
from hmb.protocol.enums import FINAL_SESSION_EPOCH, INITIAL_SESSION_EPOCH, INT32_MAX, NO_OFFSET, NO_SESSION
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.primitives import part_size
from hmb.protocol.topics import NO_TOPIC_ID
from hmb.storage.log import Log
from hmb.units import now_ms

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData
MAX_SESSION_PARTITIONS = 250_000  # limit for the partitions of all sessions; each partition takes about 400 bytes

TopicKey = str | int  # a topic's name, or the topic's id as a number if the request contains ids
Key = tuple[TopicKey, int]  # topic and partition number


@dataclass(slots=True)
class CachedPartition:
    """A partition that a client fetches.

    `high_watermark` and `log_start_offset` come from the broker's newest response. All other fields contain the
    client's newest values. If the client sends only the topic's id, the broker stores the topic's name in `topic`.
    """

    topic_key: TopicKey
    topic: str | None  # None if the broker knows only the topic's id
    topic_id: uuid.UUID
    partition: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    high_watermark: int = NO_OFFSET  # NO_OFFSET before the first response
    log_start_offset: int = NO_OFFSET  # NO_OFFSET before the first response

    def update_request_params(self, other: CachedPartition) -> None:
        """Copy the fetch offset, the size limit and the epochs from `other` to this object.

        `other` describes the same partition with the values from a newer request.
        """
        self.fetch_offset, self.max_bytes = other.fetch_offset, other.max_bytes
        self.leader_epoch, self.last_fetched_epoch = other.leader_epoch, other.last_fetched_epoch

    def log(self, topics: Topics, *, uses_ids: bool) -> Log:
        """Return the log of this partition. Find the topic by its id if `uses_ids` is true, and by its name if not.

        Raises INCONSISTENT_TOPIC_ID if the topic was deleted and created again after the session began.
        """
        if not uses_ids:
            return topics.log(self.topic, NO_TOPIC_ID, self.partition)
        try:
            topic = topics.find(None, self.topic_id)
        except KafkaError:
            if self.topic is None:
                raise
            topics.log(self.topic, NO_TOPIC_ID, self.partition)
            why = f"the topic {self.topic!r} was created again with another id; request its metadata again"
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, why) from None
        self.topic = topic.name
        return topic.log(self.partition)

    def is_unchanged(self, log: Log) -> bool:
        """Return whether this partition has no new records and no changed offsets since the last response."""
        return (
            self.fetch_offset == self.high_watermark == log.high_watermark
            and self.log_start_offset == log.log_start_offset
            and (self.leader_epoch < 0 or self.leader_epoch == log.leader_epoch)
            and self.last_fetched_epoch < 0
        )

    def must_respond(self, data: PartitionData) -> bool:
        """Return whether the response to an incremental fetch must contain this partition."""
        return bool(
            _size(data)
            or data.error_code
            or data.diverging_epoch.epoch >= 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
        )

    def store_response(self, data: PartitionData) -> None:
        """Store the high watermark and the log start offset that the response `data` contains.

        The next response in the session contains this partition if one of the two offsets differs from the stored
        offset. If `data` contains an error, the method stores -1 instead of the high watermark. No real high watermark
        is -1, so the next response contains this partition again.
        """
        self.high_watermark = NO_OFFSET if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset


PartitionResponses = Sequence[tuple[CachedPartition, PartitionData]]


@dataclass(slots=True)
class FetchSession:
    """One fetch session. It contains its partitions in the order in which the broker reads them.

    When the broker has returned records of a partition, it moves this partition to the end of the order. The next
    response then begins with the other partitions.
    """

    id: int
    uses_ids: bool  # The requests of the session contain topic ids instead of names.
    created: int  # time of the creation, in ms
    used: int  # time of the last request, in ms
    partitions: dict[Key, CachedPartition]
    epoch: int = 1  # the epoch that the next request must have


class FetchContext:
    """A fetch without a session. The object contains the partitions to read, and creates the response."""

    def __init__(self, partitions: dict[Key, CachedPartition]) -> None:
        self.partitions = list(partitions.values())

    def respond(self, responses: PartitionResponses) -> FetchResponse:
        return _response(responses, NO_SESSION)


class FullFetchContext(FetchContext):
    """A fetch that creates a session, if the cache has room for it."""

    def __init__(self, sessions: FetchSessions, named: dict[Key, CachedPartition], uses_ids: bool) -> None:
        super().__init__(named)
        self._sessions, self._named, self._uses_ids = sessions, named, uses_ids

    def respond(self, responses: PartitionResponses) -> FetchResponse:
        for partition, data in responses:
            partition.store_response(data)
        return _response(responses, self._sessions.create(self._named, self._uses_ids))


class IncrementalFetchContext(FetchContext):
    """A fetch in an existing session. The response contains only partitions with new records or other changes."""

    def __init__(self, sessions: FetchSessions, session: FetchSession) -> None:
        super().__init__(session.partitions)
        self._sessions, self._session, self._epoch = sessions, session, session.epoch

    def respond(self, responses: PartitionResponses) -> FetchResponse:
        news = [(partition, data) for partition, data in responses if partition.must_respond(data)]
        if not self._sessions.store_offsets(self._session, self._epoch, news):
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self._session.id)
        return _response(news, self._session.id)


@dataclass(slots=True)
class FetchSessions:
    """The cache of all fetch sessions of a broker. Thread-safe.

    - `_sessions` contains at most `slots` sessions, each with its own id as the key.
    - `_partitions` is the number of partitions of all these sessions together. It is at most MAX_SESSION_PARTITIONS.
    """

    slots: int
    eviction_ms: int
    clock: Callable[[], int] = now_ms
    # `_lock` guards the dictionary of sessions, the number of partitions, and the epoch and the partition list of each
    # session. A thread that holds `_lock` takes no other lock.
    #
    # A thread reads the partitions of a session without `_lock`, and sets their field `topic`. This is safe if the
    # client waits for each response before it sends the session's next request. Only one thread at a time then uses the
    # partitions.
    #
    # Suppose that a client sends requests A and B of a session over two connections, without waiting for the response
    # to A. Two threads then use the session's partitions, and the response to A can be wrong. Each request increases
    # the session's epoch. Before the broker answers A, `store_offsets` takes `_lock` and compares the epochs. If B has
    # increased the epoch, A gets an error.
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # Each request moves its session to the end, so the first session is the least recently used one (`_evict`).
    _sessions: OrderedDict[int, FetchSession] = field(default_factory=OrderedDict)
    _partitions: int = 0  # number of partitions of all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, *, uses_ids: bool) -> FetchContext:
        """Begin a fetch. Return an object that contains the partitions to read, and that later creates the response.

        Raises KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
        """
        named = _named(request, uses_ids)
        if request.session_epoch in (INITIAL_SESSION_EPOCH, FINAL_SESSION_EPOCH):
            if request.session_id != NO_SESSION:
                with self._lock:
                    self._remove(request.session_id)
            if request.session_epoch == FINAL_SESSION_EPOCH:
                return FetchContext(named)
            return FullFetchContext(self, named, uses_ids)
        with self._lock:
            session = self._continued(request, uses_ids)
            self._update(session, named, _forgotten(request, uses_ids))
            if not session.partitions:
                self._remove(session.id)
                return FetchContext(named)
            if self._partitions > MAX_SESSION_PARTITIONS:
                self._remove(session.id)
                why = f"all fetch sessions together have more than {MAX_SESSION_PARTITIONS:,} partitions"
                raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, why)
            session.used = self.clock()
            session.epoch = 1 if session.epoch == INT32_MAX else session.epoch + 1
            self._sessions.move_to_end(session.id)
            return IncrementalFetchContext(self, session)

    def _continued(self, request: FetchRequest, uses_ids: bool) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            why = f"there is no fetch session {request.session_id}; begin a new one"
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, why)
        if session.epoch != request.session_epoch:
            why = f"the request contains epoch {request.session_epoch}; the next epoch is {session.epoch}"
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, why)
        if session.uses_ids != uses_ids:
            why = "a session names its topics either by id or by name"
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, why)
        return session

    def _update(self, session: FetchSession, named: dict[Key, CachedPartition], gone: Iterable[Key]) -> None:
        self._partitions -= len(session.partitions)
        for key, partition in named.items():
            known = session.partitions.setdefault(key, partition)
            if known is not partition:
                known.update_request_params(partition)
        for key in gone:
            session.partitions.pop(key, None)
        self._partitions += len(session.partitions)

    def create(self, partitions: dict[Key, CachedPartition], uses_ids: bool) -> int:
        """Create a session and return its id. If the cache has no room, return NO_SESSION."""
        with self._lock:
            now = self.clock()
            if len(self._sessions) >= self.slots and not self._evict(len(partitions), now):
                return NO_SESSION
            if self._partitions + len(partitions) > MAX_SESSION_PARTITIONS:
                return NO_SESSION
            while (id := random.randint(NO_SESSION + 1, INT32_MAX)) in self._sessions:
                pass
            self._sessions[id] = FetchSession(id, uses_ids, now, now, partitions)
            self._partitions += len(partitions)
            return id

    def _evict(self, size: int, now: int) -> bool:
        """Remove one session, to make room for a new session of `size` partitions.

        The docstring of the module explains which session the broker may remove. If no session may be removed, return
        False.
        """
        unused = next(iter(self._sessions.values()), None)
        if unused is not None and now - unused.used > self.eviction_ms:
            self._remove(unused.id)
            return True
        old = [session for session in self._sessions.values() if now - session.created > self.eviction_ms]
        smallest = min(old, key=lambda session: len(session.partitions), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return False
        self._remove(smallest.id)
        return True

    def _remove(self, id: int) -> None:
        session = self._sessions.pop(id, None)
        self._partitions -= len(session.partitions) if session else 0

    def store_offsets(self, session: FetchSession, epoch: int, news: PartitionResponses) -> bool:
        """Store the offsets of a response in the session. Return False if the response may be wrong.

        Each request increases the session's epoch. The number `epoch` is the session's epoch after the current request.
        If `session.epoch` is different, the broker has already received a later request. The response may be wrong,
        so the method stores nothing.

        `news` contains the partitions of the response. The method moves each partition with records to the end of
        `session.partitions`. The next response then begins with other partitions.
        """
        with self._lock:
            if session.epoch != epoch:
                return False
            for partition, data in news:
                partition.store_response(data)
                if _size(data):
                    key = partition.topic_key, partition.partition
                    session.partitions[key] = session.partitions.pop(key)
            return True


def _size(data: PartitionData) -> int:
    return 0 if data.records is None else part_size(data.records)


def _named(request: FetchRequest, uses_ids: bool) -> dict[Key, CachedPartition]:
    named: dict[Key, CachedPartition] = {}
    for topic in request.topics:
        topic_id = topic.topic_id
        key, name = (topic_id.int, None) if uses_ids else (topic.topic, topic.topic)
        for asked in topic.partitions:
            named[key, asked.partition] = CachedPartition(
                key,
                name,
                topic_id,
                asked.partition,
                asked.fetch_offset,
                asked.partition_max_bytes,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
            )
    return named


def _forgotten(request: FetchRequest, uses_ids: bool) -> Iterator[Key]:
    for topic in request.forgotten_topics_data:
        for partition in topic.partitions:
            yield (topic.topic_id.int if uses_ids else topic.topic), partition


def _response(responses: PartitionResponses, session_id: int) -> FetchResponse:
    """Return the response with the partitions in the order of `responses`.

    If consecutive partitions belong to the same topic, they share one topic entry in the response.
    """
    response = FetchResponse(session_id=session_id)
    last: TopicKey | None = None
    for partition, data in responses:
        if partition.topic_key != last:
            topic = FetchResponse.FetchableTopicResponse(topic=partition.topic or "", topic_id=partition.topic_id)
            response.responses.append(topic)
            last = partition.topic_key
        topic.partitions.append(data)
    return response
