"""Isolation: an error in one log, group or transaction does not stop the work on the others.

Housekeeping goes through all logs, all groups or all transactions, again and again. An error in one of them must not
end the round. For example, one truncated segment would prevent the compaction of all topics. So an error ends
only the work on one log, group or transaction. The broker reports the error, and the next round tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from hmb.protocol.errors import KafkaError


@contextmanager
def isolated(logger: logging.Logger, name: object, what: str) -> Iterator[None]:
    """Log an error in the `with` block as `name: what: error`, and continue after the block.

    An internal error, any exception but KafkaError and OSError, is reported with its traceback.
    """
    try:
        yield
    except (KafkaError, OSError) as error:
        logger.error("%s: %s: %s", name, what, error)
    except Exception:
        logger.exception("%s: %s", name, what)
