"""The start deadline: if processors do not register in time, the runner replaces the workers that run them.

The runner cannot tell whether a worker hangs or only starts slowly, for example on a busy machine. Suppose that the
time limit was fixed and too short. The runner would then replace a slow worker again and again, each time before the
worker could register, and the topology would never start. So each replacement doubles the limit. In this example,
workers need 5 s to start, and the first limit is 1 s:
    at 0 s    the workers start           limit 1 s
    at 1 s    first replacement           limit 2 s
    at 3 s    second replacement          limit 4 s
    at 7 s    third replacement           limit 8 s
    at 12 s   all processors have registered
"""

from __future__ import annotations

from hmb.hailstorm.master import MasterPhase, MasterState

LONGEST_LIMIT = 60.0  # seconds; `StartDeadline` doubles its time limit up to this length


class StartDeadline:
    """Decides when a runner replaces the workers of processors that take too long to register.

    All processors must register in the phase Initialize, when a topology starts or recovers.

    limit   how long (s) the runner waits for the registration before it replaces workers

    The first limit is `start_timeout` (s). Each replacement doubles the limit, up to LONGEST_LIMIT. If
    `start_timeout` is longer than LONGEST_LIMIT, the limit does not change. After the phase Initialize, the limit
    is `start_timeout` again.
    """

    def __init__(self, start_timeout: float) -> None:
        self.limit = self._start_timeout = start_timeout
        self._epoch: int | None = None  # the epoch's number in the phase Initialize; None in all other phases
        self._since = 0.0  # the time (s) at which the current time limit began

    def has_passed(self, master: MasterState | None, now: float) -> bool:
        """Return whether the time limit for the registration of the processors has passed.

        If the limit has passed, the method also begins a new limit at the time `now` (s). `master` is the newest
        decision of the negotiator: the phase and the epoch of the topology.
        """
        if master is None or master.phase is not MasterPhase.INITIALIZE:
            self._epoch, self.limit = None, self._start_timeout
            return False
        if master.epoch != self._epoch:
            self._epoch, self._since = master.epoch, now
            return False
        if now - self._since <= self.limit:
            return False
        self._since = now
        self.limit = min(2 * self.limit, max(LONGEST_LIMIT, self._start_timeout))
        return True
