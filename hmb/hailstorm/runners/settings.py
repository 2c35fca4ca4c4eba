"""Declares the options of a run of a topology (`RunSettings`), and its result (`RunResult`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import decode
from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.monoids import MapOf, Sessions
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.processors.spouts import SpoutSnapshot
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processors

Until = Literal["end"] | None


@dataclass(frozen=True)
class RunSettings:
    """The options of a run of a topology. Times are in seconds.

    bootstrap_servers   the addresses of brokers of the cluster that contains the topics
    until               "end": the topology reads the records that exist at its start, and ends; None: no end
    negotiator          the settings of the negotiator, which controls the topology
    poll_records        the largest number of records that a spout reads at once
    poll_timeout        how long a spout waits for records before it reads the messages in its mailbox
    restart_pause       how long a runner waits before it starts a crashed processor again
    start_timeout       how long a processor may take to register for a new epoch before its worker is replaced
    max_restarts        the largest number of restarts since the last complete snapshot; None: no limit
    allow_expired       whether a spout may start even if retention has already deleted its first records
    security            settings for TLS and SASL, for example {"security.protocol": "SSL"}

    Suppose that retention has deleted records before the first start. If `allow_expired` is True, a spout with
    offset="earliest" begins at the oldest remaining record. If it is False, the topology ends with an error.

    Workers get the settings in `security` through a pipe, so no other process can read them.

    If processors do not register in time, a runner replaces their workers and doubles the time limit, up to 60 s.
    With `start_timeout` = 10, the limits are 10, 20, 40 and 60 s. A `start_timeout` above 60 s is not doubled.
    After all processors have registered, the limit is `start_timeout` again.

    With a large `poll_records`, a topology processes more records per second. With a small `poll_records`, each
    record reaches the sink sooner, and processors react to the negotiator sooner.
    """

    bootstrap_servers: str
    until: Until = None
    negotiator: NegotiatorSettings = field(default_factory=NegotiatorSettings)
    poll_records: int = 2000
    poll_timeout: float = 0.02
    restart_pause: float = 0.05
    start_timeout: float = 10.0
    max_restarts: int | None = 10
    allow_expired: bool = False
    security: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RunResult:
    """The result of a run.

    completed   the clock of the newest complete snapshot, with one offset for each partition
    states      bolt name -> the state of the bolt at this clock, merged from all its instances
    snapshots   the number of complete snapshots
    epochs      the number of starts of the topology with this snapshot store, including recoveries and earlier runs
    late        spout or bolt name -> the number of late tuples that this node dropped
    dead        spout name -> the number of records that became dead letters because `convert` failed for them

    A snapshot at a clock includes all records below the offsets of the clock.

    `late` and `dead` count from the first start of the topology. They contain only nodes whose count is not 0.
    """

    completed: Clock | None
    states: dict[str, Any]
    snapshots: int
    epochs: int
    late: dict[str, int] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)


def left_out(processors: Processors, store: SnapshotStore) -> tuple[dict[str, int], dict[str, int]]:
    """Return two dicts: node name -> number of late tuples, and node name -> number of dead letters.

    A spout or a bolt drops a late tuple, because its event time is too old. A dead letter is a record for which the
    function `convert` of a spout raised an exception.

    The dicts do not contain nodes whose number is 0. The numbers come from the newest complete snapshot in `store`.
    If no snapshot is complete, the dicts are empty.
    """
    at, late, dead = store.completed(), Counter[str](), Counter[str]()
    for name, processor in processors.by_name.items():
        runs, node = processor.node.runs, processor.node.name
        if at is None or not processor.saves:
            continue
        if isinstance(runs, Spout):
            saved = SpoutSnapshot.from_value(decode(store.load(name, at)))
            late[node] += saved.late
            dead[node] += saved.dead
        elif isinstance(runs, Bolt) and runs.windows is not None:
            late[node] += decode(store.load(name, at))[-1]
    return dict(+late), dict(+dead)  # The unary + leaves out the nodes whose count is 0.


def saved_states(processors: Processors, store: SnapshotStore, clock: Clock | None = None) -> dict[str, Any]:
    """Return the state of each bolt, merged from the snapshots of all its instances.

    `clock` selects the snapshots. It contains one offset for each partition, and the snapshots include all records
    below these offsets. If `clock` is None, load the newest complete snapshots. If no snapshot is complete, each
    state is empty.

    Raises SnapshotError if a snapshot is missing or damaged. Raises TopologyError if the states of two
    instances of a bolt contain the same key.
    """
    at = clock or store.completed()
    states: dict[str, Any] = {}
    for name, processor in processors.by_name.items():
        bolt = processor.node.runs
        if isinstance(bolt, Bolt):
            state = bolt.monoid.empty()
            if at is not None:
                state = bolt.monoid.from_value(decode(store.load(name, at))[0])
            node = processor.node.name
            if node in states:
                _check_keys(node, bolt, states[node], state)
            states[node] = bolt.monoid.absorb(states[node], state) if node in states else state
    return states


def _check_keys(node: str, bolt: Bolt, state: Any, other: Any) -> None:
    """Raise TopologyError if the states of two instances of a bolt contain the same key.

    If two instances have the same key, each has received only some of the key's tuples, so the results are wrong.

    A bolt without a key function is not checked. A bolt with windows (except `Sessions`) is checked only if each
    window contains a `MapOf`.
    """
    if bolt.key is None:
        return
    windows, pairs = bolt.windows, [(state, other)]
    # Two instances can have the same window, but not the same key in this window. So compare their keys in each common
    # window. Only a window with a `MapOf` has a state for each key.
    if windows is not None and not isinstance(windows, Sessions):
        has_keys = type(windows.values).lift is MapOf.lift
        pairs = [(state[start], other[start]) for start in state.keys() & other.keys() if has_keys]
    common = {key for one, another in pairs for key in one.keys() & another.keys()}
    if common:
        raise TopologyError(
            f"{node}: two instances have received tuples of the key {min(common, key=repr)!r:.100}, so the results are "
            "wrong. Remove the argument `group` of this bolt, or set it to a function that returns the key of a tuple"
        )
