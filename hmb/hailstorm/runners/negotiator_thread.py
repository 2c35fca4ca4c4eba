"""The loop of the negotiator: read the registry, take a step, publish the master state.

Several negotiators can run, but only one of them leads the topology. Each negotiator tries to create the
entry `master` in the registry. The negotiator that succeeds is elected, and the others wait until the entry
disappears.

After each change in the registry, the elected negotiator checks whether its next step is possible. Some
steps become necessary without a change: for example, it is time for the next snapshot. Every 50 ms, the
negotiator therefore checks again, even if nothing has changed.
"""

from __future__ import annotations

import logging
import threading
import time

from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.negotiator import EpochStore, Negotiator, NegotiatorSettings, RegistryView
from hmb.hailstorm.registry import Registry, RegistrySession, SessionExpiredError
from hmb.hailstorm.registry.sessions import LIVING, MASTER, session_expired
from hmb.hailstorm.topology import NEGOTIATOR, Processors

LOGGER = logging.getLogger(__name__)
LOOK_INTERVAL = 0.05  # seconds after which the negotiator tries a step, even if no value has changed


class NegotiatorThread(threading.Thread):
    """Runs the negotiator, which leads all processors of a topology, until the topology has ended.

    last        the newest decision that this negotiator has published: the topology's phase, epoch and clocks; or None
    snapshots   the number of snapshots that have become complete
    error       the exception that ended the thread, or None
    """

    def __init__(
        self, processors: Processors, store: EpochStore, registry: Registry, settings: NegotiatorSettings
    ) -> None:
        super().__init__(name="hailstorm-negotiator", daemon=True)
        self.last: MasterState | None = None
        self.error: Exception | None = None
        self.snapshots = 0
        self._processors, self._store, self._registry, self._settings = processors, store, registry, settings
        self._negotiator: Negotiator | None = None
        self._living: dict[str, Report] = {}
        self._changed = threading.Event()
        self._stop_requested = self._is_killed = False
        self._end_error: str | None = None

    @property
    def living(self) -> dict[str, Report]:
        """The newest reports of all living processors."""
        return dict(self._living)

    def waits_for(self) -> list[str]:
        """Return the processors that have not answered in the present phase. The phase ends when all have answered."""
        view = RegistryView(self._living, time.monotonic())
        return [] if self._negotiator is None else self._negotiator.waits_for(view)

    def request_stop(self) -> None:
        """Ask the negotiator to take a last snapshot and to end the topology."""
        self._stop_requested = True
        self._changed.set()

    def end_with(self, error: str) -> None:
        """Ask the negotiator to end the topology with an error, without a last snapshot."""
        self._end_error = error
        self._changed.set()

    def kill(self) -> None:
        """Ask this thread to end, and return at once. Another negotiator can then lead the topology."""
        self._is_killed = True
        self._changed.set()

    def run(self) -> None:
        try:
            while not self._is_killed and not self.has_ended:
                self._serve_a_session()
        except Exception as error:  # The runner reports the error, and starts another negotiator.
            self.error = error
            LOGGER.debug("the negotiator crashed", exc_info=True)

    @property
    def has_ended(self) -> bool:
        """True if this negotiator has published a master state that ends the topology."""
        return self.last is not None and self.last.phase is MasterPhase.ENDED

    def _serve_a_session(self) -> None:
        """Open a session, wait to be elected, and lead the topology until the session or the topology ends."""
        self._living.clear()
        session = self._registry.join(NEGOTIATOR)
        negotiator = self._negotiator = Negotiator(self._processors, self._store, self._settings)
        try:
            session.watch("", self._watch)
            while not self._is_killed and not session.create(MASTER, encode(negotiator.state.to_value())):
                self._wait()
            while not self._is_killed and not self.has_ended:
                if not self.step(negotiator, session):
                    self._wait()
            self._wait_for_the_others()
        except SessionExpiredError as error:
            LOGGER.warning("the negotiator must be elected again: %s", error)
        finally:
            session.close()

    def step(self, negotiator: Negotiator, session: RegistrySession) -> bool:
        """Take one step, publish the decision, and return True. If no step is possible, return False."""
        view = RegistryView(self._living, time.monotonic(), session.is_alive, self._stop_requested)
        try:
            master = negotiator.end_with(self._end_error) if self._end_error else negotiator.step(view)
        except TopologyError as error:  # A topic was created again, or has more partitions.
            master = negotiator.end_with(str(error))
        if master is None:
            return False
        if master.phase is MasterPhase.DISCONNECTED:
            raise session_expired(NEGOTIATOR)
        if master.phase is MasterPhase.INITIALIZE:
            LOGGER.info("epoch %d begins: %s", master.epoch, negotiator.why)
        LOGGER.debug("%s", master)
        session.write(MASTER, encode(master.to_value()))
        self.snapshots += master.completed is not None and master.completed != (self.last and self.last.completed)
        self.last = master
        return True

    def _watch(self, path: str, value: bytes | None) -> None:
        if path.startswith(LIVING):
            name = path.removeprefix(LIVING)
            if value is None:
                self._living.pop(name, None)
            else:
                self._living[name] = Report.from_value(decode(value))
        self._changed.set()

    def _wait(self) -> None:
        self._changed.wait(LOOK_INTERVAL)
        self._changed.clear()

    def _wait_for_the_others(self) -> None:
        """Wait until all processors have left the registry, at most `patience` seconds.

        The negotiator writes each decision into the registry entry `master`. Before a processor ends, it must read the
        last decision. So the negotiator keeps the entry until all processors have left, or until the time is over.
        """
        deadline = time.monotonic() + self._settings.patience
        while self._living and not self._is_killed and time.monotonic() < deadline:
            self._wait()
