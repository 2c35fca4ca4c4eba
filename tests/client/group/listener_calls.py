"""Builds the expected calls of a rebalance listener. Tests compare them with the actual calls."""

from __future__ import annotations

from hmb.client.group.member import ListenerCall, ListenerMethod, Owned


def assigned(partitions: Owned) -> ListenerCall:
    return ListenerCall(ListenerMethod.ON_ASSIGNED, partitions)


def revoked(partitions: Owned) -> ListenerCall:
    return ListenerCall(ListenerMethod.ON_REVOKED, partitions)


def lost(partitions: Owned) -> ListenerCall:
    return ListenerCall(ListenerMethod.ON_LOST, partitions)
