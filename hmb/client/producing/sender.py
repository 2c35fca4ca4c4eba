"""The producer's threads that talk to brokers: one that finds leaders, and one for each leader.

A leader's thread works in turns: take the batches that are due, send them in as few requests as possible, read the
answers that have come, at least one. Meanwhile the next batches fill up, so that a slow broker gets few large requests
and a quick one many small ones, with nothing to tune. Leaders have threads of their own so that one that is slow, or
does not answer at all, holds up no other.

There is no need to wait for the last answer before the next batches go: a connection is a pipe, and of each partition
several batches may be in it (`batch.window`): those that have filled up meanwhile go together, and the broker works on.
What becomes of a batch then is decided in `completion`.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from hmb.client.connection import Connection, ConnectionFailed
from hmb.client.errors import answered_error
from hmb.client.metadata import Node
from hmb.client.producing.batch import Batch, Identity, Lane, PartitionQueue
from hmb.client.producing.completion import Completion, Refusal
from hmb.client.producing.encoding import NEWEST_PRODUCE, produce_request, renumbered, requests
from hmb.client.producing.idempotence import number
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.topics import TopicPartition

log = logging.getLogger(__name__)


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
    """Sends batches to one leader."""

    def __init__(self, leader: Node, completion: Completion) -> None:
        super().__init__(name=f"hmb-producer-{leader.host}:{leader.port}", daemon=True)
        self.lane: Lane = completion.accumulator.new_lane()
        self.connection: Connection = completion.cluster.connect(leader)
        self._completion, self._settings = completion, completion.settings
        self._taken: list[Batch] = []  # and not sent yet
        self._posted: deque[tuple[list[Batch], float]] = deque()  # requests that are not answered, and since when
        self._refused: dict[PartitionQueue, list[Refusal]] = {}  # until what was sent behind them is answered, too

    def run(self) -> None:
        accumulator = self._completion.accumulator
        while True:
            batches = accumulator.wait_for_batches(self.lane, 0 if self._posted else None)
            if not batches and not self._posted:
                break
            self._taken = self._completion.not_doomed(batches)
            try:
                if self._taken:
                    self._send()
                if self._posted:
                    self._receive()
            except (ConnectionFailed, KafkaError) as error:
                self._fail(error)
            except Exception as error:  # whatever it is, nobody may wait for ever
                log.exception("the producer's thread failed")
                self._fail(error)
        self.connection.close()

    def _send(self) -> None:
        """Encode and send what was taken."""
        version = self.connection.version_of(ProduceRequest, NEWEST_PRODUCE)
        identity = self._completion.identities.identity(self.connection) if version > 2 else None
        self._taken = [batch for batch in self._taken if self._encode(batch, version, identity)]
        self._completion.identities.join(batch.partition for batch in self._taken)
        posted = requests(self._taken, self._settings.max_request_size)
        if posted:
            self._post(posted, version)

    def _encode(self, batch: Batch, version: int, identity: Identity | None) -> bool:
        """Whether the batch can be sent; else it is given up."""
        if batch.data is None:
            try:
                data = self._settings.encoding.encode(batch, version, identity, self.connection.address)
            except KafkaError as error:
                self._completion.give_up(batch, error)
                return False
            self._completion.counters.encoded(batch.records.count, batch.size, len(data))
            self._completion.accumulator.encoded(batch, data)
        elif batch.number is None and identity is not None:
            batch.data = renumbered(batch.data, number(batch, identity))
        return True

    def _post(self, posted: list[list[Batch]], version: int) -> None:
        acks, timeout_ms = self._settings.acks, int(self._settings.request_timeout * 1000)
        transactional_id, now = self._completion.identities.transactional_id, time.monotonic()
        for batches in posted:
            for batch in batches:
                batch.unresolved += 1
                batch.queue.under_way += 1
            self._posted.append((batches, now))
        self._taken = []
        self.connection.post_all(
            [produce_request(batches, acks, timeout_ms, transactional_id) for batches in posted],
            version,
            answered=acks != 0,
        )
        self._completion.counters.posted(len(posted))
        if not acks:
            for batch in self._under_way():
                batch.queue.under_way = 0
                self._completion.deliver(batch, -1, -1)
            self._posted.clear()

    def _receive(self) -> None:
        """The next answer, and those that have come with it."""
        while self._posted:
            response: ProduceResponse = self.connection.receive(self._settings.request_timeout)
            batches, since = self._posted[0]
            self._completion.counters.answered(time.monotonic() - since)
            self._settle(batches, response)
            self._posted.popleft()  # afterwards: if that fails, `_fail` finds them
            if not self.connection.has_buffered:
                return

    def _settle(self, batches: Iterable[Batch], response: ProduceResponse) -> None:
        answers = {
            TopicPartition(topic.name, answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }
        for batch in batches:
            batch.queue.under_way -= 1
            answer = answers.get(batch.partition)
            if answer is None:
                error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no answer for {batch.partition}")
                self._refuse(Refusal(batch, error))
            elif answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                # A duplicate: written by an earlier try, and too long ago for the broker to say where.
                self._completion.deliver(
                    batch, -1 if answer.error_code else answer.base_offset, answer.log_append_time_ms
                )
            else:
                error = answered_error(batch.partition, answer.error_code, answer.error_message)
                if not error.code.retriable and error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
                    batch.unresolved -= 1  # this try has not been written, for certain
                guilty = {it.batch_index: it.batch_index_error_message or error.message for it in answer.record_errors}
                self._refuse(Refusal(batch, error, guilty, answered=True))
            if self._refused and not batch.queue.under_way:
                self._resolve(batch.queue)

    def _refuse(self, refusal: Refusal) -> None:
        queue = refusal.batch.queue
        queue.window = 0
        self._refused.setdefault(queue, []).append(refusal)

    def _resolve(self, queue: PartitionQueue) -> None:
        if queue in self._refused:
            self._completion.resolve(queue, self._refused.pop(queue))

    def _fail(self, error: Exception) -> None:
        """Nothing is known of what is under way, nor will be."""
        self.connection.close()
        for batch in [*self._under_way(), *self._taken]:
            batch.queue.under_way = 0
            self._refuse(Refusal(batch, error))
        self._posted.clear()
        self._taken = []
        for queue in list(self._refused):
            self._resolve(queue)

    def _under_way(self) -> list[Batch]:
        return [batch for batches, _ in self._posted for batch in batches]
