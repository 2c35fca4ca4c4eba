"""A scripted transaction coordinator, and a transactional producer that uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hmb.client.producing.producer import Producer
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from hmb.protocol.messages.end_txn import FIRST_END_TXN_VERSION_OF_EPOCHS, EndTxnRequest, EndTxnResponse
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from hmb.protocol.schema import Request, Response
from tests.client.producing.produce_scripts import Script
from tests.client.scripted_broker import HangUp, ScriptedBroker


class Coordinating(Script):
    """Answers the requests of a transactional producer, as a partition leader and as a transaction coordinator.

    A test can choose responses: `answers` for Produce requests, and `other` for requests of other types. All other
    requests succeed. In transaction version 2, a response to an EndTxn request contains the producer's next epoch.
    """

    def __init__(self, *answers: Response | bool) -> None:
        super().__init__(*answers)
        self.broker: ScriptedBroker
        self.other: dict[type[Request], list[Response | bool]] = {}
        self.epoch = -1

    def __call__(self, request: Request, version: int) -> Response | None:
        if planned := self.other.get(type(request)):
            answer = planned.pop(0)
            if isinstance(answer, bool):
                raise HangUp
            return answer
        if isinstance(request, FindCoordinatorRequest):
            found = FindCoordinatorResponse.Coordinator(node_id=7, host="127.0.0.1", port=self.broker.port)
            return FindCoordinatorResponse(coordinators=[found])
        if isinstance(request, InitProducerIdRequest):
            self.epoch += 1
            return InitProducerIdResponse(producer_id=5, producer_epoch=self.epoch)
        if isinstance(request, EndTxnRequest) and version >= FIRST_END_TXN_VERSION_OF_EPOCHS:
            self.epoch = request.producer_epoch + 1
            return EndTxnResponse(producer_id=request.producer_id, producer_epoch=self.epoch)
        yes: dict[type[Request], Callable[[], Response]] = {
            AddPartitionsToTxnRequest: AddPartitionsToTxnResponse,
            AddOffsetsToTxnRequest: AddOffsetsToTxnResponse,
            TxnOffsetCommitRequest: TxnOffsetCommitResponse,
            EndTxnRequest: EndTxnResponse,
        }
        return yes[type(request)]() if type(request) in yes else super().__call__(request, version)


class Scene:
    """A scripted broker, and a transactional producer that uses it."""

    def __init__(
        self, script: Coordinating, level: int | None = None, newest: dict[type[Request], int] | None = None
    ) -> None:
        """Start the broker and the producer.

        The broker reports `level` as the level of the feature `transaction.version`. If `level` is None, the broker
        reports no features. The dict `newest` maps types of requests to the newest version that the broker supports.
        """
        self.script, self.broker = script, ScriptedBroker(script, newest)
        script.broker = self.broker
        if level is not None:
            self.broker.features["transaction.version"] = level
        self.broker.__enter__()
        self.producer = Producer(self.broker.address, transactional_id="me", retry_backoff=0.001)

    def close(self) -> None:
        self.producer.close(10)
        self.broker.stop()

    def asked(self, *kinds: type[Request]) -> list[Any]:
        return [request for request, _ in self.broker.requests if isinstance(request, kinds)]

    def versions(self, kind: type[Request]) -> set[int]:
        """Return all versions in which the broker received this request."""
        return {version for request, version in self.broker.requests if isinstance(request, kind)}

    def names(self) -> list[str]:
        """Return the names of all requests that the broker received, except FindCoordinator."""
        requests = [request for request, _ in self.broker.requests if not isinstance(request, FindCoordinatorRequest)]
        return [type(request).__name__.removesuffix("Request") for request in requests]
