"""Tests of groups with an old broker, with a broker that fails, and after all members have left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.client.connection import Connection
from hmb.client.group.interface import OffsetAndMetadata
from hmb.client.group.membership import group_offsets
from hmb.client.metadata import Cluster
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest
from hmb.protocol.schema import Request, Response
from hmb.protocol.topics import TopicPartition
from tests.client.group.members import GROUP_CONFIG, KINDS, Member, group_servers, make_topic, member_settings, share
from tests.client.scripted_broker import ScriptedBroker
from tests.waiting import until

GROUP_REQUESTS = [JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with group_servers() as servers:
        yield servers


@pytest.mark.parametrize("version", JoinGroupRequest.versions)
def test_a_group_in_every_version(servers: str, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def version_of(self: Connection, request: type[Request], at_most: int | None = None) -> int:
        newest = newest_of(self, request, at_most)
        return min(newest, version) if request in GROUP_REQUESTS else newest

    newest_of = Connection.version_of
    monkeypatch.setattr(Connection, "version_of", version_of)
    topic = f"version-{version}"
    partitions = make_topic(servers, topic, 4)
    members = [Member(servers, topic, topic) for _ in range(2)]
    share(members, partitions)
    members.pop(0).close()
    share(members, partitions)
    members[0].close()


def test_a_static_member_requires_a_broker_with_static_membership(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "version_of", lambda self, request, at_most=None: 4)
    member = Member(servers, "static", "static", group_instance_id="i")
    with pytest.raises(KafkaError, match=r"need Kafka 2\.3"):
        until(lambda: member.poll() is None)
    member.close()


@pytest.mark.parametrize(
    ("settings", "advice"),
    [({}, "assign.. partitions by hand"), ({"group_protocol": "consumer"}, 'use group_protocol="classic"')],
)
def test_the_error_of_a_broker_without_groups_contains_advice(settings: Any, advice: str) -> None:
    def answer(request: Request, version: int) -> Response:
        where = FindCoordinatorResponse.Coordinator(key="g", node_id=7, host="127.0.0.1", port=broker.port)
        return FindCoordinatorResponse(coordinators=[where])

    with ScriptedBroker(answer, {JoinGroupRequest: -1, ConsumerGroupHeartbeatRequest: -1}) as broker:
        member = Member(broker.address, "g", "t", **settings)
        with pytest.raises(KafkaError, match=f"has no [A-Z_]+ API; .*{advice}"):
            until(lambda: member.poll() is None)
        member.close()


@pytest.mark.parametrize("protocol", KINDS)
def test_a_group_continues_after_a_restart_of_its_broker(tmp_path: Path, protocol: Any) -> None:
    with hmb.Broker(tmp_path, config=GROUP_CONFIG) as broker:
        servers = broker.bootstrap_servers
        partitions = make_topic(servers, "t", 4)
        members = [Member(servers, "g", "t", **protocol) for _ in range(2)]
        share(members, partitions)
        members[0].membership.offsets.commit(dict.fromkeys(partitions, OffsetAndMetadata(5)))
    with hmb.Broker(tmp_path, port=int(servers.rpartition(":")[2]), config=GROUP_CONFIG):
        share(members, partitions)
        members.append(Member(servers, "g", "t", **protocol))
        share(members, partitions)
        assert set(members[2].membership.offsets.committed(partitions).values()) == {OffsetAndMetadata(5)}
        for member in members:
            member.close()


def test_offsets_of_a_group_without_members(servers: str) -> None:
    partitions = make_topic(servers, "offsets", 2)
    first, second = sorted(partitions)
    cluster = Cluster(servers)
    offsets = group_offsets(cluster, member_settings("nobody"))
    offsets.commit({first: OffsetAndMetadata(3, "three")})
    assert offsets.committed([first, second]) == {first: OffsetAndMetadata(3, "three"), second: None}
    answers: list[Exception | None] = []
    for number in range(3):
        offsets.commit_async({first: OffsetAndMetadata(number)}, lambda them, error: answers.append(error))
    # The broker answers in the order of the requests, so this commit ends after the three commits above.
    offsets.commit({second: OffsetAndMetadata(9)})
    assert answers == [None, None, None]
    assert offsets.committed([first])[first] == OffsetAndMetadata(2)
    assert offsets.committed([]) == {} and offsets.metadata.generation_id == -1
    with pytest.raises(KafkaError, match="no-such-topic-0: This broker has no such topic") as caught:
        offsets.commit({TopicPartition("no-such-topic", 0): OffsetAndMetadata(1)})
    assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    offsets.commit_async({TopicPartition("no-such-topic", 0): OffsetAndMetadata(1)}, lambda _, it: answers.append(it))
    offsets.close()
    assert isinstance(answers[-1], KafkaError)
    cluster.close()
