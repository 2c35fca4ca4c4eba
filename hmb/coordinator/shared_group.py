"""A group as threads see it: its lock, its waiting requests, its journal.

The state machine (classic_group.py, consumer_group.py) only says what should happen; `step` makes it happen. Under the
lock it lets the group change and the time pass, and the answers that come of it wake the threads that wait for them,
each in its own connection. A record takes its place in the journal under the lock, so that the newest one is the
truth, and is written outside of it, because that takes as long as a disk takes to sync.

An empty group may change its kind: what has the lock, the timer's attention and a place in the table stays this one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from hmb.coordinator.classic.group import ClassicGroup
from hmb.coordinator.classic.members import Call
from hmb.coordinator.group import Group, Write
from hmb.coordinator.group_timer import GroupTimer, monotonic_ms
from hmb.coordinator.journal import Journal, Pending
from hmb.coordinator.modern.group import ConsumerGroup
from hmb.protocol.errors import ErrorCode, KafkaError

LOGGER = logging.getLogger(__name__)
LOOK_AGAIN = 5.0  # seconds: how often one that waits sees whether its client is still there
Outcome = TypeVar("Outcome")
Place: TypeAlias = Pending | KafkaError  # a record's in the journal, or why it has none


@dataclass(slots=True, eq=False)
class WaitingCall(Call):
    """A JoinGroup or SyncGroup in the thread of its connection."""

    is_client_gone: Callable[[], bool] = lambda: False
    _answered: threading.Event = field(default_factory=threading.Event)
    _answer: Any = None

    def answer(self, response: Any) -> None:
        self._answer = response
        self._answered.set()

    def wait(self) -> Any:
        """The answer. The group's time limits bound the wait; raises NETWORK_EXCEPTION when nobody wants it any more.

        The member stays what it is: its client may come again on another connection, else its session ends.
        """
        while not self._answered.wait(LOOK_AGAIN):
            if self.is_client_gone():
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the client has left while its request waited")
        return self._answer


class SharedGroup:
    """One group."""

    def __init__(
        self, group: Group, journal: Journal, timer: GroupTimer, clock: Callable[[], int] = monotonic_ms
    ) -> None:
        self.group = group
        self.due: int | None = None  # the timer's
        self._journal = journal
        self._timer = timer
        self._clock = clock
        # Guards the group; the timer's lock is taken under it. Nobody holds it while a disk syncs, but whoever deletes
        # the group, or offsets of it.
        self.lock = threading.Lock()

    @property
    def classic(self) -> ClassicGroup:
        """As a group of the classic protocol. Raises GROUP_ID_NOT_FOUND."""
        if not isinstance(self.group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group.group_id} is not a classic group.")
        return self.group

    @property
    def consumer(self) -> ConsumerGroup:
        """As a group of KIP-848's protocol. Raises GROUP_ID_NOT_FOUND."""
        if not isinstance(self.group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group.group_id} is not a consumer group.")
        return self.group

    def check_loaded(self) -> None:
        """With the lock held. Raises COORDINATOR_NOT_AVAILABLE, after which a client tries again: the group was
        deleted, or the broker stops, since it was looked up."""
        if self.group.is_unloaded:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def step(self, change: Callable[[int], Outcome], *, durable: bool = False) -> Outcome:
        """Let the group change, with the time as argument, and see to all that comes of it.

        Raises what `change` raises; with `durable` also why the record could not be written that it called for.
        """
        writes: list[tuple[Write, Place]] = []
        try:
            with self.lock:
                try:
                    outcome = change(self._clock())
                finally:
                    writes = self._settle()
        finally:
            errors = self._write(writes)
        if durable and errors:
            raise errors[0]
        return outcome

    def wake(self) -> None:
        """The timer's call: time has passed."""
        self.step(lambda now: None)

    def unload(self) -> None:
        """Answer all who wait: the broker stops."""
        self.step(lambda now: self.group.unload())

    def _settle(self) -> list[tuple[Write, Place]]:
        """With the lock held: let time pass, hand out answers, say when to be woken.

        Returns what is to be written, each with its place in the journal.
        """
        self.group.tick(self._clock())
        for call, response in self.group.answers:
            assert isinstance(call, WaitingCall)
            call.answer(response)
        self.group.answers.clear()
        self._timer.schedule(self, self.group.next_deadline())
        writes, self.group.writes = self.group.writes, []
        return [(write, self._enqueue(write)) for write in writes]

    def _enqueue(self, write: Write) -> Place:
        try:
            return self._journal.enqueue(self.group.group_id, write.records)
        except KafkaError as error:
            return error

    def _write(self, writes: list[tuple[Write, Place]]) -> list[KafkaError]:
        """Without the lock: write, then take the steps that follow; what went wrong."""
        errors = []
        for write, place in writes:
            if (error := self._try_write(place)) is not None:
                errors.append(error)
            with self.lock:
                write.then(error, self._clock())
                more = self._settle()
            errors += self._write(more)
        return errors

    def _try_write(self, place: Place) -> KafkaError | None:
        try:
            if isinstance(place, KafkaError):
                raise place
            self._journal.write(place)
        except KafkaError as error:
            LOGGER.error("group %s: its state could not be written: %s", self.group.group_id, error.message)
            return error
        except Exception:  # a fault of ours: members must not wait for ever all the same
            LOGGER.exception("group %s: its state could not be written", self.group.group_id)
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return None
