"""One group, shared by the threads of many connections: its lock, its waiting requests and its journal.

The state machine (classic/group.py, modern/group.py) decides what must happen, and `SharedGroup.step` carries it out.
Under the lock, a step changes the group, applies passed deadlines, and wakes the threads whose responses are ready.
Each thread belongs to one connection. Under the lock, the step also adds records to the journal's queue, so that their
order is the order of the changes. It writes them after it has released the lock, because a sync takes milliseconds.

For example, members A and B join. The thread of A takes the lock, adds A to the group, releases the lock and waits for
an event. The thread of B adds B and completes the rebalance. Its step wakes A's thread, and both send their responses.

An empty group can change its protocol. The lock and the position in the timer and in the table then stay the same.
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
from hmb.coordinator.group_timer import GroupTimer
from hmb.coordinator.journal.partition import Pending
from hmb.coordinator.journal.writing import Journal
from hmb.coordinator.modern.group import ConsumerGroup
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.clock import monotonic_ms

LOGGER = logging.getLogger(__name__)
LOOK_AGAIN = 5.0  # seconds between two checks whether a waiting client is still connected
Outcome = TypeVar("Outcome")
Queued: TypeAlias = Pending | KafkaError  # a queued write, or the error that prevents it


@dataclass(slots=True, eq=False)
class WaitingCall(Call):
    """A JoinGroup or SyncGroup request that waits in the thread of its connection."""

    is_client_gone: Callable[[], bool] = lambda: False
    _answered: threading.Event = field(default_factory=threading.Event)
    _answer: Any = None

    def answer(self, response: Any) -> None:
        self._answer = response
        self._answered.set()

    def wait(self) -> Any:
        """Wait for the response and return it. The deadlines of the group limit the wait.

        Raises NETWORK_EXCEPTION if the client has disconnected. The member stays in the group until its session ends,
        because its client can connect again.
        """
        while not self._answered.wait(LOOK_AGAIN):
            if self.is_client_gone():
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the client has left while its request waited")
        return self._answer


class SharedGroup:
    """One group with its lock and its journal."""

    def __init__(
        self, group: Group, journal: Journal, timer: GroupTimer, clock: Callable[[], int] = monotonic_ms
    ) -> None:
        self.group = group
        self.due: int | None = None  # the time (ms) of the next wake-up; guarded by the timer
        self._journal = journal
        self._timer = timer
        self._clock = clock
        # This lock guards the group. A thread that holds it can take the timer's lock. No thread holds the group's
        # lock while the journal writes to the disk (fsync), except a thread that deletes the group or its offsets.
        self.lock = threading.Lock()

    @property
    def classic(self) -> ClassicGroup:
        """The group, if it uses the classic protocol. Raises GROUP_ID_NOT_FOUND otherwise."""
        if not isinstance(self.group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group.group_id} is not a classic group.")
        return self.group

    @property
    def consumer(self) -> ConsumerGroup:
        """The group, if it uses KIP-848's protocol. Raises GROUP_ID_NOT_FOUND otherwise."""
        if not isinstance(self.group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group.group_id} is not a consumer group.")
        return self.group

    def check_loaded(self) -> None:
        """Check that the group was not deleted after its look-up. The caller holds the lock.

        Raises COORDINATOR_NOT_AVAILABLE, which makes the client retry.
        """
        if self.group.is_unloaded:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def step(self, change: Callable[[int], Outcome], *, durable: bool = False) -> Outcome:
        """Change the group and carry out all effects. `change` receives the time (ms).

        Raises as `change` does. With `durable`, also raises the error of a record that could not be written.
        """
        writes: list[tuple[Write, Queued]] = []
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
        """Apply the deadlines that have passed. The timer calls this method."""
        self.step(lambda now: None)

    def unload(self) -> None:
        """Answer all waiting requests, because the broker stops."""
        self.step(lambda now: self.group.unload())

    def _settle(self) -> list[tuple[Write, Queued]]:
        """Apply deadlines, wake waiting threads and schedule the timer. The caller holds the lock.

        Return the queued writes.
        """
        self.group.tick(self._clock())
        for call, response in self.group.answers:
            assert isinstance(call, WaitingCall)
            call.answer(response)
        self.group.answers.clear()
        self._timer.schedule(self, self.group.next_deadline())
        writes, self.group.writes = self.group.writes, []
        return [(write, self._enqueue(write)) for write in writes]

    def _enqueue(self, write: Write) -> Queued:
        try:
            return self._journal.enqueue(self.group.group_id, write.records)
        except KafkaError as error:
            return error

    def _write(self, writes: list[tuple[Write, Queued]]) -> list[KafkaError]:
        """Write the queued records without the lock, then run the next steps. Return the errors."""
        errors = []
        for write, queued in writes:
            if (error := self._try_write(queued)) is not None:
                errors.append(error)
            with self.lock:
                write.then(error, self._clock())
                more = self._settle()
            errors += self._write(more)
        return errors

    def _try_write(self, queued: Queued) -> KafkaError | None:
        try:
            if isinstance(queued, KafkaError):
                raise queued
            self._journal.write(queued)
        except KafkaError as error:
            LOGGER.error("group %s: its state could not be written: %s", self.group.group_id, error.message)
            return error
        except Exception:  # The members must not wait forever after an internal error.
            LOGGER.exception("group %s: its state could not be written", self.group.group_id)
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return None
