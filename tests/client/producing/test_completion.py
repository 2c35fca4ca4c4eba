"""Tests of the module `completion`, which decides what happens to the rejected batches of a partition."""

from __future__ import annotations

import pytest

from hmb.client.connection import ConnectionFailed
from hmb.client.metadata import Cluster
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.batch import PartitionQueue, SenderQueues
from hmb.client.producing.completion import BatchCompletion, FailedBatch
from hmb.client.producing.idempotence import AtLeastOnce
from hmb.client.producing.record_checks import ESTIMATED_OVERHEAD
from hmb.client.producing.settings import ProducerSettings
from hmb.records import RECORD_BATCH_OVERHEAD

AT_ONCE = 0.0  # seconds until the next attempt
LOST = ConnectionFailed("127.0.0.1", 1, "lost")


def test_a_queue_moves_after_the_decision_about_all_its_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The producer handles all failed batches of a partition before it moves their queue to another thread."""
    it = Accumulator(RECORD_BATCH_OVERHEAD + ESTIMATED_OVERHEAD, 0, 10_000, 1)
    for value in (b"1", b"2", b"3"):
        it.append("t", 0, 1, ESTIMATED_OVERHEAD + 1, 1, None, value, ())
    it.seal()
    (batch,) = it.wait_for_batches(it.without_leader)
    attempts = []

    def move(queue: PartitionQueue, sender_queues: SenderQueues) -> None:
        attempts.append([batch.attempts for batch in queue.batches])

    settings = ProducerSettings(max_in_flight=5, delivery_timeout=60.0, retry_backoff=AT_ONCE)
    monkeypatch.setattr(it, "move", move)
    completion = BatchCompletion(it, Cluster("127.0.0.1:1"), settings, AtLeastOnce())
    completion.resolve(batch.queue, [FailedBatch(each, LOST) for each in batch.queue.batches])
    assert attempts == [[1, 1, 1]]
