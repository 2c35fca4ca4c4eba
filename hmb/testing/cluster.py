"""A simulated cluster: three brokers for tests of a client that follows a partition's leader.

A client of a cluster sends each request to the leader of a partition. When the leader changes, the old leader answers
NOT_LEADER_OR_FOLLOWER, and the client asks for the new one. With one broker this code of a client never runs.

`hmb.testing.Cluster` (class `SimulatedCluster`) is a simulation for clients. Its nodes share one set of logs, and
nothing is replicated. One broker has a listener for each node. The listener of a request therefore identifies its node.
Handlers in front of the broker's own handlers decide what the node answers::

    node 0   127.0.0.1:40001   leads events-0   --+
    node 1   127.0.0.1:40002   leads events-1   --+--  one broker, one set of logs
    node 2   127.0.0.1:40003   leads events-2   --+

- Metadata and DescribeCluster list the running nodes. Partition P of a topic begins at node P modulo the number of
  nodes. `move_leader` changes this.
- Produce, Fetch, ListOffsets and OffsetForLeaderEpoch get NOT_LEADER_OR_FOLLOWER for partitions of other leaders.
- The first running node coordinates all groups and transactions. Other nodes answer NOT_COORDINATOR.
- A stopped node leads nothing. It closes a connection at its next request. Its port still accepts connections.

Limits: all records survive each change, because the nodes share the logs. Leader epochs do not change. The replicas of
a partition are all nodes, also those that are stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from hmb.broker.context import RequestContext
from hmb.broker.deferred import Deferred
from hmb.broker.dispatch import Handler
from hmb.broker.errors import CloseConnection
from hmb.broker.network.listeners import Listener
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_cluster import DescribeClusterResponse
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.metadata import MetadataResponse
from hmb.protocol.schema import Request, Response
from hmb.protocol.topics import TopicPartition
from hmb.testing.embedded import Broker, Setting
from hmb.testing.refusal import merge, refuse, split

OF_LEADERS = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH)
OF_COORDINATORS = (
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.DELETE_GROUPS, ApiKey.DESCRIBE_GROUPS),
    *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT),
    *(ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
    *(ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_TRANSACTIONS),
)


class SimulatedCluster:
    """A simulated cluster of several nodes in this process. It has no replication.

    `with hmb.testing.Cluster(3) as cluster:` runs nodes 0, 1 and 2. `broker` is the broker of all nodes. Its methods
    create topics, and read records and offsets.
    """

    def __init__(self, nodes: int = 3, config: Mapping[str, Setting] | None = None) -> None:
        """Raises ValueError if `nodes` is not positive, and ConfigError for a wrong setting."""
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node, not {nodes}")
        self._names = [f"NODE{number}" for number in range(nodes)]
        listeners = ",".join(f"{name}://127.0.0.1:0" for name in self._names)
        protocols = ",".join(f"{name}:PLAINTEXT" for name in self._names)
        fixed: dict[str, Setting] = {
            "listeners": listeners,
            "listener.security.protocol.map": protocols,
            # Without fetch sessions, each Fetch request names all its partitions. So a node sees which partitions it
            # must refuse.
            "max.incremental.fetch.session.cache.slots": 0,
        }
        self.broker = Broker(config={**(config or {}), **fixed})
        for key, handler in self.broker.handlers.items():
            self.broker.handlers[key] = partial(self._answer, handler)
        self._lock = threading.Lock()  # This lock guards the leaders and the stopped nodes.
        self._leaders: dict[TopicPartition, int] = {}
        self._stopped: set[int] = set()

    def __enter__(self) -> Self:
        self.broker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.broker.close()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, comma-separated."""
        return self.broker.bootstrap_servers

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the node that leads a partition, or None if all nodes are stopped."""
        running = self._running()
        if not running:
            return None
        chosen = self._leaders.get(TopicPartition(topic, partition), partition % len(self._names))
        return chosen if chosen in running else running[partition % len(running)]

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Let a node lead a partition. Raises ValueError for an unknown or stopped node, and KafkaError."""
        self._check_node(node)
        if partition not in range(count := self.broker.partitions(topic)):
            why = f"{topic!r} has no partition {partition}; its partitions are 0 to {count - 1}"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)
        with self._lock:
            if node in self._stopped:
                raise ValueError(f"node {node} is stopped, so it cannot lead {topic}-{partition}; start it first")
            self._leaders[TopicPartition(topic, partition)] = node

    def stop(self, node: int) -> None:
        """Stop a node. Other nodes lead its partitions until it starts again. Raises ValueError."""
        self._check_node(node)
        with self._lock:
            self._stopped.add(node)

    def start(self, node: int) -> None:
        """Start a stopped node. It leads its partitions again. Raises ValueError."""
        self._check_node(node)
        with self._lock:
            self._stopped.discard(node)

    def _check_node(self, node: int) -> None:
        if node not in range(len(self._names)):
            raise ValueError(f"the cluster has no node {node}; its nodes are 0 to {len(self._names) - 1}")

    def _running(self) -> list[int]:
        with self._lock:
            return [node for node in range(len(self._names)) if node not in self._stopped]

    # -- what a node answers

    def _answer(self, handler: Handler, request: Request, context: RequestContext) -> Response | Deferred | None:
        node = self._names.index(context.listener.name)
        running = self._running()
        if node not in running:
            raise CloseConnection(f"node {node} is stopped")
        key = request.api_key
        if key in OF_LEADERS:
            return self._answer_leader(handler, request, context, node)
        if key in OF_COORDINATORS and node != running[0]:
            return refuse(request, context.version, ErrorCode.NOT_COORDINATOR)
        response: Any = handler(request, context)
        if key in (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER):
            self._describe_nodes(response, running)
        if key in (ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS):
            self._describe_leaders(response)
        if key == ApiKey.FIND_COORDINATOR:
            for found in (response, *response.coordinators):
                if not found.error_code and found.port > 0:
                    found.node_id, found.host, found.port = self._address(running[0])
        return response  # type: ignore[no-any-return]

    def _answer_leader(
        self, handler: Handler, request: Request, context: RequestContext, node: int
    ) -> Response | Deferred | None:
        def is_led_elsewhere(topic: str, partition: int | None) -> bool:
            return partition is not None and self.leader(topic, partition) != node

        refused, rest = split(request, context, is_led_elsewhere)
        if refused is None:
            return handler(request, context)
        errors = refuse(refused, context.version, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if rest is None:
            if getattr(request, "acks", None) == 0:
                raise CloseConnection(f"node {node} does not lead the partitions of a Produce with acks=0")
            return errors
        if isinstance(rest, FetchRequest):
            rest.max_wait_ms = 0  # The client must receive the error at once.
        answer = handler(rest, context)
        if isinstance(answer, Deferred):
            return Deferred(lambda: merge(answer.result(), errors, context.version))
        return None if answer is None else merge(answer, errors, context.version)

    def _address(self, node: int) -> tuple[int, str, int]:
        listener: Listener = self.broker.listeners[node]
        return node, listener.advertised_host, listener.advertised_port

    def _describe_nodes(self, response: Any, running: list[int]) -> None:
        response.controller_id = running[0]
        if not response.brokers:  # A response with an error lists no brokers.
            return
        addresses = [self._address(node) for node in running]
        if isinstance(response, DescribeClusterResponse):
            broker = DescribeClusterResponse.DescribeClusterBroker
            response.brokers = [broker(broker_id=node, host=host, port=port) for node, host, port in addresses]
        else:
            member = MetadataResponse.MetadataResponseBroker
            response.brokers = [member(node_id=node, host=host, port=port) for node, host, port in addresses]

    def _describe_leaders(self, response: Any) -> None:
        for topic in response.topics:
            for each in topic.partitions:
                leader = self.leader(topic.name, each.partition_index)
                each.leader_id = -1 if leader is None else leader
                each.replica_nodes = list(range(len(self._names)))
                each.isr_nodes = self._running()
