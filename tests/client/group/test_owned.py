"""Tests of the partitions that a member owns: each call of the rebalance listener, and what it changes."""

from __future__ import annotations

from hmb.client.group.member import ListenerCall, ListenerMethod
from hmb.client.group.owned import OwnedPartitions
from hmb.protocol.topics import TopicPartition

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))


def owning(*partitions: TopicPartition) -> OwnedPartitions:
    owned = OwnedPartitions()
    owned.call_finished(owned.assign_all(frozenset(partitions)))
    return owned


def test_a_member_gives_up_partitions_before_it_takes_over_others() -> None:
    """The member owns {a1, a2}, and its target is {a0, a1}, as in the example in the module's docstring."""
    owned, target = owning(A1, A2), frozenset({A0, A1})
    revoked = owned.revoke_all_except(target)
    assert revoked == ListenerCall(ListenerMethod.ON_REVOKED, frozenset({A2}))
    owned.call_finished(revoked)
    assert owned.partitions == {A1}
    assigned = owned.assign_all(target)
    assert assigned == ListenerCall(ListenerMethod.ON_ASSIGNED, frozenset({A0}))
    owned.call_finished(assigned)
    assert owned.partitions == target


def test_the_member_owns_a_partition_until_the_listener_has_returned() -> None:
    owned = owning(A0)
    assert owned.revoke_all_except(frozenset()) is not None
    assert owned.partitions == {A0}


def test_a_member_that_gives_up_nothing_makes_no_call() -> None:
    assert owning(A0).revoke_all_except(frozenset({A0, A1})) is None


def test_a_removed_member_loses_all_partitions() -> None:
    owned = owning(A0, A1)
    lost = owned.lose_all()
    assert lost == ListenerCall(ListenerMethod.ON_LOST, frozenset({A0, A1}))
    owned.call_finished(lost)
    assert not owned.partitions
    assert owned.lose_all() is None
