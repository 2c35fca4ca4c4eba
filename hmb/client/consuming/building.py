"""Builds the objects of a consumer from its settings.

A consumer has more than thirty settings (`ConsumerSettings`), and consists of several objects. Each object needs only
some of these settings. This module checks the settings, and passes each setting to the object that needs it.
"""

from __future__ import annotations

from hmb.client.backoff import RETRY_PAUSE
from hmb.client.consuming.buffer import BatchDecoder
from hmb.client.consuming.fetcher import FetchSettings
from hmb.client.consuming.group_reading import Callbacks, GroupReading
from hmb.client.consuming.reader import AssignmentReader
from hmb.client.consuming.settings import ConsumerSettings
from hmb.client.group.interface import MemberSettings
from hmb.client.metadata import Cluster
from hmb.client.offsets import check_isolation_level, check_offset, check_until
from hmb.protocol.enums import ISOLATION_LEVELS, IsolationLevel


def check_settings(settings: ConsumerSettings) -> None:
    """Raise ValueError or TypeError if a setting is not valid, or if two settings contradict each other."""
    check_offset(settings["offset"])
    check_until(settings["until"])
    check_isolation_level(settings["isolation_level"])
    if settings["max_poll_records"] < 1:
        raise ValueError(f"max_poll_records must be at least 1, not {settings['max_poll_records']}")
    if settings["group"] is not None and settings["partitions"] is not None:
        raise ValueError(
            "a group assigns the partitions to its members; to choose the partitions yourself, use assign() instead of "
            "partitions=..."
        )


def assignment_reader(cluster: Cluster, settings: ConsumerSettings) -> AssignmentReader:
    """Return the object that fetches the records of a consumer's partitions."""
    offset = settings["offset"]
    fetching = FetchSettings(
        max_wait_ms=settings["max_wait_ms"],
        min_bytes=settings["min_bytes"],
        max_bytes=settings["max_bytes"],
        isolation_level=ISOLATION_LEVELS[settings["isolation_level"]],
        reset=offset if settings["group"] is not None and not isinstance(offset, int) else None,
        request_timeout=settings["request_timeout"],
        retry_for=settings["retry_for"],
    )
    decoder = BatchDecoder(settings["check_crcs"], settings["key_deserializer"], settings["value_deserializer"])
    return AssignmentReader(cluster, fetching, decoder, settings["max_partition_bytes"], settings["until"])


def group_reading(cluster: Cluster, reader: AssignmentReader, settings: ConsumerSettings) -> GroupReading | None:
    """Return the object that connects the consumer with its group. Return None if the settings contain no group."""
    if settings["group"] is None:
        return None
    callbacks = Callbacks(settings["on_assigned"], settings["on_revoked"], settings["on_lost"])
    interval = settings["auto_commit_interval"] if settings["auto_commit"] else None
    member = member_settings(settings["group"], settings)
    return GroupReading(cluster, reader, member, settings["offset"], callbacks, interval)


def member_settings(group_id: str, settings: ConsumerSettings) -> MemberSettings:
    """Return the settings of the consumer's membership in a group. Raises ValueError or TypeError for a wrong value."""
    return MemberSettings(
        group_id=group_id,
        group_instance_id=settings["group_instance_id"],
        group_protocol=settings["group_protocol"],
        assignors=tuple(settings["assignors"]),
        remote_assignor=settings["remote_assignor"],
        session_timeout=settings["session_timeout"],
        heartbeat_interval=settings["heartbeat_interval"],
        max_poll_interval=settings["max_poll_interval"],
        request_timeout=settings["request_timeout"],
        retry_backoff=RETRY_PAUSE,
        metadata_max_age=settings["metadata_max_age"],
        require_stable=ISOLATION_LEVELS[settings["isolation_level"]] is IsolationLevel.READ_COMMITTED,
    )
