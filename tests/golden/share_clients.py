"""Clients that use the APIs of share groups (KIP-932). Their requests are captured as golden files."""

from __future__ import annotations

from hmb.bench import peers
from tests.conformance.java_clients import run
from tests.golden.group_and_admin_clients import write_some

CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"


def kafka_43_share_group(bootstrap: str, topic: str) -> None:
    """Run the console share consumer, and the tool that describes and changes share groups."""
    write_some(bootstrap, topic)
    where = ["--bootstrap-server", bootstrap]
    jars = peers.kafka_43_jars()
    group = ["--entity-type", "groups", "--entity-name", topic]
    earliest = ["--add-config", "share.auto.offset.reset=earliest"]
    run(jars, "kafka.admin.ConfigCommand", *where, "--alter", *group, *earliest)
    run(jars, CONSOLE_SHARE_CONSUMER, *where, "--topic", topic, "--group", topic, "--max-messages", "1")
    run(jars, SHARE_GROUPS, *where, "--describe", "--group", topic, "--members")
    run(jars, SHARE_GROUPS, *where, "--describe", "--group", topic)
    reset = ["--reset-offsets", "--group", topic, "--topic", topic, "--to-earliest", "--execute"]
    run(jars, SHARE_GROUPS, *where, *reset)
    run(jars, SHARE_GROUPS, *where, "--delete-offsets", "--group", topic, "--topic", topic)
