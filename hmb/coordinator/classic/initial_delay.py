"""The initial rebalance delay: the first rebalance of an empty group waits for further members (KIP-134).

Problem: the instances of an application start within a few seconds. If each of them started a rebalance of its own, the
first instance would load the state of all partitions and lose most of them a moment later.

Idea: the rebalance of an Empty group waits `group.initial.rebalance.delay.ms`. If a member joins during this wait, the
group waits once more. The sum of all waits is at most the rebalance timeout of the first member.

For example, the delay is 3 s and the rebalance timeout is 10 s. Member A joins at second 0, and B at second 2. The wait
ends at second 3 and is extended to second 6, because B has joined. No other member joins, so generation 1 starts at
second 6 with A and B. If a member joined in each wait, the waits would end at seconds 3, 6, 9 and 10.

Source: KIP-134; Kafka's `group.initial.rebalance.delay.ms`.
"""

from __future__ import annotations


class InitialDelay:
    """The wait of a group's initial rebalance. It runs from `start` until `stop`. Times in ms."""

    def __init__(self, delay: int) -> None:
        self.is_running = False
        self._delay = delay
        self._remaining = 0  # ms by which the delay may still be extended
        self._has_joined = False  # whether a member has joined during the current wait

    def start(self, rebalance_timeout: int, now: int) -> int:
        """Start the first wait, and return the time at which it ends."""
        self.is_running, self._has_joined = True, False
        self._remaining = max(rebalance_timeout - self._delay, 0)
        return now + self._delay

    def on_join(self) -> None:
        """Record that a member has joined. The current wait is then extended when it ends."""
        self._has_joined = True

    def extend(self, now: int) -> int | None:
        """Return the time at which the next wait ends. Return None if no further wait is needed."""
        if not self.is_running or not self._has_joined or not self._remaining:
            return None
        self._has_joined = False
        delay = min(self._delay, self._remaining)
        self._remaining -= delay
        return now + delay

    def stop(self) -> None:
        self.is_running = False
