"""The loop of one processor: take input from the mailbox, call the processor's state machine, send its outbox.

Each processor (a spout, bolt or sink) has a thread and a *state machine*. Other threads put input for the state
machine into a queue, the *mailbox* of the processor.

The *negotiator* controls all processors. It writes its decision, the *master state*, into a *registry*. The
processors write reports into the same registry.

The thread of a processor repeats four steps:
    1. Take the next item from the mailbox: tuples from another processor, a new master state, or the result of
       saving the state. If the mailbox is empty, a spout that is not paused reads records from its partition.
    2. Pass the item to the state machine. If a master state starts the topology again, create a new state
       machine first.
    3. Send the outputs of the state machine to the next processors. Send dead letters (records that a spout
       could not convert) to their topic. If the state machine asks to save its state, begin to save it in the
       background.
    4. If the report of the processor has changed, write it into the registry.

A restart cannot repair some errors, for example a mistake in the user's code. The processor writes an error
of this kind into its report, as the `failure`. The negotiator then ends the topology.

A temporary error ends only the thread of one processor, for example of a sink that cannot reach its database.
The negotiator then begins a new epoch (a new start of the topology), and the runner restarts the processor.

Some sinks keep their outputs in memory, and write the last outputs only when the topology has ended. If this
write fails, the exception ends the thread. The processor is not started again, because the topology has already
ended. The runner reports the exception as the error of the run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hmb.client import Producer
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import CodecError, HailstormError, StaleEpochError
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.processors.bolts import BoltMachine
from hmb.hailstorm.processors.participant import Machine, Participant
from hmb.hailstorm.processors.spouts import SpoutMachine
from hmb.hailstorm.registry import Registry, RegistrySession, SessionExpiredError
from hmb.hailstorm.registry.sessions import LIVING, MASTER, session_expired
from hmb.hailstorm.runners.figures import figures_of
from hmb.hailstorm.runners.settings import RunSettings
from hmb.hailstorm.runners.transport.mailbox import SaveNotice
from hmb.hailstorm.runners.transport.partition_reader import PartitionReader
from hmb.hailstorm.runners.transport.post import BrokenChannelError, Post
from hmb.hailstorm.runners.warning_interval import WarningInterval
from hmb.hailstorm.snapshots import SnapshotStore
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Processor, Processors

LOGGER = logging.getLogger(__name__)
FIGURES_INTERVAL = 0.5  # seconds between two updates of the processor's figures, for example the length of its queue
IDLE_TIMEOUT = 0.25  # the longest time (s) that a processor waits for work before it checks its session
NODE_TIMEOUT = 30.0  # the longest time (s) that a restarted processor waits until the registry removes its old node


class ProcessorThread(threading.Thread):
    """Runs one processor until the topology ends, the processor crashes, or `stop` is called.

    error       the exception that ended the thread, or None
    has_ended   whether the topology has ended; the runner does not start this processor again
    """

    def __init__(
        self,
        processors: Processors,
        processor: Processor,
        settings: RunSettings,
        store: SnapshotStore,
        registry: Registry,
        post: Post,
        address: tuple[str, int] | None = None,
    ) -> None:
        super().__init__(name=f"hailstorm-{processor.name}", daemon=True)
        self.error: Exception | None = None
        self.has_ended = False
        self._processor, self._settings, self._store, self._post = processor, settings, store, post
        self._registry = registry
        self._mailbox = post.open_mailbox(processor.name)
        self._participant = Participant(processors, processor, store, self._first_offset, address)
        self._session: RegistrySession | None = None
        self._reader: PartitionReader | None = None
        self._dead_letters: Producer | None = None
        # With this field, `_observe` notices that the processor has a new state machine. A spout's reader must then
        # move to the position of the new state machine.
        self._machine: Machine | None = None
        self._saving: Any = None  # the `SaveRequest` that a saver thread is processing, or None
        self._published: Report | None = None
        self._figures_at = self._record_at = 0.0
        self._late_warnings, self._dead_warnings = WarningInterval(), WarningInterval()
        self._failure: str | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Make the thread end soon, without a last snapshot."""
        self._is_stopped = True
        self._mailbox.close()

    def run(self) -> None:
        try:
            self._register()
            while not self.has_ended and not self._is_stopped:
                self.step()
        except Exception as error:  # The runner reports the error, and starts the processor again.
            self.error = error
            LOGGER.debug("%s crashed", self._processor.name, exc_info=True)
        finally:
            self._release()

    def step(self) -> None:
        """Process the next item from the mailbox, send the outputs, and publish this processor's report.

        If the mailbox is empty, a running spout reads records from its partition instead.
        """
        work = self._next_work()
        try:
            self._do(work)
        except StaleEpochError:
            raise
        except HailstormError as error:
            if isinstance(error, SessionExpiredError) or self.has_ended:
                raise
            LOGGER.debug("%s", error)  # The runner reports the error to the user.
            self._failure = str(error)
        self._flush()

    # -- the four steps

    def _next_work(self) -> Callable[[], None] | None:
        """Return a function that does the next work of this processor, or None if there is no work.

        The work is to process the next item from the mailbox. If the mailbox is empty, a running spout reads records
        instead. In all other cases, the method waits at most IDLE_TIMEOUT seconds for an item.
        """
        machine = self._participant.machine
        reads = isinstance(machine, SpoutMachine) and machine.is_flowing and self._failure is None
        item = self._mailbox.take(0.0 if reads else IDLE_TIMEOUT)
        if item is None:
            return self._read if reads else None
        if isinstance(item, MasterState):
            return lambda: self._observe(item)
        if isinstance(item, SaveNotice):
            return lambda: self._end_save(item)
        return lambda: self._receive(item)

    def _do(self, work: Callable[[], None] | None) -> None:
        if work is not None:
            work()

    def _observe(self, master: MasterState) -> None:
        if master.phase is MasterPhase.ENDED:
            self._observe_end(master)
            return
        if self._failure is None:
            self._participant.observe(master)
        machine = self._participant.machine
        if machine is not self._machine:
            self._machine, self._saving = machine, None
            if isinstance(machine, SpoutMachine) and self._reader is not None:
                has_snapshot = master.snapshot is not None and machine.partition in master.snapshot
                self._reader.seek(machine.position, is_first_start=not has_snapshot)
        if master.phase is MasterPhase.INITIALIZE:
            self._failure = None

    def _observe_end(self, master: MasterState) -> None:
        """Let a sink write its last outputs, because the topology has ended.

        Raises HailstormError if the processor has failed, or if the sink does not write its last outputs.
        """
        self.has_ended = True
        name = self._processor.name
        if self._failure is not None:
            raise HailstormError(self._failure)
        if self._participant.machine is None and master.completed is not None and self._processor.holds_outputs:
            raise HailstormError(
                f"{name} crashed after the last snapshot, but the topology writes any missing outputs at its next start"
            )
        try:
            self._participant.observe(master)
        except Exception as error:
            why = error if isinstance(error, HailstormError) else f"{name}: {type(error).__name__}: {error}"
            raise HailstormError(
                f"the last outputs are not written, but the topology writes them at its next start: {why}"
            ) from error

    def _receive(self, payloads: Payloads) -> None:
        machine = self._participant.machine
        if machine is not None and not isinstance(machine, SpoutMachine) and self._failure is None:
            machine.receive(payloads)

    def _read(self) -> None:
        """Pass new records to the spout's state machine.

        If the partition is idle, or if the spout has read a bounded topic to its end, report this to the state machine.
        """
        machine, reader = self._participant.machine, self._reader
        assert isinstance(machine, SpoutMachine) and reader is not None
        records, next_offset = reader.poll()
        now = time.monotonic()
        if records:
            self._record_at = now
        elif now - self._record_at > machine.spout.idle_after:
            machine.idle()
        machine.take(records, next_offset)
        machine.report.is_at_end = reader.is_at_end(machine.position)

    def _end_save(self, notice: SaveNotice) -> None:
        if notice.machine is not self._participant.machine:
            return
        self._saving = None
        if isinstance(notice.error, StaleEpochError):
            raise notice.error  # A newer epoch has begun, so this processor must not continue.
        if notice.error is not None:
            LOGGER.warning("%s", notice.error)
        notice.machine.saved(notice.clock, str(notice.error) if notice.error else None)

    def _flush(self) -> None:
        machine = self._participant.machine
        if machine is not None:
            outbox = machine.outbox
            try:
                for receiver, payloads in outbox:
                    self._post.deliver(receiver, payloads, self._is_obsolete)
            except BrokenChannelError as error:
                LOGGER.info("%s stops until the topology begins a new epoch: %s", self._processor.name, error)
                self._participant.leave()
            outbox.clear()
            if isinstance(machine, SpoutMachine):
                self._send_dead_letters(machine)
                self._name_late(machine)
            elif isinstance(machine, BoltMachine):
                self._name_late_tuples(machine)
            if machine.save is not None and machine.save is not self._saving:
                self._begin_save(machine)
        self._publish()

    def _is_obsolete(self) -> bool:
        """Return whether this processor must not send its payloads any more.

        This is so if a newer epoch of the topology has begun, or if this thread has to stop.
        """
        return self._is_stopped or self._mailbox.newest_epoch > self._participant.report.epoch

    # -- saving

    def _begin_save(self, machine: Machine) -> None:
        self._saving = machine.save
        clock, state = machine.save  # type: ignore[misc]
        name = f"hailstorm-saver-{machine.name}"
        threading.Thread(target=self._save, args=(machine, clock, state), name=name, daemon=True).start()

    def _save(self, machine: Machine, clock: Clock, state: Any) -> None:
        """Encode and store a state. A separate saver thread calls this method."""
        error: Exception | None = None
        try:
            self._store.save(machine.epoch, machine.name, clock, encode(state.to_value()))
        except CodecError as caught:
            error = CodecError(f"the state of {machine.name} cannot be stored: {caught}")
        except Exception as caught:  # noqa: BLE001  # The processor's thread gets every exception in the notice.
            error = caught
        self._mailbox.notify(SaveNotice(machine, clock, error))

    # -- spouts

    def _first_offset(self) -> int:
        assert self._reader is not None
        return self._reader.first_offset()

    def _send_dead_letters(self, machine: SpoutMachine) -> None:
        """Send the new dead letters to the dead-letter topic, and wait for the acknowledgments.

        A dead letter is a record for which `convert` raised an exception.
        """
        topic = machine.spout.dead_letters
        if not machine.dead_letters or topic is None:
            return
        if self._dead_letters is None:
            settings = self._settings
            self._dead_letters = Producer(
                settings.bootstrap_servers, client_id="hailstorm", security=settings.security
            )
        deliveries = []
        for record, error in machine.dead_letters:
            headers = [
                *record.headers,
                ("hailstorm.origin", f"{machine.partition}@{record.offset}".encode()),
                ("hailstorm.error", f"{type(error).__name__}: {error}".encode()),
            ]
            deliveries.append(self._dead_letters.send(topic, record.value, record.key, headers=headers))
        for delivery in deliveries:
            delivery.result()
        record, error = machine.dead_letters[-1]
        machine.dead_letters.clear()
        if self._dead_warnings.is_due():
            LOGGER.warning(
                "%d records of the partition %s could not be converted and were sent to the topic %s. "
                "The last of these records, at offset %d of the source partition, caused the error %s: %s",
                machine.dead_count, machine.partition, topic, record.offset, type(error).__name__, error,
            )  # fmt: skip

    def _name_late(self, machine: SpoutMachine) -> None:
        if machine.late:
            offset, time_of_record = machine.late[-1]
            machine.late.clear()
            if self._late_warnings.is_due():
                LOGGER.warning(
                    "%d records of %s are late and are left out. "
                    "The last late record has offset %d and event time %d ms",
                    machine.late_count, machine.partition, offset, time_of_record,
                )  # fmt: skip

    # -- bolts

    def _name_late_tuples(self, machine: BoltMachine) -> None:
        late, machine.last_late = machine.last_late, None
        if late is not None and self._late_warnings.is_due():
            LOGGER.warning(
                "%s: %d tuples arrived after their windows had closed, and were left out. The last of these tuples "
                "was %.200r. If a partition often has no new records for some time, increase the option `idle_after` "
                "of its spout, so that windows stay open longer",
                machine.name, machine.state.late, late,
            )  # fmt: skip

    # -- the registry

    def _register(self) -> None:
        """Create this processor's node in the registry, and begin to receive the negotiator's commands."""
        name = self._processor.name
        spout = self._processor.node.runs
        if self._processor.partition is not None and isinstance(spout, Spout):
            self._reader = PartitionReader(self._processor.partition, spout, self._settings)
        self._session = self._registry.join(name)
        deadline = time.monotonic() + NODE_TIMEOUT
        while not self._session.create(LIVING + name, encode(self._participant.report.to_value())):
            if time.monotonic() > deadline or self._is_stopped:
                raise SessionExpiredError(f"the registry still contains the node of another processor named {name}")
            time.sleep(0.02)
        self._session.watch(MASTER, self._watch_master)

    def _watch_master(self, path: str, value: bytes | None) -> None:
        if value is not None:
            self._mailbox.notify(MasterState.from_value(decode(value)))

    def _publish(self) -> None:
        """Write this processor's report into the registry if the report has changed.

        If the figures in the report are older than FIGURES_INTERVAL seconds, or if the topology has ended, the method
        updates the figures first.

        Raises SessionExpiredError if the registry session has ended, but the topology has not. The processor must then
        stop, because it receives no more commands.
        """
        assert self._session is not None
        if not self._session.is_alive and not self.has_ended:
            raise session_expired(self._processor.name)
        report = self._participant.report
        report.failure = self._failure
        now = time.monotonic()
        if now - self._figures_at > FIGURES_INTERVAL or self.has_ended:
            self._figures_at = now
            report.figures = figures_of(self._participant.machine, len(self._mailbox))
        if report != self._published:
            self._session.write(LIVING + self._processor.name, encode(report.to_value()))
            self._published = replace(report)

    def _release(self) -> None:
        """End the session with the registry, and close everything else that this processor has opened.

        The registry then removes the entry of this processor. The negotiator, which controls all processors,
        sees the removal, and so learns that the processor has ended.
        """
        self._mailbox.close()
        if self._session is not None:
            self._session.close()
        for resource in (self._participant, self._reader, self._dead_letters):
            if resource is not None:
                try:
                    resource.close()
                except (OSError, TimeoutError, HailstormError) as error:
                    LOGGER.debug("%s: %s", self._processor.name, error)
