"""The long poll: a request for records waits in the broker until records arrive, or until its maximum wait is over.

Without long polls, a consumer that has read all records would have to send requests again and again. The handlers of
Fetch and ShareFetch both call the function `long_poll`. For each request, the handler creates an object (`Poll`) that
collects the records.

For example, a Fetch asks for the records from offset 42 on, and the last record of the log has the offset 41. The
thread of the request reads the log (`collect`), and finds no record. The thread adds a watcher to the log, calls
`collect` again, and waits. When a producer appends record 42, the log wakes the thread, and the thread collects this
record.

The thread of a request reads the log (`collect`) a second time after it has added its watcher. Otherwise the thread
could miss a record: a producer can append the record after the first call of `collect`, but before the thread adds its
watcher.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from hmb.broker.context import RequestContext
from hmb.storage.watchers import Watcher, Watchers

LOG_CHECK_INTERVAL = 1.0  # seconds between two checks of the logs by a waiting request
NO_RECORDS = memoryview(b"")  # the value of the field `records` if the response contains no records of a partition


class Poll(Protocol):
    """Collects the records for one request."""

    @property
    def is_satisfied(self) -> bool:
        """True if the response is ready, for example because it contains enough records or an error."""

    @property
    def watched(self) -> Iterable[Watchers]:
        """The objects that can wake the thread of a waiting request, for example after an append to a log.

        The thread must register in each of these `Watchers` objects. For example, each log has a `Watchers` object. An
        append to the log wakes all threads that are registered in this object.

        Each call of the method `collect` can add objects. For example, a share-partition is not available until its
        state is loaded. The next call of `collect` finds the share-partition, and adds its `Watchers` object.
        """

    def collect(self) -> None:
        """Read the records that exist now."""


def long_poll(poll: Poll, max_wait_ms: int, context: RequestContext) -> None:
    """Collect records until the response is ready. Wait at most `max_wait_ms` ms for new records."""
    max_wait = min(max_wait_ms, context.broker.config.limits.max_idle) / 1000
    deadline = time.monotonic() + max_wait
    poll.collect()
    if not poll.is_satisfied and max_wait > 0:
        _wait(poll, deadline, context)


def _wait(poll: Poll, deadline: float, context: RequestContext) -> None:
    stop, account = context.broker.stop, context.account
    always = [stop.watchers] if account.watchers is None else [stop.watchers, account.watchers]
    watcher, watched = Watcher(), set[Watchers]()
    try:
        while True:
            if new := [each for each in (*poll.watched, *always) if each not in watched]:
                for watchers in new:
                    watchers.add(watcher)
                watched.update(new)
            else:
                watcher.wait(min(deadline - time.monotonic(), LOG_CHECK_INTERVAL))
            # Another thread can append records just before this thread registers with `watchers.add`. The append then
            # does not wake this thread. So this thread reads the logs again before it waits.
            poll.collect()
            is_over = time.monotonic() >= deadline or stop.requested.is_set() or context.client.is_gone()
            if poll.is_satisfied or is_over or account.is_wanted:
                return
    finally:
        for watchers in watched:
            watchers.discard(watcher)
