"""Tests of group members with a real broker: the calls to a member's listener, the order of these calls, and errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from hmb.client.group.interface import OffsetAndMetadata
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import TopicPartition
from tests.client.group.members import (
    COOPERATIVE,
    EAGER,
    KINDS,
    Member,
    add_partitions,
    group_servers,
    make_topic,
    member_settings,
    share,
)
from tests.waiting import until

each_kind = pytest.mark.parametrize("protocol", KINDS)

NAMES = (f"t{number}" for number in itertools.count())
Join = Callable[..., Member]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with group_servers() as servers:
        yield servers


@pytest.fixture
def topic() -> str:
    return next(NAMES)


@pytest.fixture
def join(servers: str, topic: str) -> Iterator[Join]:
    """Yield a function that creates members of one group. At the end, the fixture closes these members."""
    with ExitStack() as stack:

        def join(**settings: Any) -> Member:
            member = Member(servers, f"readers of {topic}", topic, **settings)
            stack.callback(member.close)
            return member

        yield join


@pytest.mark.parametrize("protocol", [*KINDS, {"assignors": ("roundrobin",)}, {"assignors": ("sticky",)}])
def test_members_share_the_partitions_as_they_come_and_go(servers: str, topic: str, join: Join, protocol: Any) -> None:
    partitions = make_topic(servers, topic, 4)
    members = [join(**protocol)]
    share(members, partitions)
    assert members[0].owned == partitions
    members.append(join(**protocol))
    share(members, partitions)
    assert [len(member.owned) for member in members] == [2, 2]
    members.pop(0).close()
    share(members, partitions)
    for member in members:
        owned: frozenset[TopicPartition] = frozenset()
        # Only owned partitions are revoked, and only partitions that the member does not own are assigned.
        for event, them in member.events:
            assert them <= owned if event == "revoked" else not them & owned
            owned = owned - them if event == "revoked" else owned | them
        assert owned == member.owned


def test_an_eager_member_gives_up_all_partitions_and_a_cooperative_one_only_those_that_move(
    servers: str, topic: str, join: Join
) -> None:
    partitions = make_topic(servers, topic, 2)
    first = join(**EAGER)
    share([first], partitions)
    share([first, join(**EAGER)], partitions)
    assert ("revoked", partitions) in first.events
    other = next(NAMES)
    partitions = make_topic(servers, other, 2)
    members = [Member(servers, other, other, **COOPERATIVE)]
    share(members, partitions)
    members.append(Member(servers, other, other, **COOPERATIVE))
    share(members, partitions)
    assert {len(them) for event, them in members[0].events if event == "revoked"} == {1}
    for member in members:
        member.close()


@each_kind
def test_the_next_owner_begins_at_the_offset_that_is_committed_when_a_partition_is_revoked(
    servers: str, topic: str, join: Join, protocol: Any
) -> None:
    def on_call(member: Member, event: str, partitions: frozenset[TopicPartition]) -> None:
        if event == "revoked":
            member.membership.offsets.commit({it: OffsetAndMetadata(7 + it.partition, "so far") for it in partitions})
        elif event == "assigned" and partitions:
            found.update(member.membership.offsets.committed(partitions))

    found: dict[TopicPartition, OffsetAndMetadata | None] = {}
    partitions = make_topic(servers, topic, 2)
    first = join(on_call=on_call, **protocol)
    share([first], partitions)
    assert found == dict.fromkeys(partitions)
    second = join(on_call=on_call, **protocol)
    share([first, second], partitions)
    for partition in second.owned:
        assert found[partition] == OffsetAndMetadata(7 + partition.partition, "so far")


@each_kind
@pytest.mark.parametrize("event", ["assigned", "revoked"])
@pytest.mark.parametrize("raised", [RuntimeError, KeyboardInterrupt])
def test_a_listener_that_raises_stops_no_rebalance_and_leaks_no_partition(
    servers: str, topic: str, join: Join, protocol: Any, event: str, raised: type[BaseException]
) -> None:
    def on_call(member: Member, name: str, partitions: frozenset[TopicPartition]) -> None:
        if name == event and partitions:
            member.on_call = None
            raise raised("the program's own fault")

    partitions = make_topic(servers, topic, 2)
    first = join(**protocol)
    share([first], partitions)
    second = join(**protocol)
    (first if event == "revoked" else second).on_call = on_call
    with pytest.raises(raised, match="the program's own fault"):
        share([first, second], partitions)
    share([first, second], partitions)


def test_the_first_of_several_errors_is_raised_after_all_calls(servers: str, topic: str, join: Join) -> None:
    def on_call(member: Member, name: str, partitions: frozenset[TopicPartition]) -> None:
        if name == "assigned":
            member.on_call = None
        raise RuntimeError(name)

    partitions = make_topic(servers, topic, 2)
    first = join(**COOPERATIVE)
    share([first], partitions)
    second = join(**COOPERATIVE)
    first.on_call = on_call
    with pytest.raises(RuntimeError, match="revoked"):
        share([first, second], partitions)
    revoked, assigned = first.events[-2:]
    assert (revoked[0], assigned) == ("revoked", ("assigned", frozenset()))


@each_kind
def test_a_listener_that_polls_is_not_called_within_itself(servers: str, topic: str, join: Join, protocol: Any) -> None:
    partitions = make_topic(servers, topic, 2)
    first = join(on_call=lambda member, *what: member.membership.poll(60), **protocol)
    share([first], partitions)
    share([first, join(**protocol)], partitions)
    assert len([event for event, them in first.events if event == "assigned" and them == partitions]) == 1


@each_kind
def test_closing_gives_up_all_partitions_and_leaves(servers: str, topic: str, join: Join, protocol: Any) -> None:
    partitions = make_topic(servers, topic, 2)
    first, second = join(**protocol), join(**protocol)
    share([first, second], partitions)
    owned = first.owned
    first.close()
    assert first.events[-1] == ("revoked", owned)
    # `share` waits for less than the session timeout of 45 s. It succeeds only if the first member has left the group.
    share([second], partitions)


def test_closing_ends_a_join_that_waits_for_others(servers: str, topic: str, join: Join) -> None:
    partitions = make_topic(servers, topic, 2)
    first = join()
    share([first], partitions)
    second = join()
    second.poll()
    # The second member then has an id, and its JoinGroup waits for the first member.
    until(lambda: second.membership.metadata.member_id)
    second.close()
    assert not second.membership._thread.is_alive()  # type: ignore[attr-defined]
    share([first], partitions)


def test_closing_raises_the_listeners_error_and_still_leaves(servers: str, topic: str, join: Join) -> None:
    def on_call(member: Member, name: str, partitions: frozenset[TopicPartition]) -> None:
        member.on_call = None
        raise RuntimeError(f"not {name} now")

    partitions = make_topic(servers, topic, 2)
    first, second = join(**COOPERATIVE), join(**COOPERATIVE)
    share([first, second], partitions)
    first.on_call = on_call
    with pytest.raises(RuntimeError, match="not revoked now"):
        first.membership.close()
    share([second], partitions)


@each_kind
def test_a_consumer_that_does_not_poll_has_lost_its_partitions_when_it_does(
    servers: str, topic: str, join: Join, protocol: Any
) -> None:
    partitions = make_topic(servers, topic, 2)
    slow = join(max_poll_interval=0.5, **protocol)
    share([slow], partitions)
    other = join(**protocol)
    share([other], partitions)  # The slow member leaves the group, because it does not poll for 0.5 s.
    with pytest.raises(KafkaError, match="the group has rebalanced without this consumer"):
        slow.membership.offsets.commit({next(iter(partitions)): OffsetAndMetadata(1)})
    slow.poll()
    assert slow.events[-1] == ("lost", partitions)
    share([slow, other], partitions)


@each_kind
def test_a_static_member_that_returns_gets_its_partitions_without_a_rebalance(
    servers: str, topic: str, join: Join, protocol: Any
) -> None:
    partitions = make_topic(servers, topic, 4)
    members = [join(group_instance_id=f"i{number}", **protocol) for number in range(2)]
    share(members, partitions)
    before, heard = [member.owned for member in members], list(members[0].events)
    members[1].close()
    members[1] = join(group_instance_id="i1", **protocol)
    until(lambda: members[1].poll().owned)
    members[0].poll()
    assert [member.owned for member in members] == before
    assert [event for event in members[0].events if event[1]] == [event for event in heard if event[1]]


@each_kind
def test_a_consumer_that_is_not_a_member_commits_nothing_even_in_an_empty_group(
    servers: str, topic: str, join: Join, protocol: Any
) -> None:
    partitions = make_topic(servers, topic, 2)
    offsets = dict.fromkeys(partitions, OffsetAndMetadata(1))
    member = join(**protocol)
    heard: list[Exception | None] = []
    member.membership.offsets.commit_async(offsets, lambda _, error: heard.append(error))
    with pytest.raises(KafkaError, match="without this consumer") as caught:
        member.membership.offsets.commit(offsets)
    assert isinstance(heard[0], KafkaError) and heard[0].code is caught.value.code is ErrorCode.UNKNOWN_MEMBER_ID
    assert member.membership.offsets.committed(partitions) == dict.fromkeys(partitions)


def test_of_two_members_with_the_same_instance_id_the_first_is_fenced(servers: str, topic: str, join: Join) -> None:
    partitions = make_topic(servers, topic, 2)
    first = join(group_instance_id="i")
    share([first], partitions)
    second = join(group_instance_id="i")
    until(lambda: second.poll().owned)
    with pytest.raises(KafkaError, match="another consumer has joined as group_instance_id 'i'"):
        until(lambda: first.poll() is None)
    assert first.events[-1] == ("lost", partitions)


def test_new_partitions_of_a_topic_cause_a_rebalance(servers: str, topic: str, join: Join) -> None:
    make_topic(servers, topic, 2)
    members = [join(metadata_max_age=0.05) for _ in range(2)]
    share(members, frozenset(TopicPartition(topic, number) for number in range(2)))
    add_partitions(servers, topic, 4)
    share(members, frozenset(TopicPartition(topic, number) for number in range(4)))


@each_kind
def test_a_topic_that_is_created_later_is_found(servers: str, topic: str, join: Join, protocol: Any) -> None:
    member = join(**protocol)
    until(lambda: member.poll().events)
    assert member.events == [("assigned", frozenset())]
    share([member], make_topic(servers, topic, 2))


@each_kind
def test_a_change_of_the_subscription_changes_the_assignment(
    servers: str, topic: str, join: Join, protocol: Any
) -> None:
    first, second = make_topic(servers, topic, 2), make_topic(servers, f"{topic}-too", 2)
    member = join(**protocol)
    share([member], first)
    member.membership.subscribe([topic, f"{topic}-too"])
    share([member], first | second)
    member.membership.subscribe([f"{topic}-too"])
    share([member], second)


def test_members_of_different_protocols_cannot_share_a_group(servers: str, topic: str, join: Join) -> None:
    partitions = make_topic(servers, topic, 2)
    share([join(assignors=("range",))], partitions)
    stranger = join(assignors=("sticky",))
    with pytest.raises(KafkaError, match=r"none of the assignors \('sticky',\); give this consumer one that they know"):
        until(lambda: stranger.poll() is None)
    stranger = join(group_protocol="consumer", remote_assignor="best")
    with pytest.raises(KafkaError):
        until(lambda: stranger.poll() is None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_membership_whose_thread_has_failed_raises_an_error(servers: str, topic: str, join: Join) -> None:
    member = join()
    member.membership._member.next_request = lambda now: 1 / 0  # type: ignore[attr-defined]
    with pytest.raises(KafkaError, match="the thread of its heartbeats has failed"):
        until(lambda: member.poll() is None)


def test_settings_that_cannot_work_are_refused() -> None:
    for settings, why in (
        ({"group_id": ""}, "a group needs a name"),
        ({"group_protocol": "new"}, "one of classic, consumer, not 'new'"),
        ({"assignors": ("best",)}, "unknown assignor 'best'"),
        ({"heartbeat_interval": 45.0}, "heartbeat_interval must be above 0 and below session_timeout"),
        ({"max_poll_interval": 0.0}, "above 0 and below 2,147,483"),
        ({"session_timeout": 1e9}, "above 0 and below 2,147,483"),
    ):
        with pytest.raises(ValueError, match=why):
            member_settings(**settings)
