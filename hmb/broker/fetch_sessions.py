"""Fetch sessions (KIP-227): a fetch and its response contain only the partitions that have changed.

A consumer of a thousand partitions fetches the same thousand again and again, and most of them have nothing new. In a
session the broker remembers the fetched partitions and their last responses. Only changes go over the wire::

    fetch, session 0, epoch 0   all partitions       ->  session 7   all partitions          (a full fetch)
    fetch, session 7, epoch 1   those that changed   ->  session 7   those with news         (an incremental one)
    fetch, session 7, epoch 2   nothing              ->  session 7   nothing
    fetch, session 7, epoch -1  all partitions       ->  session 0   all partitions          (the session ends)

A partition has news if it has records, an error, another high watermark or another log start offset. A request contains
a partition to change its offset or its limit, or to add it to the session. The request's list of forgotten topics
removes partitions from the session.

The epoch counts the requests of a session. A lost or repeated request has a wrong epoch, and the response is
INVALID_FETCH_SESSION_EPOCH. Sessions are a cache. A request for a session that the broker has removed gets
FETCH_SESSION_ID_NOT_FOUND, and the client begins again with a full fetch. If the cache is full, the response contains
the session id 0, and the client continues with full fetches.

The cache has two limits: `max.incremental.fetch.session.cache.slots` sessions, and MAX_PARTITIONS partitions in all
sessions. In a full cache, a new session replaces another one, as in Kafka. The broker removes the session that was
unused for the longest time, if this time is longer than `min.incremental.fetch.session.eviction.ms`. Otherwise the
broker looks for the smallest session that has existed for that long. It removes this session if the new one is larger.

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
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.primitives import part_size
from hmb.protocol.topics import NO_TOPIC_ID
from hmb.storage.clock import now_ms
from hmb.storage.log import Log

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData
NO_SESSION = 0
FIRST_EPOCH, LAST_EPOCH = 0, -1  # epochs in a request: 0 begins a session, -1 ends it or asks for no session
MAX_ID = 2**31 - 1
MAX_PARTITIONS = 250_000  # partitions of all sessions together; each one takes some 400 bytes

TopicKey = str | int  # a topic's name, or its id as a number in versions with ids
Key = tuple[TopicKey, int]  # key of a partition


@dataclass(slots=True)
class FetchedPartition:
    """A partition of a fetch: the values of its last request, and in a session the offsets of its last response."""

    topic_key: TopicKey
    topic: str | None  # None if the broker knows only the topic's id
    topic_id: uuid.UUID
    partition: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int
    high_watermark: int = -1  # -1 before the first response
    log_start_offset: int = -1  # -1 before the first response

    def ask_again(self, other: FetchedPartition) -> None:
        """Replace the fetch offset and the limits by those of the session's next request."""
        self.fetch_offset, self.max_bytes = other.fetch_offset, other.max_bytes
        self.leader_epoch, self.last_fetched_epoch = other.leader_epoch, other.last_fetched_epoch

    def log(self, topics: Topics, *, uses_ids: bool) -> Log:
        """Return the partition's log, by the topic's id or by its name.

        Raises INCONSISTENT_TOPIC_ID if the topic was created again since the session began.
        """
        if not uses_ids:
            return topics.log(self.topic, NO_TOPIC_ID, self.partition)
        try:
            topic = topics.find(None, self.topic_id)
        except KafkaError:
            if self.topic is None:
                raise
            topics.log(self.topic, NO_TOPIC_ID, self.partition)
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID) from None
        self.topic = topic.name
        return topic.log(self.partition)

    def is_unchanged(self, log: Log) -> bool:
        """Return whether the client has read all records and knows the offsets of the log from the last response."""
        return (
            self.fetch_offset == self.high_watermark == log.high_watermark
            and self.log_start_offset == log.log_start_offset
            and (self.leader_epoch < 0 or self.leader_epoch == log.leader_epoch)
            and self.last_fetched_epoch < 0
        )

    def is_news(self, data: PartitionData) -> bool:
        """Return whether an incremental response must contain this partition."""
        return bool(
            _size(data)
            or data.error_code
            or data.diverging_epoch.epoch >= 0
            or data.high_watermark != self.high_watermark
            or data.log_start_offset != self.log_start_offset
        )

    def answered(self, data: PartitionData) -> None:
        """Store the offsets of the response.

        After an error the stored high watermark is -1, so the next response without an error is news.
        """
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset


Answers = Sequence[tuple[FetchedPartition, PartitionData]]


@dataclass(slots=True)
class FetchSession:
    """One fetch session.

    The partitions are in the order in which the broker reads them. A partition that returned records moves to the end.
    """

    id: int
    uses_ids: bool  # The requests of the session contain topic ids instead of names.
    created: int  # time in ms
    used: int  # time of the last request, in ms
    partitions: dict[Key, FetchedPartition]
    epoch: int = 1  # the epoch that the next request must have


class Fetching:
    """A fetch without a session: its partitions, and the function that builds its response."""

    def __init__(self, partitions: dict[Key, FetchedPartition]) -> None:
        self.partitions = list(partitions.values())

    def respond(self, answers: Answers) -> FetchResponse:
        return _response(answers, NO_SESSION)


class FullFetch(Fetching):
    """A fetch that creates a session, if the cache has room for it."""

    def __init__(self, sessions: FetchSessions, named: dict[Key, FetchedPartition], uses_ids: bool) -> None:
        super().__init__(named)
        self._sessions, self._named, self._uses_ids = sessions, named, uses_ids

    def respond(self, answers: Answers) -> FetchResponse:
        for partition, data in answers:
            partition.answered(data)
        return _response(answers, self._sessions.create(self._named, self._uses_ids))


class IncrementalFetch(Fetching):
    """A fetch in an existing session. Its response contains only the partitions with news."""

    def __init__(self, sessions: FetchSessions, session: FetchSession) -> None:
        super().__init__(session.partitions)
        self._sessions, self._session, self._epoch = sessions, session, session.epoch

    def respond(self, answers: Answers) -> FetchResponse:
        news = [(partition, data) for partition, data in answers if partition.is_news(data)]
        if not self._sessions.note(self._session, self._epoch, news):
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self._session.id)
        return _response(news, self._session.id)


@dataclass(slots=True)
class FetchSessions:
    """The cache of all fetch sessions of a broker."""

    slots: int
    eviction_ms: int
    clock: Callable[[], int] = now_ms
    # This lock guards the fields below and the sessions in them. A thread that holds it takes no other lock.
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # Each use moves a session to the end, so the least recently used session comes first.
    _sessions: OrderedDict[int, FetchSession] = field(default_factory=OrderedDict)
    _partitions: int = 0  # number of partitions of all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, *, uses_ids: bool) -> Fetching:
        """Return the partitions that a request fetches.

        Raises KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR.
        """
        named = _named(request, uses_ids)
        if request.session_epoch in (FIRST_EPOCH, LAST_EPOCH):
            if request.session_id != NO_SESSION:
                with self._lock:
                    self._remove(request.session_id)
            return Fetching(named) if request.session_epoch == LAST_EPOCH else FullFetch(self, named, uses_ids)
        with self._lock:
            session = self._continued(request, uses_ids)
            self._update(session, named, _forgotten(request, uses_ids))
            if not session.partitions:
                self._remove(session.id)
                return Fetching(named)
            if self._partitions > MAX_PARTITIONS:
                self._remove(session.id)
                raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            session.used = self.clock()
            session.epoch = 1 if session.epoch == MAX_ID else session.epoch + 1
            self._sessions.move_to_end(session.id)
            return IncrementalFetch(self, session)

    def _continued(self, request: FetchRequest, uses_ids: bool) -> FetchSession:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != request.session_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != uses_ids:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def _update(self, session: FetchSession, named: dict[Key, FetchedPartition], gone: Iterable[Key]) -> None:
        self._partitions -= len(session.partitions)
        for key, partition in named.items():
            known = session.partitions.setdefault(key, partition)
            if known is not partition:
                known.ask_again(partition)
        for key in gone:
            session.partitions.pop(key, None)
        self._partitions += len(session.partitions)

    def create(self, partitions: dict[Key, FetchedPartition], uses_ids: bool) -> int:
        """Return the id of a new session, or NO_SESSION if there is no room for it."""
        with self._lock:
            now = self.clock()
            if len(self._sessions) >= self.slots and not self._evict(len(partitions), now):
                return NO_SESSION
            if self._partitions + len(partitions) > MAX_PARTITIONS:
                return NO_SESSION
            while (id := random.randint(NO_SESSION + 1, MAX_ID)) in self._sessions:
                pass
            self._sessions[id] = FetchSession(id, uses_ids, now, now, partitions)
            self._partitions += len(partitions)
            return id

    def _evict(self, size: int, now: int) -> bool:
        """Remove one session for a new session of `size` partitions; return False if no session may be removed."""
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

    def note(self, session: FetchSession, epoch: int, news: Answers) -> bool:
        """Store the offsets of a response; return False if another request has used the session in the meantime."""
        with self._lock:
            if session.epoch != epoch:
                return False
            for partition, data in news:
                partition.answered(data)
                if _size(data):
                    key = partition.topic_key, partition.partition
                    session.partitions[key] = session.partitions.pop(key)
            return True


def _size(data: PartitionData) -> int:
    return 0 if data.records is None else part_size(data.records)


def _named(request: FetchRequest, uses_ids: bool) -> dict[Key, FetchedPartition]:
    named: dict[Key, FetchedPartition] = {}
    for topic in request.topics:
        topic_id = topic.topic_id
        key, name = (topic_id.int, None) if uses_ids else (topic.topic, topic.topic)
        for asked in topic.partitions:
            named[key, asked.partition] = FetchedPartition(
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


def _response(answers: Answers, session_id: int) -> FetchResponse:
    """Return the response, with the partitions in their order. Consecutive partitions of a topic share one entry."""
    response = FetchResponse(session_id=session_id)
    last: TopicKey | None = None
    for partition, data in answers:
        if partition.topic_key != last:
            topic = FetchResponse.FetchableTopicResponse(topic=partition.topic or "", topic_id=partition.topic_id)
            response.responses.append(topic)
            last = partition.topic_key
        topic.partitions.append(data)
    return response
