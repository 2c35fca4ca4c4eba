"""The exit code of HMB's load programs: an error of the broker or of the network is one line, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

from hmb.protocol.errors import KafkaError


def exit_code_of(work: Callable[[], None]) -> int:
    """Run `work`, and return 0. After a KafkaError or an OSError, print the error and return 1."""
    try:
        work()
    except (KafkaError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0
