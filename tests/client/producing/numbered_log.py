"""A partition that checks the sequence numbers of batches as Kafka does. A test chooses the faults of the partition."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.schema import Request, Response
from hmb.records import RecordBatch, parse_batch, read_records
from tests.client.producing.produce_scripts import produced
from tests.client.scripted_broker import HangUp

REMEMBERED = 5


class Fault(Enum):
    """The possible faults of a batch on its way to the log."""

    NONE = auto()
    IS_LOST = auto()  # The broker does not get the batch, and the connection breaks.
    ANSWER_IS_LOST = auto()  # The broker writes the batch, but the connection breaks before the response.
    COMES_LATE = auto()  # The batch arrives after the connection has broken.
    NOT_LEADER = auto()
    NOT_LEADER_ANY_MORE = auto()  # The broker writes the batch, but responds with NOT_LEADER_OR_FOLLOWER.
    TOO_LARGE = auto()
    INVALID = auto()


ANSWERS = {
    Fault.NOT_LEADER: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    Fault.NOT_LEADER_ANY_MORE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    Fault.TOO_LARGE: ErrorCode.MESSAGE_TOO_LARGE,
    Fault.INVALID: ErrorCode.INVALID_RECORD,
}


class NumberedLog:
    """A simulated leader of the partition t-0. It answers Produce and InitProducerId requests."""

    def __init__(self, fault_of: Callable[[list[int]], Fault], late: Callable[[], bool] = lambda: True) -> None:
        """Create an empty log. The function `fault_of` gets the values of a batch, and returns the fault of the batch.

        A batch with the fault COMES_LATE is delayed. Until the log has appended this batch, it calls the function
        `late` at the start of each Produce request. If `late` returns True, the log appends the delayed batch before it
        handles the request.
        """
        self._fault_of, self._late = fault_of, late
        self.values: list[int] = []  # the written values, by offset
        # One tuple for each received batch: the first record's value, the producer epoch and the base sequence number.
        self.seen: list[tuple[int, int, int]] = []
        self._held: list[RecordBatch] = []
        self._epochs: dict[int, int] = {}
        # For each producer id, the latest batches: the first sequence number, the last sequence number and the offset.
        self._known: dict[int, deque[tuple[int, int, int]]] = {}

    def __call__(self, request: Request, version: int) -> Response | None:
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(producer_id=1)
        assert isinstance(request, ProduceRequest)
        while self._held and self._late():
            self._append(self._held.pop())
        ((data,),) = [topic.partition_data for topic in request.topic_data]
        assert isinstance(data.records, memoryview)
        batch = parse_batch(data.records)
        assert isinstance(batch, RecordBatch)
        values = _values(batch)
        self.seen.append((values[0], batch.producer_epoch, batch.base_sequence))
        fault = self._fault_of(values)
        if fault is Fault.COMES_LATE:
            self._held.append(batch)
        if fault in (Fault.IS_LOST, Fault.COMES_LATE):
            raise HangUp
        if fault in (Fault.NOT_LEADER, Fault.TOO_LARGE, Fault.INVALID):
            return produced(ANSWERS[fault])
        error, offset = self._append(batch)
        if fault is Fault.ANSWER_IS_LOST:
            raise HangUp
        return produced(ANSWERS.get(fault, error), offset)

    def _append(self, batch: RecordBatch) -> tuple[ErrorCode, int]:
        values, epoch = _values(batch), batch.producer_epoch
        if batch.producer_id >= 0:
            first, last = batch.base_sequence, batch.base_sequence + len(values) - 1
            known = self._known.setdefault(batch.producer_id, deque(maxlen=REMEMBERED))
            current = self._epochs.get(batch.producer_id)
            if current is not None and epoch < current:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if epoch == current:
                for its_first, its_last, offset in known:
                    if (its_first, its_last) == (first, last):
                        return ErrorCode.NONE, offset
            expected = None if current is None else known[-1][1] + 1 if epoch == current else 0
            if expected not in (None, first):  # An unknown producer may begin with any sequence number.
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            if epoch != current:
                known.clear()
            self._epochs[batch.producer_id] = epoch
            known.append((first, last, len(self.values)))
        self.values += values
        return ErrorCode.NONE, len(self.values) - len(values)


def _values(batch: RecordBatch) -> list[int]:
    return [int(record.value or b"") for record in read_records(batch.view)]
