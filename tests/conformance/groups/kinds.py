"""The clients whose consumer groups are tested. Each client has a command line that runs one member.

HMB's test dependencies include the Python clients. The script `tests/conformance/fetch_clients.sh` downloads kafkajs,
franz-go, and the Java clients of Kafka 0.9 to 2.8 (the tool VerifiableConsumer) into the folder `.peers/clients`. If
the clients are in a different folder, the environment variable HMB_CLIENTS must contain its path.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hmb.bench import peers
from tests.conformance.groups.python_member import HEARTBEAT_MS, MEMBERS, SESSION_MS

# (folder for files, bootstrap servers, topic, group) -> command line
Command = Callable[[Path, str, str, str], list[str]]
JAVA = ["0.9.0.1", "0.10.2.2", "0.11.0.3", "1.0.2", "2.8.2"]
SMALL_JVM = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def fetched(name: str) -> Path:
    folder = Path(os.environ.get("HMB_CLIENTS") or peers.FETCHED / "clients") / name
    if not folder.exists():
        raise peers.PeerUnavailable(f"no {name} client: run tests/conformance/fetch_clients.sh, or set HMB_CLIENTS")
    return folder


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise peers.PeerUnavailable(f"no {name} on the PATH")
    return found


def _python(kind: str, folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.conformance.groups.python_member", kind, *arguments]


def _verifiable_consumer(
    jars: Path, server_option: str, folder: Path, *arguments: str, more: tuple[str, ...] = ()
) -> list[str]:
    bootstrap, topic, group = arguments
    settings = folder / "consumer.properties"
    settings.write_text(f"heartbeat.interval.ms={HEARTBEAT_MS}\n" if not more else "\n")
    session = ["--session-timeout", str(SESSION_MS)] if not more else []
    return peers.java(
        jars,
        "org.apache.kafka.tools.VerifiableConsumer",
        *(server_option, bootstrap, "--topic", topic, "--group-id", group, "--consumer.config", str(settings)),
        *session,
        *more,
        options=SMALL_JVM,
    )


def _java(version: str, folder: Path, *arguments: str) -> list[str]:
    program("java")
    return _verifiable_consumer(fetched(f"java-{version}"), "--broker-list", folder, *arguments)


def _java_43(folder: Path, *arguments: str, more: tuple[str, ...] = ()) -> list[str]:
    return _verifiable_consumer(peers.kafka_43_jars(), "--bootstrap-server", folder, *arguments, more=more)


def _java_with(assignor: str) -> Command:
    """Return the command of Kafka 4.3.0's consumer with the given assignor."""
    name = f"org.apache.kafka.clients.consumer.{assignor}"
    return partial(_java_43, more=("--assignment-strategy", name, "--session-timeout", str(SESSION_MS)))


def _go(folder: Path, *arguments: str) -> list[str]:
    return [str(fetched("go") / "member"), *arguments]


def _node(folder: Path, *arguments: str) -> list[str]:
    return [program("node"), str(fetched("node") / "member.js"), *arguments]


KINDS: dict[str, Command] = {
    **{kind: partial(_python, kind) for kind in MEMBERS},
    **{f"java-{version}": partial(_java, version) for version in JAVA},
    "java-4.3.0": _java_43,
    "java-4.3.0-sticky": _java_with("StickyAssignor"),
    "java-4.3.0-cooperative": _java_with("CooperativeStickyAssignor"),
    "java-4.3.0-consumer": partial(_java_43, more=("--group-protocol", "consumer")),
    "franz-go": _go,
    "kafkajs": _node,
}
# Groups whose members use different clients, which have a common assignor. Each client is the first member once.
MIXED = [
    "hmb+confluent+java-4.3.0",
    "kafka-python+hmb+aiokafka",
    "java-4.3.0-sticky+hmb",
    "hmb-cooperative+confluent-cooperative+java-4.3.0-cooperative",
    "hmb-consumer+confluent-consumer+java-4.3.0-consumer",
]
