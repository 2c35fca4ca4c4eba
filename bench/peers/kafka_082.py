"""A broker of Apache Kafka 0.8.2.2, and the ZooKeeper server that this broker needs.

Kafka 0.8.2.2 is the last release of the series 0.8.2. The bachelor thesis on which HMB is based measured an older
release of this series, Kafka 0.8.2.0.
"""

from __future__ import annotations

import socket
import subprocess
import time

from ..errors import PeerFailed
from .broker_process import (
    HOST,
    START_SECONDS,
    STOP_SECONDS,
    Peer,
    brokers_known,
    free_ports,
    spawn,
    terminate,
    write_properties,
)
from .jars import java, kafka_082_jars


class Kafka082(Peer):
    """A broker of Apache Kafka 0.8.2.2. It has its own ZooKeeper, in a second process."""

    name = "Kafka 0.8.2.2"
    zookeeper: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Write the settings and start ZooKeeper. Raises PeerUnavailable, PeerFailed."""
        self.jars = kafka_082_jars()
        self.zookeeper_port = free_ports(1)[0]
        zookeeper = {"dataDir": self.directory / "zookeeper", "clientPort": self.zookeeper_port, "maxClientCnxns": 0}
        broker = {
            "broker.id": 0,
            "port": self.port,
            "host.name": HOST,
            "log.dirs": self.data_dir,
            "zookeeper.connect": f"{HOST}:{self.zookeeper_port}",
            "num.partitions": 1,
            "log.cleaner.enable": "false",
            **self.config,
        }
        write_properties(self.directory / "zookeeper.properties", zookeeper)
        write_properties(self.directory / "server.properties", broker)
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = java(self.jars, main_class, str(self.directory / "zookeeper.properties"), options=["-Xmx512M"])
        self.zookeeper = spawn(command, self.directory / "zookeeper.log")
        self._await_zookeeper()

    def _await_zookeeper(self) -> None:
        """Wait until ZooKeeper answers `imok` to the command `ruok`, its health check. Raises PeerFailed."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._ask_zookeeper(b"ruok") == b"imok":
                return
            time.sleep(0.05)
        raise PeerFailed("ZooKeeper did not start")

    def _ask_zookeeper(self, command: bytes) -> bytes:
        """Send a command such as `ruok` to ZooKeeper. Return the answer, or b"" if ZooKeeper does not answer."""
        try:
            with socket.create_connection((HOST, self.zookeeper_port), timeout=5) as connection:
                connection.sendall(command)
                return b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return b""

    def command(self) -> list[str]:
        options = ["-Xms1G", "-Xmx1G"]
        return java(self.jars, "kafka.Kafka", str(self.directory / "server.properties"), options=options)

    def ready(self) -> bool:
        """Return whether the broker answers requests and is registered in ZooKeeper.

        The broker answers requests before it is registered, but clients cannot create topics before the registration.
        The method asks ZooKeeper, because clients cannot see the registration. Without topics, a Metadata response of
        Kafka 0.8.2 lists no brokers, even after the registration.
        """
        return brokers_known(self.port) is not None and self._is_registered()

    def _is_registered(self) -> bool:
        return b"/brokers/ids/" in self._ask_zookeeper(b"dump")

    def kill(self) -> None:
        """Send SIGKILL. Then wait until ZooKeeper has removed the broker's registration, but at most STOP_SECONDS.

        Without this wait, ZooKeeper could still contain the old registration when the broker starts again. The broker
        would then assume that another broker has the same id.
        """
        super().kill()
        deadline = time.monotonic() + STOP_SECONDS
        while self._is_registered() and time.monotonic() < deadline:
            time.sleep(0.05)

    def stop(self) -> int | None:
        """Stop first the broker and then ZooKeeper. Return the broker's exit code."""
        code = super().stop()
        zookeeper, self.zookeeper = self.zookeeper, None
        if zookeeper is not None:
            terminate(zookeeper)
        return code
