"""Decides what happens to a batch after each attempt: the batch is delivered, given up, split or sent again.

After a *retriable* error, the batch stays in its queue. A retriable error is, for example, a lost connection, or a
partition that has no leader at the moment. The producer's `LeaderRouter` looks up the leader again after a pause. Then
the leader's sender thread sends the batch again. After the delivery timeout, the producer gives the batch up.

If a connection breaks before the response arrives, the producer does not know whether the broker has written the batch.
The producer sends the batch again, so the batch can arrive twice. The module `idempotence` explains how the broker
recognizes the second copy. It also explains what happens to the batches that the producer sent after a failed batch.

Source: Kafka's `Sender` (completeBatch, reenqueueBatch, failBatch) and `RecordAccumulator` (splitAndReenqueue).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from hmb.client.backoff import jittered, pause_after
from hmb.client.connection import ConnectionFailed
from hmb.client.errors import response_error
from hmb.client.metadata import Cluster
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.batch import PartitionQueue, ProducerBatch
from hmb.client.producing.encoding import halves
from hmb.client.producing.idempotence import (
    SEQUENCE_ERRORS,
    AtLeastOnce,
    is_of_current_epoch,
    release_sequences,
    restart_in_new_epoch,
)
from hmb.client.producing.settings import ProducerSettings
from hmb.protocol.enums import NO_OFFSET
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceResponse

LOGGER = logging.getLogger(__name__)

PartitionResponse = ProduceResponse.TopicProduceResponse.PartitionProduceResponse

TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """A batch whose last attempt failed, with the error of this attempt."""

    batch: ProducerBatch
    error: Exception
    # This dict maps the index of each invalid record in the batch to the broker's message. The first record has the
    # index 0.
    record_errors: dict[int, str] = field(default_factory=dict)
    is_from_broker: bool = False  # whether the broker has sent this error for this partition


class BatchCompletion:
    """Decides what happens to each batch after an attempt. All threads of a producer share one instance."""

    def __init__(
        self, accumulator: Accumulator, cluster: Cluster, settings: ProducerSettings, guarantee: AtLeastOnce
    ) -> None:
        self._accumulator, self._counters = accumulator, accumulator.counters
        self._cluster, self._settings, self._guarantee = cluster, settings, guarantee
        self.last_error: str | None = None  # the error that delayed the last batch; None after a delivery

    def handle_response(self, batch: ProducerBatch, response: PartitionResponse | None) -> FailedBatch | None:
        """Complete the batch if the broker has written it. Otherwise, return a FailedBatch with the error.

        `response` is the entry for the batch's partition in the broker's response. It is None if this entry is missing.
        """
        if response is None:
            return FailedBatch(
                batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{batch.partition} is missing in the response")
            )
        if response.error_code == ErrorCode.NONE:
            self.deliver(batch, response.base_offset, response.log_append_time_ms)
            return None
        if response.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The broker has written the batch in an earlier attempt, but no longer knows the offset.
            self.deliver(batch, NO_OFFSET, response.log_append_time_ms)
            return None
        error = response_error(batch.partition, response.error_code, response.error_message)
        if not error.code.retriable and error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            batch.uncertain_attempts -= 1  # After this error, the broker has certainly not written the batch.
        messages = {it.batch_index: it.batch_index_error_message or error.message for it in response.record_errors}
        return FailedBatch(batch, error, messages, is_from_broker=True)

    def deliver(self, batch: ProducerBatch, base_offset: int, log_append_time: int) -> None:
        """Report to the application that the broker has written a batch."""
        self.last_error = None
        if batch.queue.window == 1 and is_of_current_epoch(batch) and not self._accumulator.batches_after(batch):
            batch.queue.window = self._settings["max_in_flight"]
        self._counters.delivered(batch.records.count)
        batch.deliver(base_offset, log_append_time)
        # `Producer.flush` must return only after the callbacks of all batches, but it sees only the batches in the
        # queues. So a batch stays in its queue until its callbacks have returned.
        self._accumulator.done(batch)

    def fail(self, batch: ProducerBatch, error: Exception, record_errors: dict[int, str] | None = None) -> None:
        """Give a batch up, and complete it with an error. The producer does not send the batch again."""
        release_sequences(batch, self._accumulator.batches_after(batch), self._guarantee)
        self._guarantee.failed(error)
        self._counters.failed(batch.records.count)
        batch.fail(error, record_errors)
        self._accumulator.done(batch)

    def resolve(self, queue: PartitionQueue, failures: Iterable[FailedBatch]) -> None:
        """Give up each failed batch of a queue, split it, or let the producer send it again.

        `failures` contains the failed batches in the order in which the producer sent them. The caller must not call
        this method while a batch of the queue is in flight.
        """
        queue.window = 1
        is_postponed = False
        for failure in failures:
            if not failure.batch.completed:  # The batch may have failed together with an earlier batch.
                is_postponed |= self._resolve(failure)
        # If `is_postponed` is true, `move` gives the queue to the thread that looks up partition leaders. That thread
        # can change the queue at once. So after `move`, this method must not use the queue.
        if is_postponed:
            self._accumulator.move(queue, self._accumulator.without_leader)

    def retry_or_fail(
        self, batch: ProducerBatch, error: ConnectionFailed | KafkaError, *, can_retry: bool = False
    ) -> bool:
        """Schedule another attempt for a batch and return True, or give the batch up and return False.

        The method gives the batch up in three cases:

        - `can_retry` is False, and the error is a KafkaError that is not retriable.
        - The transaction must be aborted.
        - The delivery timeout of the batch is over. In this case, the method gives up all sealed batches of the
          partition whose delivery timeout is over.
        """
        now, deadline = time.monotonic(), batch.opened + self._settings["delivery_timeout"]
        is_final = isinstance(error, KafkaError) and not error.code.retriable and not can_retry
        if self._guarantee.abort_reason or is_final:
            self.fail(batch, error)
        elif now >= deadline:
            self.fail(batch, self._timed_out(batch, error))
            # Other batches in the queue can also be older than the delivery timeout. Without this loop, the producer
            # would still send them. The application might learn about the failure only after another request timeout.
            for late in self._accumulator.sealed_before(now - self._settings["delivery_timeout"], batch.queue):
                self.fail(late, self._timed_out(late, error))
        else:
            pause = jittered(pause_after(batch.attempts, self._settings["retry_backoff"]))
            batch.retry_at = min(now + pause, deadline)
            batch.attempts += 1
            self._counters.retried()
            self.last_error = error.message if isinstance(error, KafkaError) else str(error)
            self._cluster.forget(batch.partition.topic)  # The partition may have a new leader.
            return True
        return False

    def sendable(self, batches: Iterable[ProducerBatch]) -> list[ProducerBatch]:
        """Return all `batches`. If the transaction must be aborted, give up all of them, and return an empty list."""
        reason = self._guarantee.abort_reason
        if reason is None:
            return list(batches)
        for batch in batches:
            self.fail(batch, reason)
        return []

    def _resolve(self, failure: FailedBatch) -> bool:
        """Handle a failed batch: depending on the error, split it, give it up, or keep it for another attempt.

        Return True if the producer must look up the leader of the batch's partition before the next attempt.
        """
        batch, error = failure.batch, failure.error
        code = error.code if isinstance(error, KafkaError) and failure.is_from_broker else ErrorCode.NONE
        if code in TOO_LARGE and batch.records.count > 1:
            self._split(batch)
        elif code in SEQUENCE_ERRORS and self._follows_another(batch):
            self._counters.retried()  # The batch keeps its position in the queue, and is sent again.
        elif isinstance(error, KafkaError) and code in SEQUENCE_ERRORS and self._may_get_new_sequences(batch):
            LOGGER.warning("%s; the producer sends the records of this batch again in a new epoch", error.message)
            restart_in_new_epoch(batch, self._accumulator.batches_after(batch), self._guarantee)
            return self.retry_or_fail(batch, error, can_retry=True)
        elif isinstance(error, (ConnectionFailed, KafkaError)) and not failure.record_errors:
            return self.retry_or_fail(batch, error)
        else:
            self.fail(batch, error, failure.record_errors)
        return False

    def _follows_another(self, batch: ProducerBatch) -> bool:
        """Return whether the broker may have rejected `batch` only because an earlier batch is missing.

        The broker accepts a partition's batches only in order. The result is True in two cases:

        - An earlier batch of the partition is still in the queue. It may be the missing batch.
        - `batch` has no sequence numbers, because an earlier batch failed. That batch may be missing.

        If the transaction must be aborted, the result is False, because the producer must not send `batch` again.
        """
        if self._guarantee.abort_reason:
            return False
        return batch.numbers is None or not self._accumulator.is_first(batch)

    def _may_get_new_sequences(self, batch: ProducerBatch) -> bool:
        """Return whether the producer can give the batch new sequence numbers, and send it again.

        The result is False in three cases:

        - The broker may have written the batch in an earlier attempt, or may still write it. With new sequence numbers,
          the broker would not recognize the second copy, and would write the batch twice.
        - The producer uses transactions.
        - The batch has no sequence numbers.
        """
        return batch.numbers is not None and not batch.uncertain_attempts and self._guarantee.transactional_id is None

    def _split(self, batch: ProducerBatch) -> None:
        """Split a batch that is too large for the broker into two batches. Kafka's producer does the same."""
        parts = halves(batch)
        self._counters.split()
        self._accumulator.split(batch, parts)

    def _timed_out(self, batch: ProducerBatch, error: ConnectionFailed | KafkaError) -> Exception:
        what = f"{batch.records.count} records for {batch.partition}"
        what = f"{what} not delivered in {self._settings['delivery_timeout']:g} s: {error}"
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(error.host, error.port, what)
        return KafkaError(error.code, what)
