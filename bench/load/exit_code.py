"""Returns the exit code of a load program: a program that sends or reads records in a benchmark.

After an error of the broker or of the network, a load program prints the error without a traceback, and ends with exit
code 1.
"""

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
