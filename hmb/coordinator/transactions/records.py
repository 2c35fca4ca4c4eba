"""The records of `__transaction_state`, which restore the transactional ids after a restart.

Each record of the topic `__transaction_state` stores the complete state of one transactional id, which is the
key of the record. When an id expires, the broker writes a tombstone (a record with the value null). Only the
newest record of each id is valid. The topic `__consumer_offsets` works in the same way (journal/records.py):
    key    int16 record type = 0   transactional id
    value  int16 version           producer id and epoch, timeout, state, partitions, times, and tagged fields

Record values in `__transaction_state` have format version 0 or 1. Kafka 4.3 reads both versions and writes
version 1.

Source: KIP-98, KIP-890; the JSON definitions in the jar of kafka-transaction-coordinator 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from hmb.coordinator.journal.records import Key, KeyAndValue, Keys, Value, encode_key, encode_value
from hmb.coordinator.transactions.states import TransactionState
from hmb.coordinator.transactions.transactional_id import Transaction
from hmb.protocol import fields as t
from hmb.protocol.errors import ProtocolError
from hmb.protocol.schema import Struct
from hmb.protocol.topics import TopicPartition


class TransactionLogValue(Value, versions="0-1", flexible="1+", written=1):
    """The stored state of a transactional id. Version 1 adds tagged fields, for example the next producer id."""

    class PartitionsSchema(Struct):
        topic:         str       = t.string()
        partition_ids: list[int] = t.array(t.int32)

    producer_id:                          int                           = t.int64()
    previous_producer_id:                 int                           = t.int64("1+", tag=0, default=-1)
    next_producer_id:                     int                           = t.int64("1+", tag=1, default=-1)
    producer_epoch:                       int                           = t.int16()
    next_producer_epoch:                  int                           = t.int16("1+", tag=3, default=-1)
    transaction_timeout_ms:               int                           = t.int32()
    transaction_status:                   int                           = t.int8()
    transaction_partitions:               list[PartitionsSchema] | None = t.array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int                           = t.int64()
    transaction_start_timestamp_ms:       int                           = t.int64()
    client_transaction_version:           int                           = t.int16("1+", tag=2)


class TransactionLogKey(Key, record_type=0, value=TransactionLogValue):
    """The key of the record of one transactional id."""

    transactional_id: str = t.string()


KEYS: Keys = {TransactionLogKey.record_type: TransactionLogKey}


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    """Return each topic once, with the sorted list of its partition numbers."""
    in_order = groupby(sorted(partitions), key=lambda partition: partition.topic)
    return [(topic, [number for _, number in together]) for topic, together in in_order]


def records_of(transaction: Transaction) -> Sequence[KeyAndValue]:
    """Return a list with one journal record, which stores the complete state of a transactional id.

    If the id has expired, the record is a tombstone: its value is null, and it deletes the id.
    """
    key = encode_key(TransactionLogKey(transactional_id=transaction.transactional_id))
    if transaction.state is TransactionState.DEAD:
        return [(key, None)]
    partitions = [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=numbers)
        for topic, numbers in by_topic(transaction.partitions)
    ]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=transaction.updated,
        transaction_start_timestamp_ms=transaction.started,
        client_transaction_version=transaction.version,
    )
    return [(key, encode_value(value))]


def transaction_of(key: TransactionLogKey, value: TransactionLogValue) -> Transaction:
    """Decode the state of a transactional id from its record. Raises ProtocolError if the state is unknown."""
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as error:
        raise ProtocolError(f"{value.transaction_status} is not a state of a transaction") from error
    return Transaction(
        transactional_id=key.transactional_id,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(each.topic, number)
            for each in value.transaction_partitions or ()
            for number in each.partition_ids
        ),
        started=value.transaction_start_timestamp_ms,
        updated=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        version=value.client_transaction_version,
    )
