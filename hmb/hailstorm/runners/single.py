"""Runs a part of a topology in one process: one or more processors, or only their leader (negotiator).

In the Hailstorm paper, the processors of a topology run on several machines. The user starts every processor, by hand
or with the service manager of its machine. The registry contains the address of each processor, so the processors find
each other. If a processor is started again on another machine, it registers its new address.

Source: the Hailstorm paper, chapter 5.1, "Running Processors", and chapter 6, "Next Steps".
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from hmb.defaults import DEFAULT_HOST
from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.registry import Registry
from hmb.hailstorm.runners.negotiator_thread import NegotiatorThread
from hmb.hailstorm.runners.settings import RunSettings
from hmb.hailstorm.runners.topics import CheckedStore, SourceTopics
from hmb.hailstorm.runners.worker import Worker
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.topology import NEGOTIATOR, Processors, Topology

LOOK_INTERVAL = 0.05  # seconds between two checks whether the negotiator has ended


def serve(
    topology: Topology,
    names: Sequence[str],
    settings: RunSettings,
    store: SnapshotStore,
    registry: Registry,
    host: str = DEFAULT_HOST,
) -> None:
    """Run the named processors until the topology ends.

    If the only name is "negotiator", run the negotiator instead. Processors in other processes connect to this
    process at `host`.

    After a temporary error, for example of a database, `serve` stops its processors and raises the exception. To
    continue, call `serve` again.

    A lasting error of a processor, for example a mistake in the user's code, ends the topology. The calls of
    `serve` for this processor and for the negotiator raise HailstormError. Other calls return.

    Raises TopologyError for an unknown name.
    """
    if list(names) == [NEGOTIATOR]:
        negotiate(topology, settings, store, registry)
        return
    with Worker(topology, names, settings, store, registry, host) as worker:
        worker.wait()


def negotiate(topology: Topology, settings: RunSettings, store: SnapshotStore, registry: Registry) -> None:
    """Run the negotiator until the topology ends. A KeyboardInterrupt ends the topology with a last snapshot."""
    topics = SourceTopics(settings.bootstrap_servers, topology, settings.security)
    processors = Processors(topology, topics.partitions)
    store.claim(topics.fingerprint(processors))
    if settings.until == "end":
        topics.warn_of_empty()
    negotiator = NegotiatorThread(processors, CheckedStore(store, topics), registry, settings.negotiator)
    negotiator.start()
    try:
        while negotiator.is_alive():
            try:
                time.sleep(LOOK_INTERVAL)
            except KeyboardInterrupt:
                negotiator.request_stop()
    finally:
        negotiator.kill()
    if negotiator.error is not None:
        raise negotiator.error
    if negotiator.last is not None and negotiator.last.error is not None:
        raise HailstormError(negotiator.last.error)
