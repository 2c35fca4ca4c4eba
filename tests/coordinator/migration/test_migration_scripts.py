"""Tests of the online migration between the classic protocol and KIP-848 with goldenscripts (tests/scripts/migration).

    join CLIENT [owns=0,1] [protocols=a,b] [instance=]   a client with the classic protocol sends JoinGroup
    sync CLIENT [OTHER=0,1 ...]                          SyncGroup; the group's leader assigns partitions to clients
    heartbeat CLIENT                                     Heartbeat
    leave CLIENT ...                                     LeaveGroup
    beat MEMBER [EPOCH] [owns=0,1] [instance=]           ConsumerGroupHeartbeat; without EPOCH, the member joins
    policy POLICY                                        change group.consumer.migration.policy
    wait MS                                              let time pass
    restart                                              restart the broker, which restores the group from the journal
    show                                                 print the members with their partitions of topic "a"

A script prints each response with the name of its client, and each change of the group. Topic "a" has four partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hmb.coordinator.classic.members import ClassicMember, MemberIdentity
from hmb.coordinator.consumer.group import ConsumerGroup
from hmb.coordinator.consumer.settings import MigrationPolicy
from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.migration.migration_driver import ClassicClient, MigrationDriver
from tests.scripts import goldenscript

SCRIPTS = Path(__file__).parents[2] / "scripts" / "migration"


class Session:
    """Executes the commands of one script. All commands use the same group."""

    def __init__(self) -> None:
        self.driver = MigrationDriver()
        self.clients: dict[str, ClassicClient] = {}
        self._waiting: dict[str, str] = {}  # client -> the request that waits for its response
        self._state = self._describe()

    def execute(self, command: str, words: list[str], options: dict[str, str]) -> Iterator[str]:
        yield from getattr(self, command)(*words, **options)
        for name in list(self._waiting):
            yield from self._response(name)
        if (state := self._describe()) != self._state:
            yield f"{self._state} -> {state}"
            self._state = state

    def _describe(self) -> str:
        machine = self.driver.runner.machine
        return f"{machine.kind} group {machine.state_name}"

    def join(self, name: str, owns: str = "", protocols: str = "range", instance: str | None = None) -> Iterator[str]:
        client = self.clients.setdefault(name, ClassicClient(name, instance, protocols.split(",")))
        self._waiting[name] = "join"
        code = self.driver.join(client, owns=numbers(owns))
        yield from self._report(name, code)

    def sync(self, name: str, **parts: str) -> Iterator[str]:
        ids = {self.clients[other].member_id.replace("-", "_"): numbers(part) for other, part in parts.items()}
        self._waiting[name] = "sync"
        yield from self._report(name, self.driver.sync(self.clients[name], **ids))

    def _response(self, name: str) -> Iterator[str]:
        client = self.clients[name]
        is_join = self._waiting[name] == "join"
        yield from self._report(name, self.driver.joined(client) if is_join else self.driver.synced(client))

    def _report(self, name: str, answer: list[int] | ErrorCode | None) -> Iterator[str]:
        if answer is None:
            return
        del self._waiting[name]
        if isinstance(answer, list):
            yield f"{name}: assignment {answer}"
        else:
            yield f"{name}: generation {self.clients[name].generation}" if not answer else f"{name}: {answer.name}"

    def heartbeat(self, name: str) -> Iterator[str]:
        yield f"{name}: {self.driver.heartbeat(self.clients[name]).name}"

    def leave(self, *names: str) -> Iterator[str]:
        leaving = [MemberIdentity(member_id=self.clients[name].member_id) for name in names]
        for name, code in zip(names, self.driver.leave(*leaving), strict=True):
            yield f"{name}: {code.name}"

    def beat(self, name: str, epoch: str = "0", owns: str | None = None, instance: str | None = None) -> Iterator[str]:
        try:
            answer = self.driver.beat(
                name, int(epoch), owns=None if owns is None else numbers(owns), instance=instance
            )
        except KafkaError as error:
            yield f"{name}: {error.code.name}"
            return
        assigned = ""
        if answer.assignment is not None:
            assigned = f", assignment {[n for topic in answer.assignment.topic_partitions for n in topic.partitions]}"
        yield f"{name}: epoch {answer.member_epoch}{assigned}"

    def policy(self, policy: str) -> Iterator[str]:
        self.driver.policy = replace(self.driver.policy, migration_policy=MigrationPolicy(policy))
        yield from ()

    def wait(self, ms: str) -> Iterator[str]:
        self.driver.wait(int(ms))
        yield from ()

    def restart(self) -> Iterator[str]:
        self.driver.restart()
        yield from ()

    def show(self) -> Iterator[str]:
        machine = self.driver.runner.machine
        if isinstance(machine, ConsumerGroup):
            yield f"group epoch {machine.state.epoch}, assignment epoch {machine.state.assignment_epoch}"
            for member in machine.state.members.values():
                protocol = "KIP-848" if member.classic is None else "classic"
                owned = sorted(partition.partition for partition in member.assigned)
                yield f"  {member.member_id} {protocol}, epoch {member.epoch}, {member.state.label}, {owned}"
        else:
            state = self.driver.classic.state
            yield f"generation {state.generation}"
            for classic in state.members:
                leads = " leads" if classic.member_id == state.members.leader_id else ""
                yield f"  {classic.member_id} {assigned_to(classic)}{leads}"


def assigned_to(member: ClassicMember) -> list[int]:
    if not member.assignment:
        return []
    assigned = ConsumerProtocolAssignment.parse(member.assignment)[0].assigned_partitions
    return [number for topic in assigned for number in topic.partitions]


def numbers(text: str) -> Iterable[int]:
    return [int(number) for number in text.split(",") if number]


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_script_prints_its_expected_output(path: Path) -> None:
    assert goldenscript.run(path, Session().execute) == path.read_text(encoding="utf-8")


def test_there_are_scripts() -> None:
    assert list(SCRIPTS.glob("*.txt"))
