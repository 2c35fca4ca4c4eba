"""A broker starts fast, because it imports only the modules that it needs.

`hmb bench start` measures the time of a start. These tests do not measure time. They check which modules a plain broker
has imported when it has received its first record. A new import at the top of a module can load a whole folder of
modules. The start may then take only 10 ms longer, so nobody would notice without these tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hmb

PROGRAM = """
import json, sys
from hmb.cli.broker import running_broker
with running_broker(sys.argv[1], "127.0.0.1", 0, {}) as broker:
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.readline()
    print(json.dumps(sorted(sys.modules)))
"""
UNUSED = (
    *("_hashlib", "_ssl", "asyncio", "concurrent", "difflib", "email", "http", "prometheus_client", "re2", "rich"),
    *("subprocess", "tempfile", "xml"),
    *("hmb.client", "hmb.monitoring", "hmb.testing", "hmb.broker.telemetry"),
    *("hmb.broker.network.connection_login", "hmb.broker.security.acls", "hmb.broker.security.login"),
    *("hmb.broker.security.scram", "hmb.broker.security.tls", "hmb.security.scram", "hmb.security.stores"),
    *("hmb.coordinator.migration", "hmb.coordinator.consumer.group", "hmb.coordinator.share.group"),
    *("hmb.coordinator.share.coordinator", "hmb.coordinator.streams.group"),
)
"""Modules for TLS, SASL, ACLs, groups of newer protocols, monitoring and tests; and large modules outside of HMB."""
# The limit for the imported modules of hmb. The modules of messages do not count: ApiVersions needs all of them.
MAX_MODULES = 260


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[set[str]]:
    """The modules that a plain broker has imported when it has acknowledged its first record."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("data"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdin is not None and broker.stdout is not None
        with hmb.Producer(broker.stdout.readline().strip(), acks=1) as producer:
            producer.send("first", b"x").result(30)
        broker.stdin.write("\n")
        broker.stdin.flush()
        yield set(json.loads(broker.stdout.readline()))


def test_a_plain_broker_imports_no_module_of_a_feature_that_is_off(modules: set[str]) -> None:
    assert sorted(name for name in modules if name.startswith(tuple(f"{each}." for each in UNUSED))) == []
    assert sorted(modules.intersection(UNUSED)) == []


def test_a_plain_broker_imports_few_modules(modules: set[str]) -> None:
    own = {name for name in modules if name.startswith("hmb.") and not name.startswith("hmb.protocol.messages.")}
    assert 150 < len(own) <= MAX_MODULES


def test_a_broker_imports_the_handlers_of_the_requests_that_have_arrived(modules: set[str]) -> None:
    folder = Path(hmb.__file__).parent / "broker" / "handlers"
    loaded = {name.rpartition(".")[2] for name in modules if name.startswith("hmb.broker.handlers.")}
    assert {"api_versions", "metadata", "produce"} <= loaded
    assert len(loaded) < 10 < len(list(folder.glob("*.py")))
