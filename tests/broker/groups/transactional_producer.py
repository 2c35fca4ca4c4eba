"""A transactional producer for tests: each method sends one request, and returns the error code of the response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from hmb.protocol.messages.end_txn import EndTxnRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.calls import outcome, produce
from tests.broker.conftest import Asker
from tests.storage.conftest import batch

OLD, NEW = False, True  # producers of transaction version 1 and of version 2
TIMEOUT = 60_000


class Producer:
    """A transactional producer without a thread: each method sends one request."""

    def __init__(self, ask: Asker, name: str = "tx", kind: bool = OLD, timeout: int = TIMEOUT) -> None:
        self.ask, self.name, self.kind = ask, name, kind
        ask(FindCoordinatorRequest(key=name, key_type=1), 3)
        ask(FindCoordinatorRequest(key="g"), 3)
        self.sequence = 0
        self.init(timeout)

    def init(self, timeout: int = TIMEOUT, **known: int) -> int:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout, **known)
        answer = self.ask(request, 5 if self.kind is NEW else 4)
        if not answer.error_code:
            self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        code: int = answer.error_code
        return code

    def add(self, *partitions: int) -> Sequence[int]:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic(name="t")
        topic.partitions = list(partitions or (0,))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )
        (result,) = self.ask(request, 3).results_by_topic_v3_and_below
        return [each.partition_error_code for each in result.results_by_partition]

    def write(self, count: int = 1, version: int | None = None) -> int:
        """Produce `count` records to partition 0 of topic t. Return the error code."""
        numbers = {"producer_id": self.id, "producer_epoch": self.epoch, "base_sequence": self.sequence}
        request = produce(batch(count, transactional=True, **numbers))
        request.transactional_id = self.name
        code = outcome(self.ask(request, (12 if self.kind is NEW else 9) if version is None else version))
        self.sequence += 0 if code else count
        return code

    def commit_offset(self, offset: int, group: str = "g", version: int | None = None, **member: Any) -> int:
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="t")
        topic.partitions = [topic.TxnOffsetCommitRequestPartition(committed_offset=offset, committed_metadata="m")]
        request = TxnOffsetCommitRequest(
            transactional_id=self.name, group_id=group, producer_id=self.id, producer_epoch=self.epoch, **member
        )
        request.topics = [topic]
        version = (5 if self.kind is NEW else 3) if version is None else version
        code: int = self.ask(request, version).topics[0].partitions[0].error_code
        return code

    def add_offsets(self, group: str = "g") -> int:
        producer = {"producer_id": self.id, "producer_epoch": self.epoch}
        code: int = self.ask(
            AddOffsetsToTxnRequest(transactional_id=self.name, group_id=group, **producer), 3
        ).error_code
        return code

    def end(self, committed: bool = True) -> int:
        producer = {"producer_id": self.id, "producer_epoch": self.epoch}
        request = EndTxnRequest(transactional_id=self.name, committed=committed, **producer)
        answer = self.ask(request, 5 if self.kind is NEW else 4)
        if self.kind is NEW and not answer.error_code:
            self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        code: int = answer.error_code
        return code
