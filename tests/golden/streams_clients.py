"""Clients that use the APIs of streams groups (KIP-1071). Their requests are captured as golden files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import hmb
from hmb.bench import peers
from hmb.bench.peers.jars import kafka_streams_jars
from tests.conformance.java_clients import QUICK_START, run

PROGRAM = Path(__file__).parent.parent / "conformance" / "ecosystem" / "StreamsWordCount.java"
STREAMS_GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"


def kafka_43_streams_group(bootstrap: str, topic: str) -> None:
    """Count words with Kafka Streams and the streams protocol, and describe its group with Kafka's tool."""
    with hmb.Admin(bootstrap) as admin:
        admin.create_topics([hmb.NewTopic(name, 2) for name in ("lines", "counts")])
    command = peers.java(
        *(kafka_streams_jars(), str(PROGRAM), bootstrap, topic, "streams", "at_least_once"), options=QUICK_START
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as application:
        assert application.stdin is not None
        assert application.stdout is not None
        assert application.stdout.readline() == "RUNNING\n"
        where = ["--bootstrap-server", bootstrap, "--describe", "--group", topic]
        run(peers.kafka_43_jars(), STREAMS_GROUPS, *where, "--members")
        application.stdin.close()
