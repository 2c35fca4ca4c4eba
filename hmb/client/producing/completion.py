"""How a batch's way ends, or begins again: what follows from a broker's answer, or from none.

A batch that meets a *retriable* error (no leader at the moment, connection broke) stays in its queue, and the queue
goes back to the producer's `Router`, which looks for the leader again after a pause; so on until the delivery timeout.
The broker may have written the batch though the answer was lost: see `idempotence`, also for what becomes of those
behind it. `resolve` decides on the refused batches of a partition from the first one on, when none is under way.
"""

import logging
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from hmb.client.connection import ConnectionFailed
from hmb.client.metadata import Cluster
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.batch import Batch, PartitionQueue
from hmb.client.producing.encoding import Encoding, halves
from hmb.client.producing.idempotence import LOST_TRACK, Identities, is_of_current_epoch, start_again, take_back
from hmb.protocol.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

LONGEST_PAUSE = 1.0  # seconds between two tries (retry.backoff.max.ms)
JITTER = 0.2

TOO_LARGE = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for all requests of a producer; times in seconds."""

    acks: int
    encoding: Encoding
    max_request_size: int
    max_in_flight: int
    request_timeout: float
    delivery_timeout: float
    retry_backoff: float
    metadata_max_age: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """A batch that was sent in vain."""

    batch: Batch
    error: Exception
    guilty: dict[int, str] = field(default_factory=dict)  # the records that are to blame, and what for
    answered: bool = False  # by the broker, for the partition


class Completion:
    """What the producer's threads share."""

    def __init__(self, accumulator: Accumulator, cluster: Cluster, settings: Settings, identities: Identities) -> None:
        self.accumulator, self.cluster, self.settings, self.identities = accumulator, cluster, settings, identities
        self.counters = accumulator.counters
        self.trouble: str | None = None  # why the last batch that was put off was put off

    def deliver(self, batch: Batch, base_offset: int, log_append_time: int) -> None:
        """The broker has it."""
        self.trouble = None
        if batch.queue.window == 1 and is_of_current_epoch(batch) and not self.accumulator.behind(batch):
            batch.queue.window = self.settings.max_in_flight
        self.counters.delivered(batch.records.count)
        batch.deliver(base_offset, log_append_time)
        self.accumulator.done(batch)  # afterwards: the memory is free once everyone was told

    def give_up(self, batch: Batch, error: Exception, guilty: dict[int, str] | None = None) -> None:
        """The broker will not have it."""
        take_back(batch, self.accumulator.behind(batch), self.identities)
        self.identities.failed(error)
        self.counters.failed(batch.records.count)
        batch.fail(error, guilty)
        self.accumulator.done(batch)

    def resolve(self, queue: PartitionQueue, refusals: Iterable[Refusal]) -> None:
        """Decide on the refused batches of a queue, in its order; none of them is under way any more."""
        queue.window = 1
        put_off = False
        for refusal in refusals:
            if not refusal.batch.settled:  # as one may be that was given up with one in front of it
                put_off |= self._resolve(refusal)
        if put_off:  # not before all is decided: from now on another thread has the queue
            self.accumulator.move(queue, self.accumulator.unrouted)

    def retry_or_give_up(self, batch: Batch, error: ConnectionFailed | KafkaError, *, again: bool = False) -> bool:
        """Put a batch off if time may help (`again`: it will), and there is time left; whether it is put off."""
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
            return True
        return False

    def not_doomed(self, batches: Iterable[Batch]) -> list[Batch]:
        """Those that shall be sent; the others are given up."""
        doomed = self.identities.doomed
        if doomed is None:
            return list(batches)
        for batch in batches:
            self.give_up(batch, doomed)
        return []

    def _resolve(self, refusal: Refusal) -> bool:
        """Decide on one; whether it is put off, until its leader is found again."""
        batch, error = refusal.batch, refusal.error
        code = error.code if isinstance(error, KafkaError) and refusal.answered else ErrorCode.NONE
        if code in TOO_LARGE and batch.records.count > 1:
            self._split(batch)
        elif code in LOST_TRACK and self._waits_for_another(batch):
            self.counters.retried()  # where it stands
        elif isinstance(error, KafkaError) and code in LOST_TRACK and self._may_start_again(batch):
            log.warning("%s; its records are sent again in a new epoch of the producer", error.message)
            start_again(batch, self.accumulator.behind(batch), self.identities)
            return self.retry_or_give_up(batch, error, again=True)
        elif isinstance(error, (ConnectionFailed, KafkaError)) and not refusal.guilty:
            return self.retry_or_give_up(batch, error)
        else:
            self.give_up(batch, error, refusal.guilty)
        return False

    def _waits_for_another(self, batch: Batch) -> bool:
        """Whether it did not fit because of one in front of it, which is still there or was given up just now."""
        if self.identities.doomed:
            return False
        return batch.number is None or not self.accumulator.is_in_front(batch)

    def _may_start_again(self, batch: Batch) -> bool:
        """Number the batch anew if no copy of it can be in the log, nor come there."""
        return batch.number is not None and not batch.unresolved and not self.settings.encoding.transactional

    def _split(self, batch: Batch) -> None:
        """As Kafka does: two batches, again and again, until a record alone is too large."""
        parts = halves(batch)
        self.counters.split()
        self.accumulator.split(batch, parts)

    def _late(self, batch: Batch, error: ConnectionFailed | KafkaError) -> Exception:
        what = f"{batch.records.count} records for {batch.partition}"
        what = f"{what} not delivered in {self.settings.delivery_timeout:g} s: {error}"
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(error.host, error.port, what)
        return KafkaError(error.code, what)
