"""A broker of Apache Kafka 4.3.0 in a process of its own."""

from __future__ import annotations

import functools
import subprocess
import uuid
from base64 import urlsafe_b64encode

from ..errors import PeerFailed
from .broker_process import COMPARABLE_SETTINGS, HOST, Peer, free_ports, write_properties
from .jars import java, kafka_43_jars


class Kafka43(Peer):
    """A broker of Apache Kafka 4.3.0 in KRaft mode. Broker and controller share one process with a heap of 1 GB.

    Kafka's own start script uses the same size of the heap.
    """

    name = "Kafka 4.3.0"

    @functools.cached_property
    def cluster_id(self) -> str:
        return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    def prepare(self) -> None:
        """Write the settings, and format a new data directory. Raises PeerUnavailable, PeerFailed."""
        self.jars = kafka_43_jars()
        properties = self.directory / "server.properties"
        write_properties(properties, self._properties(free_ports(1)[0]))
        if (self.data_dir / "meta.properties").exists():
            return
        arguments = (f"--cluster-id={self.cluster_id}", "--config", str(properties))
        format_storage = java(self.jars, "kafka.tools.StorageTool", "format", *arguments)
        done = subprocess.run(format_storage, capture_output=True, text=True)
        if done.returncode != 0:
            raise PeerFailed(f"{self.name} did not format its data directory: {done.stdout}{done.stderr}")

    def _properties(self, controller_port: int) -> dict[str, object]:
        listeners = self.config.get("listeners", f"PLAINTEXT://{HOST}:{self.port}")
        properties: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 0,
            "controller.quorum.voters": f"0@{HOST}:{controller_port}",
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.data_dir,
            "num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            **COMPARABLE_SETTINGS,
            "listeners": listeners,
            **self.config,
        }
        if properties["process.roles"] == "broker,controller":
            properties["listeners"] = f"{listeners},CONTROLLER://{HOST}:{controller_port}"
        return properties

    def command(self) -> list[str]:
        options = ["-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        return java(self.jars, "kafka.Kafka", str(self.directory / "server.properties"), options=options)
