"""Tests of `read_committed`: the consumer does not return the records of aborted transactions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.client import Consumer
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.records import ControlType, EndTransactionMarker, Record, RecordBatch, encode_batch, encode_marker
from hmb.records.aborted import AbortedTransactions
from tests.client.consuming.record_batches import record_batch
from tests.client.consuming.scripted_log import Log
from tests.client.scripted_broker import ScriptedBroker

COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


class TransactionLog:
    """The bytes of a partition. Several transactions write their batches to it, one batch at a time."""

    def __init__(self) -> None:
        self.data = b""
        self.end = 0
        self.aborted: list[tuple[int, int]] = []  # the producer id and the first offset of each aborted transaction
        self.committed: list[bytes] = []
        # The first offset and the values of each open transaction, by producer id.
        self._open: dict[int, tuple[int, list[bytes]]] = {}

    def write(self, producer_id: int, *values: bytes) -> None:
        records = [Record(timestamp=1, value=value) for value in values]
        self.data += encode_batch(records, base_offset=self.end, producer_id=producer_id, producer_epoch=0,
                                  base_sequence=0, transactional=True)  # fmt: skip
        self._open.setdefault(producer_id, (self.end, []))[1].extend(values)
        self.end += len(values)

    def finish(self, producer_id: int, how: ControlType) -> None:
        self.data += encode_marker(EndTransactionMarker(how, 0), 1, producer_id, 0, base_offset=self.end)
        self.end += 1
        first, values = self._open.pop(producer_id)
        if how is ABORT:
            self.aborted.append((producer_id, first))
        else:
            self.committed += values

    def log(self) -> Log:
        log = Log(self.data, self.end)
        log.aborted = self.aborted
        return log


def three_transactions() -> TransactionLog:
    written = TransactionLog()
    written.write(1, b"a1")
    written.write(2, b"c1", b"c2")
    written.write(1, b"a2")
    written.finish(1, ABORT)
    written.write(1, b"c3")  # This record belongs to the next transaction of the same producer.
    written.finish(2, COMMIT)
    written.finish(1, COMMIT)
    return written


@pytest.mark.parametrize(
    ("isolation_level", "expected"),
    [
        ("read_committed", [b"c1", b"c2", b"c3"]),
        ("read_uncommitted", [b"a1", b"c1", b"c2", b"a2", b"c3"]),
    ],
)
@pytest.mark.parametrize("by_arrow", [False, True])
def test_aborted_records_are_left_out(isolation_level: str, expected: list[bytes], by_arrow: bool) -> None:
    log = three_transactions().log()
    with ScriptedBroker(log) as broker:
        consumer = Consumer(broker.address, "t", until="end", isolation_level=isolation_level)  # type: ignore[arg-type]
        if by_arrow:
            found = [value for batch in consumer.arrow_batches() for value in batch.column("value").to_pylist()]
        else:
            found = [record.value for record in consumer]
        assert found == expected
        level = int(isolation_level == "read_committed")
        asked = [it for it, _ in broker.requests if isinstance(it, FetchRequest | ListOffsetsRequest)]
        assert {it.isolation_level for it in asked} == {level}


def test_aborted_records_are_left_out_of_columns_without_a_consumer() -> None:
    written = three_transactions()
    batch = record_batch("t", 0, written.data, aborted=written.aborted)
    assert batch.column("value").to_pylist() == [b"c1", b"c2", b"c3"]


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["write", COMMIT, ABORT])), max_size=30))
def test_transactions_in_any_order(steps: list[tuple[int, str | ControlType]]) -> None:
    written = TransactionLog()
    for number, (producer_id, step) in enumerate(steps):
        if step == "write":
            written.write(producer_id, b"%d" % number)
        elif producer_id in written._open:
            written.finish(producer_id, ControlType(step))
    for producer_id in list(written._open):
        written.finish(producer_id, COMMIT)
    aborted = AbortedTransactions(written.aborted)
    found: list[bytes | None] = []
    position = 0
    while position < len(written.data):
        batch = RecordBatch.parse(written.data, position)
        position += batch.size
        if not aborted.covers(batch) and not batch.is_control:
            found += [record.value for record in batch.records()]
    assert sorted(map(bytes, filter(None, found))) == sorted(written.committed)
