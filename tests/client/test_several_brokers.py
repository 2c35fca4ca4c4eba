"""Tests of a client with several brokers: a broker fails, a leader changes, or the client's metadata is outdated."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from uuid import UUID

import pytest

from hmb.client.connection import ConnectionFailed
from hmb.client.metadata import Cluster, Node
from hmb.client.settings import METADATA_MAX_AGE
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.schema import Request, Response
from hmb.protocol.topics import TopicPartition
from tests.client.raw_server import raw_server
from tests.client.scripted_broker import Clock, HangUp, ScriptedBroker

Topic = MetadataResponse.MetadataResponseTopic
FIRST, SECOND = UUID(int=1), UUID(int=2)


def answer(request: Request, version: int) -> Response:
    return ListGroupsResponse()


class Brokers:
    """Several scripted brokers, and the metadata that each one returns.

    A test can change the metadata of each broker.
    """

    def __init__(self, *brokers: ScriptedBroker) -> None:
        self.brokers = dict(enumerate(brokers, 1))
        self.leaders: dict[str, tuple[int, int]] = {}  # by topic: the leader and the leader epoch of its only partition
        self.ids: dict[str, UUID] = {}
        self.asked: list[list[str | None]] = []
        for broker in brokers:
            broker.metadata = self.answer

    def answer(self, request: MetadataRequest) -> MetadataResponse:
        names: Iterable[str | None] = (
            self.leaders if request.topics is None else [topic.name for topic in request.topics]
        )
        self.asked.append(list(names))
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=number, host="127.0.0.1", port=broker.port)
            for number, broker in self.brokers.items()
        ]
        return MetadataResponse(brokers=brokers, controller_id=1, topics=[self.topic(name or "") for name in names])

    def topic(self, name: str) -> Topic:
        if name not in self.leaders:
            return Topic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        leader, epoch = self.leaders[name]
        partition = Topic.MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=epoch)
        return Topic(name=name, topic_id=self.ids.get(name, UUID(int=0)), partitions=[partition])

    def node(self, number: int) -> Node:
        return Node("127.0.0.1", self.brokers[number].port)


def dies(request: MetadataRequest) -> MetadataResponse:
    raise HangUp


def test_another_broker_gets_the_request_when_one_dies() -> None:
    with ScriptedBroker(answer) as one, ScriptedBroker(answer) as two:
        brokers = Brokers(one, two)
        brokers.leaders["t"] = (1, 0)
        for bootstrap, first, second in ((one.address, one, two), (two.address, two, one)):
            cluster = Cluster(bootstrap)
            assert cluster.topic("t").leaders == {0: brokers.node(1)}
            first.metadata, second.metadata = dies, brokers.answer
            cluster.forget("t")
            assert cluster.topic("t").leaders == {0: brokers.node(1)}
            cluster.close()


def test_the_error_names_every_dead_broker() -> None:
    with ScriptedBroker(answer) as one, ScriptedBroker(answer) as two:
        Brokers(one, two).leaders["t"] = (1, 0)
        cluster = Cluster(one.address)
        cluster.topic("t")
        one.stop()
        two.stop()
        with pytest.raises(ConnectionFailed) as caught:
            cluster.topics()
        assert one.address in str(caught.value)
        assert two.address in str(caught.value)


def test_a_restarted_broker_is_found() -> None:
    clock = Clock()
    with ScriptedBroker(answer) as broker:
        Brokers(broker).leaders["t"] = (1, 0)
        cluster = Cluster(broker.address, clock=clock)
        cluster.topic("t")
        broker.stop()
        for _ in range(9):
            with pytest.raises(ConnectionFailed):
                cluster.topics()
            clock.now += 2
    with ScriptedBroker(answer, port=broker.port):
        assert cluster.send(ListGroupsRequest()) == ListGroupsResponse()


def test_a_new_leader_is_found() -> None:
    with ScriptedBroker(answer) as one, ScriptedBroker(answer) as two:
        brokers = Brokers(one, two)
        brokers.leaders["t"] = (1, 0)
        cluster = Cluster(one.address)
        assert cluster.leader(TopicPartition("t", 0)) == brokers.node(1)
        brokers.leaders["t"] = (2, 1)
        assert cluster.leader(TopicPartition("t", 0)) == brokers.node(1)  # No request has failed yet.
        cluster.forget("t")
        assert cluster.leader(TopicPartition("t", 0)) == brokers.node(2)


def test_an_outdated_response_does_not_restore_the_old_leader() -> None:
    with ScriptedBroker(answer) as one, ScriptedBroker(answer) as two:
        brokers = Brokers(one, two)
        cluster = Cluster(one.address)
        # A broker before Kafka 2.1 reports the epoch -1.
        for leader, epoch, expected in ((2, 5, 2), (1, 4, 2), (1, 6, 1), (2, -1, 2)):
            brokers.leaders["t"] = (leader, epoch)
            cluster.forget("t")
            assert cluster.leader(TopicPartition("t", 0)) == brokers.node(expected)


def test_a_new_topic_with_the_same_name_has_new_leader_epochs() -> None:
    with ScriptedBroker(answer) as one, ScriptedBroker(answer) as two:
        brokers = Brokers(one, two)
        cluster = Cluster(one.address)
        for topic_id, leader, epoch in ((FIRST, 2, 5), (SECOND, 1, 0)):
            brokers.ids["t"], brokers.leaders["t"] = topic_id, (leader, epoch)
            cluster.forget("t")
            assert cluster.leader(TopicPartition("t", 0)) == brokers.node(leader)
            assert cluster.topic("t").topic_id == topic_id


def test_a_partition_without_a_leader_or_that_does_not_exist() -> None:
    with ScriptedBroker(answer) as broker:
        Brokers(broker).leaders["t"] = (-1, 0)
        cluster = Cluster(broker.address)
        for partition, error in (
            (TopicPartition("t", 0), "LEADER_NOT_AVAILABLE"),
            (TopicPartition("t", 1), "UNKNOWN_TOPIC"),
        ):
            with pytest.raises(KafkaError) as caught:
                cluster.leader(partition)
            assert caught.value.code.name.startswith(error)


def test_a_partition_without_a_leader_causes_no_requests_for_the_others() -> None:
    with ScriptedBroker(answer) as broker:
        brokers = Brokers(broker)
        brokers.leaders["t"] = (1, 0)
        partition = Topic.MetadataResponsePartition
        topic = Topic(name="t", partitions=[partition(leader_id=1), partition(partition_index=1, leader_id=-1)])
        brokers.topic = lambda name: topic  # type: ignore[method-assign]
        cluster = Cluster(broker.address)
        for _ in range(3):
            assert cluster.leader(TopicPartition("t", 0)) == brokers.node(1)
        assert len(brokers.asked) == 1
        for _ in range(3):
            with pytest.raises(KafkaError, match="t-1 has no leader at the moment"):
                cluster.leader(TopicPartition("t", 1))
        assert len(brokers.asked) == 4


def test_all_outdated_topics_are_requested_together() -> None:
    clock = Clock()
    with ScriptedBroker(answer) as broker:
        brokers = Brokers(broker)
        brokers.leaders = dict.fromkeys("abc", (1, 0))
        cluster = Cluster(broker.address, clock=clock)
        for name in "abc":
            cluster.topic(name)
        clock.now += METADATA_MAX_AGE - 1
        cluster.forget("c")
        cluster.topic("c")
        assert brokers.asked == [["a"], ["b"], ["c"], ["c"]]
        clock.now += 1
        for name in "abc":
            cluster.topic(name)
        assert brokers.asked[4:] == [["a", "b"]]


def test_old_metadata_are_used_while_no_broker_answers() -> None:
    clock = Clock()
    with ScriptedBroker(answer) as broker:
        brokers = Brokers(broker)
        brokers.leaders["t"] = (1, 0)
        cluster = Cluster(broker.address, clock=clock)
        cluster.topic("t")
        broker.metadata = dies
        clock.now += METADATA_MAX_AGE
        assert cluster.topic("t").leaders == {0: brokers.node(1)}


def test_a_topic_that_was_deleted_is_unknown_when_it_is_asked_for_again() -> None:
    clock = Clock()
    with ScriptedBroker(answer) as broker:
        brokers = Brokers(broker)
        brokers.leaders["t"] = (1, 0)
        cluster = Cluster(broker.address, clock=clock)
        cluster.topic("t")
        del brokers.leaders["t"]
        clock.now += METADATA_MAX_AGE
        with pytest.raises(KafkaError, match="there is no topic 't'"):
            cluster.topic("t")


def test_topics_are_found_by_their_ids() -> None:
    with ScriptedBroker(answer) as broker:
        brokers = Brokers(broker)
        brokers.leaders = dict.fromkeys("ab", (1, 0))
        brokers.ids = {"a": FIRST, "b": SECOND}
        cluster = Cluster(broker.address)
        cluster.topic("a")
        assert cluster.topic_name(FIRST) == "a"
        assert brokers.asked == [["a"]]
        assert cluster.topic_name(SECOND) == "b"
        assert cluster.topic_name(UUID(int=3)) is None


def test_a_broker_that_moved_to_another_cluster_is_replaced_by_the_bootstrap_servers() -> None:
    with ScriptedBroker(answer) as bootstrap, ScriptedBroker(answer) as other:
        brokers = Brokers(bootstrap, other)
        brokers.leaders["t"] = (1, 0)
        other.metadata = lambda request: MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        cluster = Cluster(bootstrap.address)
        cluster.topic("t")
        bootstrap.drop_connections()
        for _ in range(20):  # either broker may receive the request
            cluster.topics()
            cluster.close()
        assert cluster.nodes


def test_a_broker_that_does_not_answer_costs_one_timeout() -> None:
    done = threading.Event()
    with ScriptedBroker(answer) as silent, ScriptedBroker(answer) as good:
        brokers = Brokers(silent, good)
        brokers.leaders["t"] = (2, 0)

        def say_nothing(request: MetadataRequest) -> MetadataResponse:
            done.wait()
            raise HangUp

        silent.metadata = say_nothing
        for _ in range(5):  # either broker may receive the request first
            cluster = Cluster([silent.address, good.address], timeout=0.2)
            assert cluster.leader(TopicPartition("t", 0)) == brokers.node(2)
            cluster.close()
        done.set()


def test_a_broker_with_invalid_responses_is_replaced_by_another() -> None:
    with raw_server(lambda client: client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        with ScriptedBroker(answer) as good:
            Brokers(good).leaders["t"] = (1, 0)
            for _ in range(5):
                assert Cluster(f"127.0.0.1:{port},{good.address}").topic("t").name == "t"
        with pytest.raises(ConnectionFailed, match="does not speak Kafka's protocol"):
            Cluster(f"127.0.0.1:{port}").topics()


def test_closing_does_not_wait_for_a_broker_that_does_not_answer() -> None:
    asked, answered = threading.Event(), threading.Event()

    def silent(request: MetadataRequest) -> MetadataResponse:
        asked.set()
        answered.wait(10)
        raise HangUp

    with ScriptedBroker(answer) as broker:
        cluster = Cluster(broker.address, timeout=10)
        cluster.topics()
        broker.metadata = silent
        failures: list[Exception] = []

        def ask() -> None:
            try:
                cluster.topics()
            except ConnectionFailed as error:
                failures.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        assert asked.wait(10)
        cluster.close()
        broker.stop()
        asking.join(5)
        assert len(failures) == 1
        answered.set()
