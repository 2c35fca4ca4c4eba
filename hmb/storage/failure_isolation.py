"""Isolation: an error in one log, group or transaction does not stop the work on the others.

Housekeeping is work that the broker repeats regularly, for example compaction. Each round of housekeeping visits all
logs, all groups or all transactions. If an error in one log ended the whole round, one truncated segment would prevent
the compaction of all topics. So an error ends only the work on one log, group or transaction. The broker logs the
error, and repeats this work in the next round.

The check of a log can take a long time, and so can a compaction. When the broker stops, it must end such work early. To
do so, the broker sets a `threading.Event`. The threads that do the work look at this event often. If the event is set,
they raise `Stopped`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hmb.protocol.errors import KafkaError

NO_STOP = threading.Event()  # an event that is never set, for callers that never stop the work early


class Stopped(Exception):
    """The error that ends a check or a compaction early, because the broker stops.

    The broker repeats this work after its next start.
    """


@contextmanager
def isolated(logger: logging.Logger, name: object, what: str) -> Iterator[None]:
    """If the `with` block raises an exception, log `name: what: error`, and continue after the block.

    KafkaError and OSError are expected errors. Any other exception is an internal error, and is logged with its
    traceback.
    """
    try:
        yield
    except (KafkaError, OSError) as error:
        logger.error("%s: %s: %s", name, what, error)
    except Exception:
        logger.exception("%s: %s", name, what)
