"""The initial rebalance delay: the first rebalance of an empty group waits for further members (KIP-134).

Problem: an application starts several consumers within a few seconds. Without a delay, each consumer would start a new
rebalance. The first consumer would receive all partitions, load their state, and lose most of the partitions a moment
later.

Idea: before its first rebalance, an Empty group waits for the delay `group.initial.rebalance.delay.ms`. If another
member joins during this wait, the group waits for the delay again.

The first wait always takes the whole delay. Each further wait ends, at the latest, with the first member's
rebalance timeout. This timeout starts with the first wait.

For example, the initial rebalance delay is 3 s. Member A joins an empty group at second 0, and B joins at
second 2. The first wait ends at second 3. Because B has joined during this wait, the group waits again until
second 6. No member joins in the second wait, so generation 1 starts at second 6 with A and B.

Here is another example with a delay of 3 s and a rebalance timeout of 10 s. A new member joins during each wait
of the group. The waits end at seconds 3, 6, 9 and 10. The last wait takes only 1 s, because the rebalance timeout
is over at second 10.

Source: KIP-134; Kafka's `group.initial.rebalance.delay.ms`.
"""

from __future__ import annotations


class InitialDelay:
    """The wait before the first rebalance of a group. `start` begins the wait, and `stop` ends it. Times are in ms."""

    def __init__(self, delay: int) -> None:
        self.is_running = False
        self._delay = delay
        self._remaining = 0  # ms; all further waits together can take at most this long
        self._has_joined = False  # whether a member has joined during the current wait

    def start(self, rebalance_timeout: int, now: int) -> int:
        """Start the first wait, and return the time at which it ends."""
        self.is_running, self._has_joined = True, False
        self._remaining = max(rebalance_timeout - self._delay, 0)
        return now + self._delay

    def on_join(self) -> None:
        """Record that a member has joined during the current wait. After this wait, the group waits once more."""
        self._has_joined = True

    def extend(self, now: int) -> int | None:
        """Start another wait, and return the time (ms) at which it ends. If no wait starts, return None.

        Another wait starts only if a member has joined during the last wait, and if the earlier waits together have
        taken less time than the rebalance timeout. Before `start` and after `stop`, no wait starts.
        """
        if not self.is_running or not self._has_joined or not self._remaining:
            return None
        self._has_joined = False
        delay = min(self._delay, self._remaining)
        self._remaining -= delay
        return now + delay

    def stop(self) -> None:
        self.is_running = False
