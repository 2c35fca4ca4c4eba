"""A cluster of three Kafka 4.3.0 processes: one controller and two brokers. A test may kill either broker."""

from __future__ import annotations

import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from hmb.bench import peers

CONTROLLER = 100
QUICK = {  # A broker that sends no heartbeat for one or two seconds is considered dead.
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "1500",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "3",
    "default.replication.factor": "2",
    "min.insync.replicas": "1",
    "transaction.state.log.replication.factor": "2",
    "auto.leader.rebalance.enable": "false",
}


class Controller(peers.Kafka43):
    """The controller of the cluster. Clients do not connect to it."""

    name = "Kafka 4.3.0's controller"

    def __init__(self, directory: Path) -> None:
        address = f"{peers.HOST}:{(port := peers.free_ports(1)[0])}"
        roles = {"process.roles": "controller", "node.id": str(CONTROLLER)}
        listeners = {"listeners": f"CONTROLLER://{address}", "advertised.listeners": f"CONTROLLER://{address}"}
        self.voters = {"controller.quorum.voters": f"{CONTROLLER}@{address}"}
        super().__init__(directory, port=port, config={**QUICK, **roles, **listeners, **self.voters})

    def ready(self) -> bool:
        try:
            socket.create_connection((peers.HOST, self.port), timeout=5).close()
        except OSError:
            return False
        return True


class Member(peers.Kafka43):
    """One of the two Kafka brokers in the cluster."""

    def __init__(self, directory: Path, node_id: int, controller: Controller) -> None:
        port = peers.free_ports(1)[0]
        roles = {"process.roles": "broker", "node.id": str(node_id), "listeners": f"PLAINTEXT://{peers.HOST}:{port}"}
        super().__init__(directory, port=port, config={**QUICK, **roles, **controller.voters})
        self.node_id, self.cluster_id = node_id, controller.cluster_id


class KafkaCluster:
    """The controller and the brokers 1 and 2."""

    def __init__(self, directory: Path) -> None:
        self.controller = Controller(directory / "controller")
        self.brokers = {number: Member(directory / str(number), number, self.controller) for number in (1, 2)}

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    def __enter__(self) -> Self:
        self.controller.start()
        for broker in self.brokers.values():
            broker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for peer in (*self.brokers.values(), self.controller):
            peer.stop()
