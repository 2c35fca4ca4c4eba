"""The test starts every processor separately, as in the Hailstorm paper.

The processors find each other in a registry.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hmb.hailstorm.errors import HailstormError, TopologyError
from hmb.hailstorm.negotiator import NegotiatorSettings
from hmb.hailstorm.registry import LocalRegistry, Registry, RegistryServer, RemoteRegistry
from hmb.hailstorm.registry.zookeeper import ZooKeeperRegistry
from hmb.hailstorm.runners import RunSettings
from hmb.hailstorm.runners.settings import saved_states
from hmb.hailstorm.runners.single import serve
from hmb.hailstorm.snapshots import DirectorySnapshotStore
from hmb.hailstorm.topology import NEGOTIATOR, Processors, Topology
from tests.hailstorm.runners.thread_runs import counted, trending, words


@pytest.mark.parametrize("kind", ["server", pytest.param("zookeeper", marks=pytest.mark.external)])
def test_processors_find_each_other(
    servers: str, make_topic: Callable[..., str], tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    logs = words(500, 2)
    topic = make_topic(logs)
    topology, store = trending(topic), DirectorySnapshotStore(tmp_path)
    if kind == "zookeeper":
        hosts = request.getfixturevalue("zookeeper")
        connect: Callable[[], Registry] = lambda: ZooKeeperRegistry(hosts, "single")  # noqa: E731
    else:
        server = RegistryServer(LocalRegistry())
        request.addfinalizer(server.close)
        connect = lambda: RemoteRegistry(server.address)  # noqa: E731
    processors = Processors(topology, {topic: [0, 1]})
    settings = RunSettings(servers, "end", NegotiatorSettings(0.05))
    errors = run_each(topology, [NEGOTIATOR, *processors.by_name], settings, store, connect)
    assert errors == []
    assert saved_states(processors, store)["count"] == counted(logs)


def run_each(
    topology: Topology, names: list[str], settings: RunSettings, store: Any, connect: Callable[[], Registry]
) -> list[Exception]:
    """Run each processor with its own connection to the registry. Return the exceptions that the processors raised."""
    errors: list[Exception] = []

    def serve_one(name: str) -> None:
        registry = connect()
        try:
            serve(topology, [name], settings, store, registry)
        except HailstormError as error:
            errors.append(error)
        finally:
            registry.close()

    threads = [threading.Thread(target=serve_one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not any(thread.is_alive() for thread in threads)
    return errors


def test_an_unknown_processor_is_named(servers: str, make_topic: Callable[..., str], tmp_path: Path) -> None:
    topology = trending(make_topic([[b"sun"]]))
    with pytest.raises(TopologyError, match="trending has no processor 'count-7'; it has words-0, count-0"):
        serve(topology, ["count-7"], RunSettings(servers), DirectorySnapshotStore(tmp_path), LocalRegistry())
