"""Runs the steps of one group. The threads of many connections share the group, so each step takes the group's lock.

A group is a state machine (classic/group.py, consumer/group.py): it computes the responses, and the records
to write. Each connection has its own thread. If a request changes the members or the state of a group, the
thread of the connection calls `GroupRunner.step`:
1. `step` takes the group's lock and changes the group. It also handles the deadlines that have passed.
2. `step` still holds the lock. It wakes the threads whose responses are ready, and adds the records to the
   journal's queue. The records are therefore in the same order as the changes.
3. `step` releases the lock, and then writes the records to disk. Meanwhile, other threads can use the group.

Two requests do not need `GroupRunner.step`: the heartbeat of a classic group, and the commit of offsets. They
change only one thing in the group, the time at which a member's session expires. (The committed offsets are not
in the group, but in `OffsetManager`.) So the thread that handles such a request only takes the group's lock.

For example, the clients A and B join. The thread of A's connection takes the lock, adds member A to the group, releases
the lock and waits for its response. The thread of B's connection takes the lock and adds member B. All members have
joined, so this thread wakes the thread of A's connection, and both threads send their responses.

A group can change its protocol while it has no members, or during an online migration (migration/). The
`GroupRunner` of the group stays the same, and gets a new state machine. The group therefore keeps everything
that belongs to the runner: the lock, the place in the table of groups, and the time at which the timer wakes
the group.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from hmb.coordinator.classic.members import Call
from hmb.coordinator.group import Group, Write
from hmb.coordinator.group_timer import GroupTimer
from hmb.coordinator.journal.partition import QueuedRecords
from hmb.coordinator.journal.writing import Journal
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.storage.clock import monotonic_ms
from hmb.storage.events import EventKind, EventLog

LOGGER = logging.getLogger(__name__)
CLIENT_CHECK_INTERVAL = 5.0  # seconds between two checks whether a waiting client is still connected
Outcome = TypeVar("Outcome")
GroupT = TypeVar("GroupT", bound=Group)
Queued: TypeAlias = QueuedRecords | KafkaError  # a queued write, or the error that prevents it


@dataclass(slots=True, eq=False)
class WaitingCall(Call):
    """A JoinGroup or SyncGroup request that waits for its response. The thread of the client's connection calls `wait`.

    If the group accepts the request, the group answers it exactly once, even if the client has disconnected.
    """

    is_client_gone: Callable[[], bool] = lambda: False
    _has_response: threading.Event = field(default_factory=threading.Event)
    _response: Any = None

    def respond(self, response: Any) -> None:
        self._response = response
        self._has_response.set()

    def wait(self) -> Any:
        """Wait for the response and return it.

        No timeout is necessary here. The group has deadlines, so it answers each request after a limited time.

        Raises NETWORK_EXCEPTION if the client has disconnected. The client stays a member of the group until its
        session expires, because it can connect again.
        """
        while not self._has_response.wait(CLIENT_CHECK_INTERVAL):
            if self.is_client_gone():
                raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the client disconnected while its request waited")
        return self._response


class GroupRunner:
    """Runs the steps of one group, sends the responses and writes the records. Thread-safe.

    Only one step changes the group at a time. `machine` is the state machine of the group: a `ClassicGroup`, a
    `ConsumerGroup`, a `ShareGroup` or a `StreamsGroup`.

    While no thread holds the group's lock, these statements are true:

    - The lists `responses`, `writes` and `event_texts` of the machine are empty. Each step empties these lists
      before it releases the lock.
    - If the group has a deadline, `due` is the time (ms) at which the timer wakes the group. `due` is never later
      than the deadline.
    - Each request without a response waits in a `WaitingCall`. The wait is limited: the group answers the request
      at the latest when a deadline passes or a write ends.
    """

    def __init__(
        self,
        machine: Group,
        journal: Journal,
        timer: GroupTimer,
        clock: Callable[[], int] = monotonic_ms,
        events: EventLog | None = None,
    ) -> None:
        self.machine = machine
        self._events = EventLog() if events is None else events
        self.due: int | None = None  # the time (ms) of the next wake-up; only the timer changes it
        self._journal = journal
        self._timer = timer
        self._clock = clock
        # This lock guards the group's state machine and all fields of the machine. Each lock of the broker has a number
        # in docs/tour/locks.md. A thread that holds this lock takes only locks with greater numbers. A thread does not
        # wait for the disk while it holds this lock, except when it deletes the group or the group's offsets.
        self.lock = threading.Lock()

    def as_kind(self, kind: type[GroupT]) -> GroupT:
        """Return the state machine. Raises GROUP_ID_NOT_FOUND if its class is not `kind` (e.g. `ClassicGroup`)."""
        if not isinstance(self.machine, kind):
            why = f"Group {self.machine.group_id} is not a {kind.kind} group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, why)
        return self.machine

    def check_loaded(self) -> None:
        """Raise COORDINATOR_NOT_AVAILABLE if the group no longer exists. The caller must hold the group's lock.

        A thread finds the group in the table of groups, and then takes the group's lock. Between these two steps,
        another thread can delete the group. The client sends its request again after this error.
        """
        if self.machine.is_unloaded:
            why = f"group {self.machine.group_id!r} was deleted a moment ago; try again"
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)

    def step(self, change: Callable[[int], Outcome], *, durable: bool = False) -> Outcome:
        """Run `change` under the group's lock, then send responses and write records. Return the result of `change`.

        `change` receives the time in ms. This method raises the errors of `change`. If `durable` is true, this method
        also raises an error if a record could not be written.
        """
        writes: list[tuple[Write, Queued]] = []
        try:
            with self.lock:
                try:
                    outcome = change(self._clock())
                finally:
                    writes = self._carry_out_effects()
        finally:
            errors = self._store_records(writes)
        if durable and errors:
            raise errors[0]
        return outcome

    def wake(self) -> None:
        """If a deadline of the group has passed, act on this deadline. The timer calls this method."""
        self.step(lambda now: None)

    def replace(self, machine: Group) -> None:
        """Replace the state machine of the group, because the group changes its protocol.

        The caller must hold the group's lock.

        The old state machine may contain responses, records and events that the `GroupRunner` has not processed yet.
        This method copies them to the new state machine. They are processed before the responses, records and events
        of the new state machine.
        """
        machine.responses[:0] = self.machine.responses
        machine.writes[:0] = self.machine.writes
        machine.event_texts[:0] = self.machine.event_texts
        self.machine = machine

    def unload(self) -> None:
        """Answer the group's waiting requests with an error, because the broker stops or has removed the group."""
        self.step(lambda now: self.machine.unload())

    def _carry_out_effects(self) -> list[tuple[Write, Queued]]:
        """After a change of the group, send responses, queue records and set the timer.

        Before that, the method handles deadlines that have passed, for example the end of a member's session. The
        caller must hold the group's lock.

        Return one pair for each `Write`: the `Write` and its queued records. If the journal did not accept the
        records, the pair contains the error instead.
        """
        self.machine.tick(self._clock())
        if self.machine.successor is not None:
            self.replace(self.machine.successor)
        for call, response in self.machine.responses:
            assert isinstance(call, WaitingCall)
            call.respond(response)
        self.machine.responses.clear()
        for text in self.machine.event_texts:
            self._events.add(EventKind.GROUP, f"group {self.machine.group_id}: {text}", LOGGER)
        self.machine.event_texts.clear()
        self._timer.schedule(self, self.machine.next_deadline())
        writes = self.machine.writes.copy()
        self.machine.writes.clear()
        return [(write, self._enqueue(write)) for write in writes]

    def _enqueue(self, write: Write) -> Queued:
        try:
            return self._journal.enqueue(self.machine.group_id, write.records)
        except KafkaError as error:
            return error

    def _store_records(self, writes: list[tuple[Write, Queued]]) -> list[KafkaError]:
        """Write the queued records to disk, and call `on_stored` of each `Write` after its records were written.

        The thread does not hold the group's lock while it writes to disk. If a write fails, `on_stored` receives the
        error. Return the errors of all failed writes.
        """
        errors = []
        for write, queued in writes:
            if (error := self._try_store(queued)) is not None:
                errors.append(error)
            with self.lock:
                write.on_stored(error, self._clock())
                more = self._carry_out_effects()
            errors += self._store_records(more)
        return errors

    def _try_store(self, queued: Queued) -> KafkaError | None:
        try:
            if isinstance(queued, KafkaError):
                raise queued
            self._journal.write(queued)
        except KafkaError as error:
            LOGGER.error("group %r: its state could not be written: %s", self.machine.group_id, error.message)
            return error
        except Exception:  # After an internal error, the members must not wait forever.
            LOGGER.exception("group %r: its state could not be written", self.machine.group_id)
            return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return None
