"""The share consumer: it reads topics as queues, together with the other members of its share group.

This program processes orders. Any number of copies of the program can run at the same time:
    with hmb.ShareConsumer("localhost:9092", "orders", group="workers") as consumer:
        while True:
            for record in consumer.poll():
                process(record)

The application acknowledges records in one of two ways:
- *implicit* (the default): the next `poll`, `commit` or `close` accepts all records of the last `poll`.
- *explicit*: the application calls `acknowledge` for each record, before the next `poll`.

Only one thread of the application may use a share consumer. The share consumer starts another thread, which sends
heartbeats to the group's coordinator.

Limits: in HMB, no callback reports the result of an acknowledgement. Kafka's Java client has such a callback. HMB's
`poll` only logs the errors of acknowledgements, but HMB's `commit` returns them. An application that must know these
errors therefore calls `commit`, which waits for the response of the broker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Literal, Self

from hmb.client.backoff import RETRY_PAUSE
from hmb.client.connection import ConnectionFailed
from hmb.client.consuming.settings import MAX_BYTES, MAX_POLL_RECORDS
from hmb.client.consuming.single_thread import SingleThreadCheck
from hmb.client.metadata import Cluster, Node
from hmb.client.retries import is_retriable
from hmb.client.settings import CLIENT_ID, REQUEST_TIMEOUT, RETRY_FOR
from hmb.client.share.acknowledgements import ShareRecord
from hmb.client.share.membership import ShareMembership
from hmb.client.share.session import ENDED, ShareSessionHandler, partition_errors
from hmb.defaults import ACKNOWLEDGEMENTS, Acknowledgement
from hmb.protocol.enums import AcknowledgeType, ShareAcquireMode
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import PartitionId, TopicPartition

LOGGER = logging.getLogger(__name__)
ACQUIRE_MODES = {mode.name.lower(): mode for mode in ShareAcquireMode}
TYPES: dict[str, AcknowledgeType] = {name: AcknowledgeType[name.upper()] for name in ACKNOWLEDGEMENTS}
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class ShareConsumer:
    """A member of a share group. Only one thread may use a share consumer.

    - `group`: the name of the share group.
    - `acknowledgement`: "implicit" or "explicit".
    - `acquire_mode`: with "batch_optimized", the member acquires whole batches. With "record_limit", each `poll`
      acquires at most `max_poll_records` records.
    - `max_poll_records`: how many records `poll` requests. With "batch_optimized", `poll` can return more records.
    - `max_bytes`: the requested limit for a response, in bytes.
    - `request_timeout`: the longest wait for a response, in seconds.
    - `retry_for`: how long `poll` tries again after a temporary error, in seconds.
    """

    def __init__(
        self,
        bootstrap_servers: str | Iterable[str],
        *topics: str,
        group: str,
        acknowledgement: Literal["implicit", "explicit"] = "implicit",
        acquire_mode: Literal["batch_optimized", "record_limit"] = "batch_optimized",
        client_id: str = CLIENT_ID,
        max_poll_records: int = MAX_POLL_RECORDS,
        max_bytes: int = MAX_BYTES,
        request_timeout: float = REQUEST_TIMEOUT,
        retry_for: float = RETRY_FOR,
        security: Mapping[str, str] | None = None,
    ) -> None:
        """Join the group and subscribe to `topics`. Raises ValueError if an argument is not valid.

        `security` contains the settings of TLS and SASL, under Kafka's names.
        """
        if not topics or not group:
            raise ValueError("name at least one topic, and a group")
        if acknowledgement not in ("implicit", "explicit"):
            raise ValueError(f"acknowledgement must be 'implicit' or 'explicit', not {acknowledgement!r}")
        if acquire_mode not in ACQUIRE_MODES:
            raise ValueError(f"acquire_mode must be {' or '.join(map(repr, ACQUIRE_MODES))}, not {acquire_mode!r}")
        self._acquire_mode = ACQUIRE_MODES[acquire_mode]
        self._is_explicit = acknowledgement == "explicit"
        self._group, self._max_records, self._max_bytes = group, max_poll_records, max_bytes
        self._retry_for = retry_for
        self._cluster = Cluster(bootstrap_servers, client_id, request_timeout, security=security)
        self._thread_check = SingleThreadCheck("the share consumer")
        self._sessions: dict[Node, ShareSessionHandler] = {}
        self._names: dict[PartitionId, str] = {}
        self._ids: dict[TopicPartition, PartitionId] = {}
        self._membership = ShareMembership(self._cluster, group, topics)
        self._membership.start()

    # -- records

    def poll(self, timeout: float = 1.0) -> list[ShareRecord]:
        """Return records that this member has acquired, or an empty list after `timeout` seconds.

        With implicit acknowledgement, the method first accepts all records of the previous poll. With explicit
        acknowledgement, it raises ValueError if one of these records is not acknowledged.

        After a temporary error, the method tries again, even if `timeout` has passed. It raises a temporary error only
        if `retry_for` seconds have passed since the call began. It raises a permanent error at once. Raises KafkaError,
        ConnectionFailed.
        """
        with self._thread_check:
            self._end_last_poll()
            started = time.monotonic()
            while True:
                left = max(0.0, started + timeout - time.monotonic())
                try:
                    records = self._poll_once(left)
                except (ConnectionFailed, KafkaError) as error:
                    ended = isinstance(error, KafkaError) and error.code in (*ENDED, *MOVED)
                    if not (ended or is_retriable(error)) or time.monotonic() - started >= self._retry_for:
                        raise
                    self._forget_leaders()
                    time.sleep(RETRY_PAUSE)
                    continue
                if records or time.monotonic() >= started + timeout:
                    return records

    def _end_last_poll(self) -> None:
        for session in self._sessions.values():
            for partition, offsets in session.acquired.items():
                if offsets.waiting and self._is_explicit:
                    name = self._names[partition]
                    missing = f"{len(offsets.waiting)} of {name!r} are missing"
                    raise ValueError(f"acknowledge all records before the next poll: {missing}")
                offsets.choose_all(AcknowledgeType.ACCEPT)

    def _poll_once(self, timeout: float) -> list[ShareRecord]:
        by_node: dict[Node, list[PartitionId]] = {}
        for partition in self._membership.assignment(timeout):
            if (node := self._leader(partition)) is not None:
                by_node.setdefault(node, []).append(partition)
        if not by_node:
            time.sleep(min(timeout, RETRY_PAUSE))
            return []
        records: list[ShareRecord] = []
        max_wait_ms = int(timeout * 1000 / len(by_node))
        for node in {**dict.fromkeys(self._sessions), **by_node}:
            session = self._session(node)
            partitions = by_node.get(node, [])
            wait = 0 if records else max_wait_ms
            response, errors = session.fetch(partitions, wait, self._max_bytes, self._max_records - len(records))
            for error in errors.values():
                LOGGER.warning("an acknowledgement failed, so the group delivers the records again: %s", error)
            records += session.records(response, self._names)
            if not records and (failed := partition_errors(response)):
                raise next(iter(failed.values()))
        return records

    def _session(self, node: Node) -> ShareSessionHandler:
        if node not in self._sessions:
            connection = self._cluster.connect(node)
            self._sessions[node] = ShareSessionHandler(
                connection, self._group, self._membership.member_id, self._acquire_mode
            )
        return self._sessions[node]

    def _leader(self, partition: PartitionId) -> Node | None:
        """Return the leader of a partition, or None if its topic is unknown."""
        name = self._names.get(partition) or self._cluster.topic_name(partition.topic_id)
        if name is None:
            return None
        self._names[partition] = name
        self._ids[TopicPartition(name, partition.partition)] = partition
        return self._cluster.leader(TopicPartition(name, partition.partition))

    def _forget_leaders(self) -> None:
        for name in set(self._names.values()):
            self._cluster.forget(name)
        self._names.clear()

    # -- acknowledgements

    def acknowledge(self, record: ShareRecord, what: Acknowledgement = "accept") -> None:
        """Acknowledge a record of the last poll. `what` is "accept", "release" or "reject".

        The consumer sends the acknowledgement with the next `poll`, `commit` or `close`. Raises ValueError if the
        record is not acquired.
        """
        if what not in TYPES:
            raise ValueError(f"{what!r} is not 'accept', 'release' or 'reject'")
        session, partition = self._find(record)
        session.acquired[partition].choose(record.offset, TYPES[what])

    def renew(self, record: ShareRecord) -> None:
        """Extend the acquisition lock of a record: the full duration of the lock begins again. Needs Kafka 4.2.

        Raises ValueError if the record is not acquired, and KafkaError if the lock has already timed out.
        """
        with self._thread_check:
            session, partition = self._find(record)
            for error in session.renew(partition, record.offset).values():
                raise error

    def _find(self, record: ShareRecord) -> tuple[ShareSessionHandler, PartitionId]:
        partition = self._ids.get(TopicPartition(record.topic, record.partition))
        for session in self._sessions.values():
            offsets = session.acquired.get(partition) if partition is not None else None
            if offsets is not None and record.offset in offsets.waiting:
                assert partition is not None
                return session, partition
        why = "is not acquired: it was acknowledged before, or its share session has ended"
        raise ValueError(f"the record at offset {record.offset} of {record.topic}-{record.partition} {why}")

    def commit(self) -> dict[TopicPartition, KafkaError]:
        """Send all acknowledgements, and wait until the broker has stored them.

        With implicit acknowledgement, first accept all records of the last poll. Return the error of each partition
        whose acknowledgements failed. The group delivers the records of these partitions again.
        """
        with self._thread_check:
            return self._acknowledge(closes=False)

    def _acknowledge(self, *, closes: bool) -> dict[TopicPartition, KafkaError]:
        errors: dict[TopicPartition, KafkaError] = {}
        for session in self._sessions.values():
            if not self._is_explicit:
                for offsets in session.acquired.values():
                    offsets.choose_all(AcknowledgeType.ACCEPT)
            for partition, error in session.acknowledge(closes=closes).items():
                errors[TopicPartition(self._names.get(partition, ""), partition.partition)] = error
        return errors

    # -- close

    def close(self) -> None:
        """Send all acknowledgements, close the share sessions and leave the group.

        The broker releases the records that are not acknowledged. Other members then receive them.
        """
        with self._thread_check:
            try:
                self._acknowledge(closes=True)
            except (ConnectionFailed, KafkaError) as error:
                LOGGER.warning("the last acknowledgements could not be sent: %s", error)
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()
            self._membership.close()
            self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            # After an error, some records of the last poll are perhaps not processed. In implicit mode, `close` would
            # acknowledge them as accepted. In explicit mode, `close` sends only the acknowledgements that the
            # application has already chosen.
            self._is_explicit = True
        self.close()
