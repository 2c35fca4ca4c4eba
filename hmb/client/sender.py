"""The producer's threads that talk to brokers: one that finds leaders, and one for each leader.

A leader's thread works in rounds: take the batches that are due, send them in as few requests as possible, read the
answers. While a round is under way the next batches fill up, so that a slow broker gets few large requests and a quick
one many small ones, with nothing to tune. Leaders have threads of their own so that one that is slow, or does not
answer at all, holds up no other.

A batch that meets a *retriable* error (no leader at the moment, connection broke) stays at the front of its queue, and
the queue goes back to the `Router`, which looks for the leader again after a pause; so on until the delivery timeout.
The broker may have written the batch though the answer was lost: see `idempotence`.
"""

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from hmb.client.accumulator import Accumulator
from hmb.client.batch import Batch, Identity, Lane
from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.encoding import NEWEST_PRODUCE, Encoding, halves, produce_request, renumbered, requests
from hmb.client.errors import answered_error
from hmb.client.idempotence import LOST_TRACK, Identities, number, rewind, take_back
from hmb.client.metadata import Cluster, Node, TopicPartition
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse

log = logging.getLogger(__name__)

LONGEST_PAUSE = 1.0  # seconds between two tries (retry.backoff.max.ms)
JITTER = 0.2

PartitionResponse = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for all requests of a producer; times in seconds."""

    acks: int
    encoding: Encoding
    max_request_size: int
    request_timeout: float
    delivery_timeout: float
    retry_backoff: float
    metadata_max_age: float


class Completion:
    """What the producer's threads share: how a batch's way ends, or begins again."""

    def __init__(self, accumulator: Accumulator, cluster: Cluster, settings: Settings, identities: Identities) -> None:
        self.accumulator, self.cluster, self.settings, self.identities = accumulator, cluster, settings, identities
        self.counters = accumulator.counters
        self.trouble: str | None = None  # why the last batch that was put off was put off

    def deliver(self, batch: Batch, base_offset: int, log_append_time: int) -> None:
        """The broker has it."""
        self.trouble = None
        self.counters.delivered(batch.records.count)
        batch.deliver(base_offset, log_append_time)
        self.accumulator.done(batch)  # afterwards: the memory is free once everyone was told

    def give_up(self, batch: Batch, error: Exception, guilty: dict[int, str] | None = None) -> None:
        """The broker will not have it."""
        take_back(batch, self.identities)
        self.identities.failed(error)
        self.counters.failed(batch.records.count)
        batch.fail(error, guilty)
        self.accumulator.done(batch)

    def retry_or_give_up(self, batch: Batch, error: ConnectionFailed | KafkaError, *, again: bool = False) -> None:
        """Put a batch off if time may help (`again`: it will), and there is time left."""
        now, deadline = time.monotonic(), batch.opened + self.settings.delivery_timeout
        if self.identities.doomed or (isinstance(error, KafkaError) and not error.code.retriable and not again):
            self.give_up(batch, error)
        elif now >= deadline:
            self.give_up(batch, self._late(batch, error))
            # Those that have waited behind it as long: to try each of them once would take a request timeout each.
            for late in self.accumulator.sealed_before(now - self.settings.delivery_timeout, batch.queue):
                self.give_up(late, self._late(late, error))
        else:
            pause = min(self.settings.retry_backoff * 2 ** min(batch.tries, 10), LONGEST_PAUSE)
            batch.retry_at = min(now + pause * random.uniform(1 - JITTER, 1 + JITTER), deadline)
            batch.tries += 1
            self.counters.retried()
            self.trouble = error.message if isinstance(error, KafkaError) else str(error)
            self.cluster.forget(batch.partition.topic)  # a new leader may be why
            self.accumulator.move(batch.queue, self.accumulator.unrouted)

    def not_doomed(self, batches: Iterable[Batch]) -> list[Batch]:
        """Those that shall be sent; the others are given up."""
        doomed = self.identities.doomed
        if doomed is None:
            return list(batches)
        for batch in batches:
            self.give_up(batch, doomed)
        return []

    def _late(self, batch: Batch, error: ConnectionFailed | KafkaError) -> Exception:
        what = f"{batch.records.count} records for {batch.partition}"
        what = f"{what} not delivered in {self.settings.delivery_timeout:g} s: {error}"
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(error.host, error.port, what)
        return KafkaError(error.code, what)


class Router(threading.Thread):
    """Finds the leader of each queue that has batches and no leader; runs until all is sent after the close."""

    def __init__(self, completion: Completion) -> None:
        super().__init__(name="hmb-producer", daemon=True)
        self._completion = completion
        self._senders: dict[Node, Sender] = {}

    def run(self) -> None:
        accumulator, max_age = self._completion.accumulator, self._completion.settings.metadata_max_age
        while not accumulator.finished:
            batches = accumulator.wait_for_batches(accumulator.unrouted, max_age)
            for batch in self._completion.not_doomed(batches):
                try:
                    self._route(batch)
                except (ConnectionFailed, KafkaError) as error:
                    self._completion.retry_or_give_up(batch, error)
                except Exception as error:  # whatever it is, nobody may wait for ever
                    log.exception("the producer's thread failed")
                    self._completion.give_up(batch, error)
            if not batches:
                self._keep_up()
        for sender in self._senders.values():
            sender.join()

    def _keep_up(self) -> None:
        """Topics may have got more partitions since they were asked about."""
        for topic in self._completion.accumulator.topics():
            with suppress(ConnectionFailed, KafkaError):  # whoever sends there will hear of it
                self._completion.cluster.topic(topic)

    def interrupt(self) -> None:
        """End what is waited for; from any thread."""
        for sender in list(self._senders.values()):
            sender.connection.interrupt()

    def _route(self, batch: Batch) -> None:
        leader = self._completion.cluster.leader(batch.partition)
        sender = self._senders.get(leader)
        if sender is None:
            sender = Sender(leader, self._completion)
            sender.start()
            self._senders[leader] = sender
        self._completion.accumulator.move(batch.queue, sender.lane)


class Sender(threading.Thread):
    """Sends batches to one leader, in rounds."""

    def __init__(self, leader: Node, completion: Completion) -> None:
        super().__init__(name=f"hmb-producer-{leader.host}:{leader.port}", daemon=True)
        self.lane: Lane = completion.accumulator.new_lane()
        self.connection: Connection = completion.cluster.connect(leader)
        self._completion, self._settings = completion, completion.settings
        self._left: dict[Batch, None] = {}  # batches of this round of which nothing is known yet

    def run(self) -> None:
        while batches := self._completion.accumulator.wait_for_batches(self.lane):
            self._left = dict.fromkeys(self._completion.not_doomed(batches))
            try:
                self._round(list(self._left))
            except (ConnectionFailed, KafkaError) as error:
                self.connection.close()
                for batch in self._left:
                    self._completion.retry_or_give_up(batch, error)
            except Exception as error:  # whatever it is, nobody may wait for ever
                log.exception("the producer's thread failed")
                self.connection.close()
                for batch in self._left:
                    self._completion.give_up(batch, error)
        self.connection.close()

    def _round(self, batches: list[Batch]) -> None:
        if not batches:
            return
        version = self.connection.version_of(ProduceRequest, NEWEST_PRODUCE)
        identity = self._completion.identities.identity(self.connection) if version > 2 else None
        encoded = [batch for batch in batches if self._encode(batch, version, identity)]
        self._completion.identities.join(batch.partition for batch in encoded)
        posted: deque[tuple[list[Batch], float]] = deque()
        for some in requests(encoded, self._settings.max_request_size):
            self._post(some, version)
            posted.append((some, time.monotonic()))
        while posted and self._settings.acks:
            some, since = posted.popleft()
            response: ProduceResponse = self.connection.receive(self._settings.request_timeout)
            self._completion.counters.answered(time.monotonic() - since)
            self._settle(some, response)

    def _encode(self, batch: Batch, version: int, identity: Identity | None) -> bool:
        """Whether the batch can be sent; else it is given up."""
        if batch.data is None:
            try:
                data = self._settings.encoding.encode(batch, version, identity, self.connection.address)
            except KafkaError as error:
                self._finish(batch)
                self._completion.give_up(batch, error)
                return False
            self._completion.counters.encoded(batch.records.count, batch.size, len(data))
            self._completion.accumulator.encoded(batch, data)
        elif batch.number is None and identity is not None:
            batch.data = renumbered(batch.data, number(batch, identity))
        return True

    def _post(self, batches: list[Batch], version: int) -> None:
        timeout_ms = int(self._settings.request_timeout * 1000)
        request = produce_request(
            batches, self._settings.acks, timeout_ms, self._completion.identities.transactional_id
        )
        for batch in batches:
            batch.unresolved += 1
        self.connection.post(request, version, answered=self._settings.acks != 0)
        self._completion.counters.posted()
        if self._settings.acks == 0:
            for batch in batches:
                self._finish(batch)
                self._completion.deliver(batch, -1, -1)

    def _settle(self, batches: Iterable[Batch], response: ProduceResponse) -> None:
        answers = {
            TopicPartition(topic.name, answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }
        for batch in batches:
            self._finish(batch)
            answer = answers.get(batch.partition)
            if answer is None:
                error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no answer for {batch.partition}")
                self._completion.give_up(batch, error)
            elif answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                # A duplicate: written by an earlier try, and too long ago for the broker to say where.
                self._completion.deliver(
                    batch, -1 if answer.error_code else answer.base_offset, answer.log_append_time_ms
                )
            else:
                self._refused(batch, answer)

    def _refused(self, batch: Batch, answer: PartitionResponse) -> None:
        error = answered_error(batch.partition, answer.error_code, answer.error_message)
        if not error.code.retriable and error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            batch.unresolved -= 1  # this try has not been written, for certain
        if error.code in TOO_LARGE and batch.records.count > 1:
            self._split(batch)
        elif error.code in LOST_TRACK and self._may_start_again(batch):
            log.warning("%s; its records are sent again in a new epoch of the producer", error.message)
            self._completion.retry_or_give_up(batch, error, again=True)
        else:
            guilty = {it.batch_index: it.batch_index_error_message or error.message for it in answer.record_errors}
            if guilty:
                self._completion.give_up(batch, error, guilty)
            else:
                self._completion.retry_or_give_up(batch, error)

    def _split(self, batch: Batch) -> None:
        """As Kafka does: two batches, again and again, until a record alone is too large."""
        parts = halves(batch)
        rewind(batch)
        batch.receipt.split()
        self._completion.counters.split()
        self._completion.accumulator.split(batch, parts)

    def _may_start_again(self, batch: Batch) -> bool:
        """Number the batch anew if no copy of it can be in the log, nor come there."""
        sequence = batch.queue.sequence
        if batch.number is None or sequence is None or batch.unresolved or self._settings.encoding.transactional:
            return False
        self._completion.identities.new_epoch(sequence)
        batch.number = None
        return True

    def _finish(self, batch: Batch) -> None:
        self._left.pop(batch, None)
