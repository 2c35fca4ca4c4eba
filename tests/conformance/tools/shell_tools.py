"""Runs Kafka 4.3.0's shell tools against a broker. One JVM runs many tools, to save time (Tools.java)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from hmb.bench import peers
from tests.conformance.java_clients import QUICK_START

PROGRAM = Path(__file__).with_name("Tools.java")
# Tools.java raises `Tools$Left` when a tool wants to end the JVM. Some tools print the name of this exception.
HELD_BACK = "Tools$Left\n"
TOOLS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-share-consumer-perf-test": "org.apache.kafka.tools.ShareConsumerPerformance",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
}

WHERE_FIRST = {"kafka-transactions"}  # The command names of these tools come after the connection options.


class Result(NamedTuple):
    code: int
    output: str

    def rows(self) -> list[list[str]]:
        """Return the words in each line of the table that the tool has printed."""
        return [line.split() for line in self.output.splitlines() if line.strip()]


class ShellTools:
    """A JVM that runs Kafka's tools, one after the other."""

    def __init__(self, bootstrap: str, *options: str) -> None:
        """Start the JVM with more options, for example `-Dname=value`."""
        self._bootstrap = bootstrap
        command = peers.java(peers.kafka_43_jars(), str(PROGRAM), options=[*QUICK_START, *options])
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="surrogateescape",  # The values that a console consumer prints may be any bytes.
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def run(self, tool: str, *arguments: str) -> Result:
        """Run a tool. Return its standard output, its standard error and its exit code."""
        assert self._process.stdin is not None and self._process.stdout is not None
        where = ["--bootstrap-server", self._bootstrap]
        words = [TOOLS[tool], *where, *arguments] if tool in WHERE_FIRST else [TOOLS[tool], *arguments, *where]
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith("== "):
                return Result(int(line[3:]), "".join(lines))
            if line != HELD_BACK:
                lines.append(line)
        raise AssertionError(f"{tool} ended the JVM: {''.join(lines)[-2000:]}")

    def __call__(self, tool: str, *arguments: str) -> Result:
        """Run a tool. Fail if its exit code is not 0."""
        result = self.run(tool, *arguments)
        assert result.code == 0, f"{tool} {' '.join(arguments)} ended with {result.code}: {result.output[-2000:]}"
        return result
