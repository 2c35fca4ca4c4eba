"""Tests of classic groups with goldenscripts (tests/scripts/groups): each script lists requests and their responses.

    join CLIENT [MEMBER-ID] [instance= session= rebalance= protocols=a,b metadata= version= type=]
    sync MEMBER-ID GENERATION [MEMBER-ID=ASSIGNMENT ...] [instance=]
    heartbeat | commit MEMBER-ID GENERATION [instance=]
    leave MEMBER-ID ... [instance=]
    wait MS         let time pass
    hold            delay the writes of the journal until `written` or `lost`
    written | lost  end the delayed writes: they succeed, or they fail
    restart         restart the broker, which restores the group from the journal
    show            print the members

A script prints each response with the name of its client or member, and each change of the group's state. A member
id consists of a name and a number, for example `a-1`. For a static member, the name is its instance id. For any other
member, the name is the client's name. The command `settings` at the start of a script changes the group's settings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hmb.coordinator.classic.members import Call, MemberIdentity
from hmb.protocol.enums import GroupState
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.join_group import JoinGroupResponse
from hmb.protocol.messages.sync_group import SyncGroupResponse
from tests.coordinator.classic.group_driver import DISK_FULL, NEWEST_JOIN, GroupDriver
from tests.coordinator.settings import group_settings
from tests.scripts import goldenscript

SCRIPTS = Path(__file__).parents[2] / "scripts" / "groups"


class Session:
    """Executes the commands of one script. All commands use the same group."""

    def __init__(self) -> None:
        self.driver = GroupDriver()
        self._names: dict[Call, str] = {}
        self._state = GroupState.EMPTY

    def execute(self, command: str, words: list[str], options: dict[str, str]) -> Iterator[str]:
        yield from getattr(self, command)(*words, **options)
        yield from self._news()

    def settings(self, **options: str) -> Iterator[str]:
        self.driver = GroupDriver(group_settings(**{name: int(value) for name, value in options.items()}))
        yield from ()

    def join(self, client: str, member_id: str = "", **options: str) -> Iterator[str]:
        metadata = options.get("metadata", "").encode()
        call = self.driver.join(
            client,
            member_id,
            instance=options.get("instance"),
            session=int(options.get("session", 10_000)),
            rebalance=int(options.get("rebalance", 60_000)),
            protocols=[(name, metadata) for name in options.get("protocols", "range").split(",") if name],
            protocol_type=options.get("type", "consumer"),
            version=int(options.get("version", NEWEST_JOIN)),
        )
        self._names[call] = client
        yield from ()

    def sync(self, member_id: str, generation: str, instance: str | None = None, **parts: str) -> Iterator[str]:
        assignments = {each: part.encode() for each, part in parts.items()}
        self._names[self.driver.sync(member_id, int(generation), assignments, instance=instance)] = member_id
        yield from ()

    def heartbeat(self, member_id: str, generation: str, instance: str | None = None) -> Iterator[str]:
        yield f"{member_id}: {self.driver.heartbeat(member_id, int(generation), instance).name}"

    def commit(self, member_id: str = "", generation: str = "-1", instance: str | None = None) -> Iterator[str]:
        yield f"{member_id}: {self.driver.commit(member_id, int(generation), instance).name}"

    def leave(self, *member_ids: str, instance: str | None = None) -> Iterator[str]:
        leaving = [MemberIdentity(member_id=each, group_instance_id=instance) for each in member_ids or [""]]
        for identity, code in zip(leaving, self.driver.leave(*leaving), strict=True):
            yield f"{identity.member_id or instance}: {code.name}"

    def wait(self, ms: str) -> Iterator[str]:
        end = self.driver.now + int(ms)
        while (deadline := self.driver.group.next_deadline()) is not None and deadline <= end:
            self.driver.wait(deadline - self.driver.now)
            if news := list(self._news()):
                yield f"at {self.driver.now} ms"
                yield from news
        self.driver.wait(end - self.driver.now)

    def hold(self) -> Iterator[str]:
        self.driver.holds = True
        yield from ()

    def written(self) -> Iterator[str]:
        self.driver.write()
        yield from ()

    def lost(self) -> Iterator[str]:
        self.driver.write(DISK_FULL)
        yield from ()

    def restart(self) -> Iterator[str]:
        self.driver.restart()
        yield from ()

    def show(self) -> Iterator[str]:
        state = self.driver.group.state
        yield f"{state.current.value}, generation {state.generation}, {state.protocol_type} {state.protocol}"
        for member in state.members:
            leads = " leads" if member.member_id == state.members.leader_id else ""
            waits = " joining" if member.joining else " syncing" if member.syncing else ""
            yield f"  {member.member_id} {member.assignment.decode()!r}{leads}{waits}"

    def _news(self) -> Iterator[str]:
        for call, answer in self.driver.answers.items():
            yield f"{self._names[call]}: {_text(answer)}"
        self.driver.answers.clear()
        if self.driver.group.state.current is not self._state:
            yield f"{self._state.value} -> {self.driver.group.state.current.value}"
            self._state = self.driver.group.state.current


def _text(answer: JoinGroupResponse | SyncGroupResponse) -> str:
    if answer.error_code:
        return " ".join(filter(None, [ErrorCode(answer.error_code).name, getattr(answer, "member_id", "")]))
    if isinstance(answer, SyncGroupResponse):
        return f"assignment {answer.assignment.decode()!r}"
    members = [member.member_id + (f"={member.metadata.decode()}" * bool(member.metadata)) for member in answer.members]
    text = f"{answer.member_id} in generation {answer.generation_id}, {answer.protocol_name}, leader {answer.leader}"
    return text + (f", members {' '.join(members)}" * bool(members)) + (", skip assignment" * answer.skip_assignment)


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_script_prints_its_expected_output(path: Path) -> None:
    assert goldenscript.run(path, Session().execute) == path.read_text(encoding="utf-8")


def test_there_are_scripts() -> None:
    assert list(SCRIPTS.glob("*.txt"))
