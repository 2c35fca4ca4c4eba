"""Tests of invariants of a KIP-848 group. Clients and writes to the disk fail at random."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.coordinator.consumer.consumer_driver import Client, ConsumerDriver, Topics
from tests.coordinator.settings import consumer_group_settings

NAMES = ["a", "b", "c"]
TOPICS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)
MEMBERS = st.integers(0, 4)


class ConsumerGroupMachine(RuleBasedStateMachine):
    @initialize(interval=st.sampled_from([0, 1_000]))
    def begin(self, interval: int) -> None:
        self.driver = ConsumerDriver(Topics(a=3, b=2), consumer_group_settings(assignment_interval=interval))
        self.clients = [
            Client(self.driver, f"m{number}", instance=f"i{number}" if number < 2 else None) for number in range(5)
        ]
        self.ids = 5

    @rule(number=MEMBERS)
    def beat(self, number: int) -> None:
        self.clients[number].beat()

    @rule(number=MEMBERS, topics=TOPICS)
    def join_again(self, number: int, topics: list[str]) -> None:
        """Let a client join if it is new, has left, or was fenced. A static client may still have its old session."""
        client = self.clients[number]
        if client.epoch == 0:
            client.topics = topics
            client.beat()

    @rule(number=MEMBERS)
    def leave(self, number: int) -> None:
        if self.clients[number].epoch:
            self.clients[number].leave()

    @rule(number=st.integers(0, 1))
    def be_replaced(self, number: int) -> None:
        """Restart a static member. The restarted client has a new member id."""
        old = self.clients[number]
        if old.epoch:
            old.leave(-2)
            self.clients[number] = Client(self.driver, f"m{self.ids}", old.topics, old.instance)
            self.ids += 1

    @rule(number=MEMBERS, is_slow=st.booleans())
    def dawdle(self, number: int, is_slow: bool) -> None:
        client = self.clients[number]
        client.is_slow = is_slow
        if not is_slow:
            client.owned = set(client.assigned)

    @rule(number=MEMBERS)
    def miss_an_answer(self, number: int) -> None:
        client = self.clients[number]
        before = client.epoch, set(client.owned), set(client.assigned)
        client.beat()
        if before[0] and client.epoch:  # A fenced client learns of the fencing with its next heartbeat.
            client.epoch, client.owned, client.assigned = before

    @rule(topic=st.sampled_from(NAMES), more=st.integers(1, 3))
    def grow(self, topic: str, more: int) -> None:
        known = self.driver.topics.by_name(topic)
        self.driver.topics.make(topic, (known.partitions if known else 0) + more)

    @rule(topic=st.sampled_from(NAMES))
    def delete(self, topic: str) -> None:
        self.driver.topics.delete(topic)

    @rule(milliseconds=st.sampled_from([100, 1_000, 5_000, 11_000]))
    def wait(self, milliseconds: int) -> None:
        self.driver.wait(milliseconds)

    @rule(fails=st.booleans())
    def disk(self, fails: bool) -> None:
        self.driver.fails = fails

    @invariant()
    def no_partition_is_owned_twice(self) -> None:
        group = self.driver.group
        members = [client for client in self.clients if client.epoch and client.member_id in group.state.members]
        owners = Counter(partition for client in members for partition in client.owned)
        assert not [partition for partition, count in owners.items() if count > 1]
        theirs = Counter(p for member in group.state.members.values() for p in (*member.assigned, *member.revoking))
        assert theirs.keys() == group.state._owners.keys()
        assert max(theirs.values(), default=1) == 1

    @invariant()
    def what_is_on_disk_makes_the_same_group(self) -> None:
        restored, group = self.driver.restored(), self.driver.group
        for name in ("epoch", "assignment_epoch", "metadata_hash", "members", "targets", "instances", "regexes"):
            assert getattr(restored.state, name) == getattr(group.state, name), name

    @invariant()
    def epochs_are_in_order(self) -> None:
        group = self.driver.group
        assert group.state.assignment_epoch <= group.state.epoch
        assert all(member.epoch <= group.state.assignment_epoch for member in group.state.members.values())
        assert group.state.targets.keys() <= group.state.members.keys()

    def teardown(self) -> None:
        """Check that each subscribed partition gets exactly one owner after the last step."""
        if not hasattr(self, "driver"):
            return
        self.driver.fails = False
        present = [client for client in self.clients if client.member_id in self.driver.group.state.members]
        for client in present:
            client.is_slow, client.owned = False, set(client.assigned)
        # The session timeout is 45 s, so the group removes all members now. The present clients then join again.
        self.driver.wait(60_000)
        for _ in range(8):
            for client in present:
                client.beat()
            self.driver.wait(1_000)
        if not present:
            return
        group = self.driver.group
        assert group.state_name == "Stable"
        read = {name for client in present for name in client.topics}
        wanted = {p for p in self.driver.topics.all_partitions() if self.driver.topics.by_id(p.topic_id).name in read}  # type: ignore[union-attr]
        assert Counter(p for client in present for p in client.owned) == Counter(wanted)


ConsumerGroupMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestConsumerGroup = ConsumerGroupMachine.TestCase
