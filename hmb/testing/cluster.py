"""A simulated cluster of several nodes, to test how a client reacts when the leader of a partition changes.

In a Kafka cluster, a client sends the requests for a partition to the leader of this partition. After a change of the
leader, the old leader answers NOT_LEADER_OR_FOLLOWER. The client then asks which node is the new leader. A test with
one broker never runs this part of a client.

To its clients, a `SimulatedCluster` looks like a cluster. In reality, all nodes are one broker with one set of
logs, and nothing is replicated. The broker has a separate port for each node. A request to port 40002 is a
request to node 1, so the broker answers as node 1 would:
    node 0   127.0.0.1:40001   leads events-0   --+
    node 1   127.0.0.1:40002   leads events-1   --+--  one broker, one set of logs
    node 2   127.0.0.1:40003   leads events-2   --+

Each node answers as a node of a real cluster would:
- The responses to Metadata and DescribeCluster list the running nodes.
- In a cluster of three nodes, node 0 at first leads partitions 0, 3, 6 and so on. Node 1 leads partitions 1, 4,
  7 and so on. A test can call `move_leader` to choose another leader.
- If a node does not lead a partition, it returns NOT_LEADER_OR_FOLLOWER for this partition. This applies to
  Produce, Fetch, ListOffsets and OffsetForLeaderEpoch.
- The running node with the lowest number is the coordinator of all groups and transactions. The other nodes
  return NOT_COORDINATOR.
- A stopped node leads no partition. Its port still accepts connections, but the node closes a connection as
  soon as it receives a request.

Limits: the simulated cluster differs from a real one in three ways. All nodes share the same logs, so a change of the
leader never loses records. The leader epoch of a partition never changes. And each partition has all nodes as its
replicas, even the stopped nodes.
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
from hmb.broker.security.acls.refusal import merge, refuse
from hmb.broker.security.acls.splitting import split
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import Acks
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_cluster import DescribeClusterResponse
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.metadata import MetadataResponse
from hmb.protocol.schema import Request, Response
from hmb.protocol.topics import TopicPartition
from hmb.testing.clock import ManualClock
from hmb.testing.embedded import Broker
from hmb.testing.faults.requests import Faults
from hmb.testing.settings import Setting

OF_LEADERS = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH)
OF_COORDINATORS = (
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.DELETE_GROUPS, ApiKey.DESCRIBE_GROUPS),
    *(ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT),
    *(ApiKey.CONSUMER_GROUP_DESCRIBE, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
    *(ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_TRANSACTIONS),
)


class SimulatedCluster:
    """A simulated cluster of several nodes in this process. It has no replication.

    `with hmb.testing.SimulatedCluster(3) as cluster:` runs the nodes 0, 1 and 2. All nodes share one broker, which is
    the attribute `broker`. A test creates topics and reads records and offsets with the methods of `broker`.
    """

    def __init__(
        self, nodes: int = 3, config: Mapping[str, Setting] | None = None, clock: ManualClock | None = None
    ) -> None:
        """Prepare a cluster with the nodes 0 to `nodes - 1`.

        `config` contains broker settings. A test can move `clock` forward.
        Raises ValueError if `nodes` is below 1, and ConfigError for a wrong setting.
        """
        if nodes < 1:
            raise ValueError(f"a cluster has at least one node, not {nodes}")
        self._names = [f"NODE{number}" for number in range(nodes)]
        listeners = ",".join(f"{name}://127.0.0.1:0" for name in self._names)
        protocols = ",".join(f"{name}:PLAINTEXT" for name in self._names)
        fixed: dict[str, Setting] = {
            "listeners": listeners,
            "listener.security.protocol.map": protocols,
            # A node must answer with an error for each partition that another node leads. In a fetch session, Fetch
            # requests leave out unchanged partitions, so the node would not see all partitions. The value 0 turns fetch
            # sessions off.
            "max.incremental.fetch.session.cache.slots": 0,
        }
        self.broker = Broker(config={**(config or {}), **fixed}, clock=clock)
        for key, handler in self.broker.handlers.items():
            self.broker.handlers[key] = partial(self._answer, handler)
        self._lock = threading.Lock()  # guards `_leaders` and `_stopped`
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
        """The addresses of all nodes, separated by commas: `host:port,host:port`."""
        return self.broker.bootstrap_servers

    @property
    def faults(self) -> Faults:
        """The faults that a test has added. They apply to the requests to every node."""
        return self.broker.faults

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the number of the node that leads a partition. Return None if all nodes are stopped."""
        running = self._running()
        if not running:
            return None
        chosen = self._leaders.get(TopicPartition(topic, partition), partition % len(self._names))
        return chosen if chosen in running else running[partition % len(running)]

    def move_leader(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition.

        Raises ValueError for an unknown or stopped node, and KafkaError for an unknown topic or partition.
        """
        self._check_node(node)
        if partition not in range(count := self.broker.partitions(topic)):
            why = f"{topic!r} has no partition {partition}; its partitions are 0 to {count - 1}"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, why)
        with self._lock:
            if node in self._stopped:
                raise ValueError(f"node {node} is stopped, so it cannot lead {topic}-{partition}; start it first")
            self._leaders[TopicPartition(topic, partition)] = node

    def stop(self, node: int) -> None:
        """Stop a node. Other nodes then lead its partitions. Do nothing if the node is already stopped.

        Raises ValueError for an unknown node.
        """
        self._check_node(node)
        with self._lock:
            self._stopped.add(node)

    def start(self, node: int) -> None:
        """Start a stopped node. The node leads its partitions again. Raises ValueError for an unknown node."""
        self._check_node(node)
        with self._lock:
            self._stopped.discard(node)

    def _check_node(self, node: int) -> None:
        if node not in range(len(self._names)):
            raise ValueError(f"the cluster has no node {node}; its nodes are 0 to {len(self._names) - 1}")

    def _running(self) -> list[int]:
        with self._lock:
            return [node for node in range(len(self._names)) if node not in self._stopped]

    # -- the responses of a node

    def _answer(
        self, handler: Handler, request: Request, context: RequestContext
    ) -> Response | Deferred[Response] | None:
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
    ) -> Response | Deferred[Response] | None:
        def is_led_elsewhere(topic: str, partition: int | None) -> bool:
            return partition is not None and self.leader(topic, partition) != node

        refused, rest = split(request, context, is_led_elsewhere)
        if refused is None:
            return handler(request, context)
        errors = refuse(refused, context.version, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if rest is None:
            if getattr(request, "acks", None) == Acks.NONE:
                raise CloseConnection(f"node {node} leads no partition in this Produce request with acks=0")
            return errors
        if isinstance(rest, FetchRequest):
            rest.max_wait_ms = 0  # Do not wait for records, because the client must receive the error at once.
        answer = handler(rest, context)
        if isinstance(answer, Deferred):
            return Deferred(lambda: merge(answer.result(), errors, context.version))
        return None if answer is None else merge(answer, errors, context.version)

    def _address(self, node: int) -> tuple[int, str, int]:
        listener: Listener = self.broker.listeners[node]
        return node, listener.advertised_host, listener.advertised_port

    def _describe_nodes(self, response: Any, running: list[int]) -> None:
        response.controller_id = running[0]
        if not response.brokers:  # An error response lists no brokers, so there are no addresses to replace.
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
