"""A simulated partition with three replicas, for lab 11.

HMB is a single broker without replicas, so lab 11 simulates a cluster. The simulation has no network and no
clock. Each action, such as a fetch, is one step, and the simulation measures time in steps. The caller provides
the rules of replication as five functions. The class `Rules` shows their parameters. The functions return:
    high_watermark   the offset after the last record that all in-sync replicas have
    in_sync          the list of the in-sync replicas (ISR)
    elect            the next leader, or None
    common_length    how many records a follower keeps when it gets a new leader
    is_acknowledged  whether a record is acknowledged

For example, the leader A has 3 records, and its followers B and C have 2. With acks=1, the third record is acknowledged
as soon as A has it. If A crashes now, B becomes the leader, and the acknowledged third record is lost.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

# A follower leaves the ISR if it last fetched all missing records more than MAX_LAG steps ago.
MAX_LAG = 6
ACTIONS = ("produce",) * 4 + ("fetch",) * 6 + ("crash", "restart")


class Rules(Protocol):
    """The rules of replication. A module that defines the five functions of this class can be used as `Rules`."""

    def high_watermark(self, log_ends: dict[str, int], isr: list[str], /) -> int: ...

    def in_sync(
        self, replicas: Sequence[str], leader: str, caught_up_at: dict[str, int], now: int, max_lag: int, /
    ) -> list[str]: ...

    def elect(self, replicas: Sequence[str], isr: list[str], live: set[str], /) -> str | None: ...

    def common_length(self, follower_epochs: list[int], leader_epochs: list[int], /) -> int: ...

    def is_acknowledged(self, acks: str, offset: int, leader_end: int, high_watermark: int, /) -> bool: ...


class Stored(NamedTuple):
    """A record in the log of a replica."""

    epoch: int  # how many elections the partition had before the record was written
    value: str


@dataclass(frozen=True)
class Snapshot:
    """The state of the partition after one step."""

    step: str  # a description of the step, for example "A crashes"
    log_ends: dict[str, int]
    high_watermark: int
    leader: str | None
    isr: list[str]


@dataclass
class ReplicatedPartition:
    """A partition with several replicas. `acks` is the setting of the producers: "0", "1" or "all"."""

    rules: Rules
    acks: str
    replicas: Sequence[str] = "ABC"
    logs: dict[str, list[Stored]] = field(default_factory=dict)
    # `caught_up_at` maps each follower to the number of the last step in which the follower fetched all missing
    # records. It maps the leader to the number of the current step.
    caught_up_at: dict[str, int] = field(default_factory=dict)
    acknowledged: list[str] = field(default_factory=list)
    history: list[Snapshot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.logs = {name: [] for name in self.replicas}
        self.caught_up_at = dict.fromkeys(self.replicas, 0)
        self.live, self.isr = set(self.replicas), list(self.replicas)
        self.leader: str | None = self.replicas[0]
        self.epoch, self.high_watermark = 0, 0
        # The leader remembers how many records each replica has. A new leader does not know the followers' logs, so it
        # begins with 0 for each follower. Each fetch updates the follower's number.
        self._known_ends = dict.fromkeys(self.replicas, 0)
        self._waiting: list[tuple[int, str]] = []  # the offset and value of each record that is not acknowledged yet
        self._note("start")

    @property
    def lost(self) -> list[str]:
        """The acknowledged records that are not in the leader's log. The list is empty while no leader exists."""
        if self.leader is None:
            return []
        values = {record.value for record in self.logs[self.leader]}
        return [value for value in self.acknowledged if value not in values]

    def produce(self, value: str) -> None:
        """Append a record to the leader's log.

        If no leader exists, the record is lost. With acks=0, the lost record still counts as acknowledged.
        """
        if self.leader is not None:
            self._waiting.append((len(self.logs[self.leader]), value))
            self.logs[self.leader].append(Stored(self.epoch, value))
            self._note(f"produce {value}")
        elif self.acks == "0":
            self.acknowledged.append(value)

    def fetch(self, follower: str, count: int | None = None) -> None:
        """Let a follower copy missing records from the leader: at most `count`, or all if `count` is None.

        The follower's log can end with records that the leader does not have. The follower removes these records first.
        """
        if self.leader is None or follower == self.leader or follower not in self.live:
            return
        mine, theirs = self.logs[follower], self.logs[self.leader]
        del mine[self.rules.common_length([each.epoch for each in mine], [each.epoch for each in theirs]) :]
        mine += theirs[len(mine) :][:count]
        self._known_ends[follower] = len(mine)
        if len(mine) == len(theirs):
            self.caught_up_at[follower] = len(self.history)
        self._note(f"{follower} fetches")

    def crash(self, replica: str) -> None:
        """Stop a replica. The replica keeps its log. If it was the leader, the partition elects a new leader."""
        self.live.discard(replica)
        if replica == self.leader:
            self._elect()
        self._note(f"{replica} crashes")

    def restart(self, replica: str) -> None:
        """Start a stopped replica again. If the partition has no leader, the partition elects a leader."""
        self.live.add(replica)
        if self.leader is None:
            self._elect()
        self._note(f"{replica} restarts")

    def run(self, rng: random.Random, steps: int) -> None:
        """Do `steps` random steps: produce a record, let a replica fetch, crash a replica, or restart a replica."""
        for number in range(steps):
            action, replica = rng.choice(ACTIONS), rng.choice(self.replicas)
            if action == "produce":
                self.produce(f"record {number}")
            elif action == "fetch":
                self.fetch(replica, rng.choice([1, None]))
            elif action == "crash":
                self.crash(replica)
            else:
                self.restart(replica)

    def _elect(self) -> None:
        self.leader = self.rules.elect(self.replicas, list(self.isr), set(self.live))
        self.epoch += 1
        self._known_ends = dict.fromkeys(self.replicas, 0)
        self._waiting.clear()  # The producers of the waiting records get an error.

    def _note(self, step: str) -> None:
        """Update the ISR, high watermark and acknowledged records after a step. Append the new state to `history`."""
        ends = {name: len(log) for name, log in self.logs.items()}
        if self.leader is not None:
            now = len(self.history)
            self.caught_up_at[self.leader], self._known_ends[self.leader] = now, ends[self.leader]
            self.isr = self.rules.in_sync(self.replicas, self.leader, dict(self.caught_up_at), now, MAX_LAG)
            safe = self.rules.high_watermark(dict(self._known_ends), list(self.isr))
            self.high_watermark = max(self.high_watermark, safe)
            still_waiting = []
            for offset, value in self._waiting:
                if self.rules.is_acknowledged(self.acks, offset, ends[self.leader], self.high_watermark):
                    self.acknowledged.append(value)
                else:
                    still_waiting.append((offset, value))
            self._waiting = still_waiting
        self.history.append(Snapshot(step, ends, self.high_watermark, self.leader, list(self.isr)))
