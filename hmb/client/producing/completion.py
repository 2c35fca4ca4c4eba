"""The completion of batches: after a response or a lost connection, a batch is delivered, fails, or is sent again.

A batch with a *retriable* error stays in its queue. For example, its partition has no leader at the moment, or the
connection broke. The queue goes back to the producer's `LeaderRouter`, which finds the leader again after a pause. This
repeats until the delivery timeout.

The broker may have written a batch although its response was lost. The module `idempotence` explains how a retry is
recognized then, and what happens to the batches that were sent after a failed one.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from hmb.client.connection import ConnectionFailed
from hmb.client.errors import answered_error
from hmb.client.metadata import Cluster
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.batch import PartitionQueue, ProducerBatch
from hmb.client.producing.encoding import Encoding, halves
from hmb.client.producing.idempotence import (
    SEQUENCE_ERRORS,
    AtLeastOnce,
    is_of_current_epoch,
    release_numbers,
    renumber_in_new_epoch,
)
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceResponse

LOGGER = logging.getLogger(__name__)

PartitionAnswer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse

UNKNOWN = -1  # an offset or a time that the broker has not sent
MAX_PAUSE = 1.0  # seconds between two attempts (Kafka's retry.backoff.max.ms)
JITTER = 0.2

TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """The settings that the producer's threads need. Times are in seconds."""

    acks: int
    encoding: Encoding
    max_request_size: int
    max_in_flight: int
    request_timeout: float
    delivery_timeout: float
    retry_backoff: float
    metadata_max_age: float


@dataclass(frozen=True, slots=True)
class FailedBatch:
    """A batch whose last attempt failed."""

    batch: ProducerBatch
    error: Exception
    # The message for each invalid record, by its number in the batch.
    record_errors: dict[int, str] = field(default_factory=dict)
    answered: bool = False  # whether the error is the broker's answer for this partition


class BatchCompletion:
    """Decides what happens to each batch. All threads of a producer share one instance."""

    def __init__(
        self, accumulator: Accumulator, cluster: Cluster, settings: SenderSettings, guarantee: AtLeastOnce
    ) -> None:
        self.accumulator, self.cluster, self.settings, self.guarantee = accumulator, cluster, settings, guarantee
        self.counters = accumulator.counters
        self.last_error: str | None = None  # the reason why the last batch was postponed; None after a delivery

    def answered(self, batch: ProducerBatch, answer: PartitionAnswer | None) -> FailedBatch | None:
        """Deliver a batch that the broker has written. Otherwise return the failure that the answer reports.

        None as the answer means that the response does not contain the batch's partition.
        """
        if answer is None:
            return FailedBatch(batch, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no answer for {batch.partition}"))
        if answer.error_code == ErrorCode.NONE:
            self.deliver(batch, answer.base_offset, answer.log_append_time_ms)
            return None
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The broker has written the batch in an earlier attempt. It does not remember the batch's offset any more.
            self.deliver(batch, UNKNOWN, answer.log_append_time_ms)
            return None
        error = answered_error(batch.partition, answer.error_code, answer.error_message)
        if not error.code.retriable and error.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            batch.uncertain_attempts -= 1  # The broker has certainly not written this attempt.
        messages = {it.batch_index: it.batch_index_error_message or error.message for it in answer.record_errors}
        return FailedBatch(batch, error, messages, answered=True)

    def deliver(self, batch: ProducerBatch, base_offset: int, log_append_time: int) -> None:
        """Complete a batch that the broker has written."""
        self.last_error = None
        if batch.queue.window == 1 and is_of_current_epoch(batch) and not self.accumulator.batches_after(batch):
            batch.queue.window = self.settings.max_in_flight
        self.counters.delivered(batch.records.count)
        batch.deliver(base_offset, log_append_time)
        # This call comes last: the memory of the batch stays reserved until all callbacks of the batch have returned.
        self.accumulator.done(batch)

    def fail(self, batch: ProducerBatch, error: Exception, record_errors: dict[int, str] | None = None) -> None:
        """Complete a batch that has failed and is not sent again."""
        release_numbers(batch, self.accumulator.batches_after(batch), self.guarantee)
        self.guarantee.failed(error)
        self.counters.failed(batch.records.count)
        batch.fail(error, record_errors)
        self.accumulator.done(batch)

    def resolve(self, queue: PartitionQueue, failures: Iterable[FailedBatch]) -> None:
        """Decide on the failed batches of a queue, in their order. No batch of the queue is in flight."""
        queue.window = 1
        is_postponed = False
        for failure in failures:
            if not failure.batch.completed:  # A batch may have failed together with an earlier batch.
                is_postponed |= self._resolve(failure)
        if is_postponed:  # The queue moves after all decisions, because it then belongs to another thread.
            self.accumulator.move(queue, self.accumulator.unrouted)

    def retry_or_fail(
        self, batch: ProducerBatch, error: ConnectionFailed | KafkaError, *, can_retry: bool = False
    ) -> bool:
        """Postpone a batch if a retry may help and the delivery timeout allows it. Otherwise fail the batch.

        With `can_retry`, a retry helps although the error is not retriable. Returns whether the batch is postponed.
        """
        now, deadline = time.monotonic(), batch.opened + self.settings.delivery_timeout
        is_final = isinstance(error, KafkaError) and not error.code.retriable and not can_retry
        if self.guarantee.abort_reason or is_final:
            self.fail(batch, error)
        elif now >= deadline:
            self.fail(batch, self._timed_out(batch, error))
            # Later batches of the same queue may have expired as well. They fail here too, because one more attempt for
            # each of them could take a request timeout each.
            for late in self.accumulator.sealed_before(now - self.settings.delivery_timeout, batch.queue):
                self.fail(late, self._timed_out(late, error))
        else:
            pause = min(self.settings.retry_backoff * 2 ** min(batch.attempts, 10), MAX_PAUSE)
            batch.retry_at = min(now + pause * random.uniform(1 - JITTER, 1 + JITTER), deadline)
            batch.attempts += 1
            self.counters.retried()
            self.last_error = error.message if isinstance(error, KafkaError) else str(error)
            self.cluster.forget(batch.partition.topic)  # The partition may have a new leader.
            return True
        return False

    def sendable(self, batches: Iterable[ProducerBatch]) -> list[ProducerBatch]:
        """Return the batches that may be sent. If the transaction is to be aborted, fail all of them instead."""
        reason = self.guarantee.abort_reason
        if reason is None:
            return list(batches)
        for batch in batches:
            self.fail(batch, reason)
        return []

    def _resolve(self, failure: FailedBatch) -> bool:
        """Decide on one failed batch. Returns whether it is postponed until its leader is found again."""
        batch, error = failure.batch, failure.error
        code = error.code if isinstance(error, KafkaError) and failure.answered else ErrorCode.NONE
        if code in TOO_LARGE and batch.records.count > 1:
            self._split(batch)
        elif code in SEQUENCE_ERRORS and self._follows_another(batch):
            self.counters.retried()  # The batch keeps its position in the queue, and is sent again.
        elif isinstance(error, KafkaError) and code in SEQUENCE_ERRORS and self._can_renumber(batch):
            LOGGER.warning("%s; its records are sent again in a new epoch of the producer", error.message)
            renumber_in_new_epoch(batch, self.accumulator.batches_after(batch), self.guarantee)
            return self.retry_or_fail(batch, error, can_retry=True)
        elif isinstance(error, (ConnectionFailed, KafkaError)) and not failure.record_errors:
            return self.retry_or_fail(batch, error)
        else:
            self.fail(batch, error, failure.record_errors)
        return False

    def _follows_another(self, batch: ProducerBatch) -> bool:
        """Return whether an earlier batch is the reason for a sequence error of this batch.

        In the first case, the earlier batch is still in the queue. In the second case, it has just failed, and its
        failure has cleared the numbers of this batch.
        """
        if self.guarantee.abort_reason:
            return False
        return batch.number is None or not self.accumulator.is_first(batch)

    def _can_renumber(self, batch: ProducerBatch) -> bool:
        """Return whether the batch may get new numbers, because the broker has no copy of it and can get none."""
        return batch.number is not None and not batch.uncertain_attempts and not self.settings.encoding.transactional

    def _split(self, batch: ProducerBatch) -> None:
        """Replace a batch that is too large by two halves, as Kafka's producer does."""
        parts = halves(batch)
        self.counters.split()
        self.accumulator.split(batch, parts)

    def _timed_out(self, batch: ProducerBatch, error: ConnectionFailed | KafkaError) -> Exception:
        what = f"{batch.records.count} records for {batch.partition}"
        what = f"{what} not delivered in {self.settings.delivery_timeout:g} s: {error}"
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(error.host, error.port, what)
        return KafkaError(error.code, what)
