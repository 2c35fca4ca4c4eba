"""Tests of committed offsets that the mirror can translate only by counting records.

A run is a series of copied records with consecutive offsets in both clusters. The mirror remembers only MAX_RUNS runs.
If a consumer group has committed an offset in a forgotten run, the mirror counts records to find the offset in the
copy.
"""

from __future__ import annotations

import pytest

import hmb
from hmb.mirror import groups, translation
from hmb.protocol.topics import TopicPartition
from tests.mirror.conftest import MakeMirror, contents

ORDERS = TopicPartition("orders", 0)
RECORDS = 24


def copy_in_transactions(source: hmb.Broker, mirror: MakeMirror) -> None:
    """Send records to the source, and copy each record in a transaction of its own.

    In the copy, a transaction marker follows each record, so two records never have consecutive offsets. For example,
    the records at offsets 0, 1 and 2 of the source are at offsets 0, 2 and 4 of the copy.
    """
    source.create_topic("orders")
    for number in range(RECORDS):
        source.produce("orders", str(number))
        mirror(is_transactional=True).run()


def continued(broker: hmb.Broker) -> bytes | None:
    """Return the value of the record at which the group continues."""
    offset = broker.committed("billing")[ORDERS]
    return next(it.value for it in broker.records("orders") if it.offset >= offset)


def test_records_are_counted_where_runs_were_dropped(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "MAX_RUNS", 4)
    copy_in_transactions(source, mirror)
    assert len(contents(target, "orders")) == RECORDS
    with hmb.Admin(source.bootstrap_servers) as admin:
        for offset in range(RECORDS):
            admin.alter_group_offsets("billing", {ORDERS: offset})
            mirror(is_transactional=True).run()
            assert continued(target) == b"%d" % offset


def test_a_long_count_is_replaced_by_an_earlier_offset(
    source: hmb.Broker, target: hmb.Broker, mirror: MakeMirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation, "MAX_RUNS", 4)
    monkeypatch.setattr(groups, "MAX_COUNTED_OFFSETS", 1)
    copy_in_transactions(source, mirror)
    with hmb.Admin(source.bootstrap_servers) as admin:
        admin.alter_group_offsets("billing", {ORDERS: RECORDS // 2})
    mirror(is_transactional=True).run()
    value = continued(target)
    assert value is not None and int(value) < RECORDS // 2
