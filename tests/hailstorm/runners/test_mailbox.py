"""Tests of a processor's mailbox: what it contains, and in which order the processor takes its contents."""

from __future__ import annotations

from typing import Any, cast

from hmb.hailstorm.clock import Clock
from hmb.hailstorm.master import MasterPhase, MasterState
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.runners.transport.mailbox import Mailbox, SaveNotice
from hmb.protocol.topics import TopicPartition

SAVED = SaveNotice(cast(Any, None), Clock(), None)


def payloads() -> Payloads:
    return Payloads(1, "tags-0", (), TopicPartition("tags", 0), Clock())


def master(number: int, epoch: int = 1) -> MasterState:
    return MasterState(MasterPhase.FLOWING, epoch, number)


def test_a_processor_that_is_late_finds_only_the_newest_master_state() -> None:
    mailbox = Mailbox()
    mailbox.notify(SAVED)
    for number in range(1000):
        mailbox.notify(master(number))
    assert [mailbox.take(0) for _ in range(3)] == [SAVED, master(999), None]


def test_notices_come_before_payloads_that_arrived_earlier() -> None:
    mailbox, sent = Mailbox(), payloads()
    assert mailbox.put(sent)
    mailbox.notify(master(0))
    assert [mailbox.take(0) for _ in range(2)] == [master(0), sent]


def test_payloads_of_an_old_epoch_do_not_wait_for_room() -> None:
    mailbox = Mailbox(capacity=1)
    assert mailbox.put(payloads())
    mailbox.notify(master(0, epoch=2))
    assert not mailbox.put(payloads())
