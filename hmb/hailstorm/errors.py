"""The errors of Hailstorm: each message names the processor or the file, what is wrong, and what to do.

A runner (the code that runs a topology) must distinguish several kinds of errors. Each kind has its own
exception class.

- `TopologyError`: the topology is wrong, or does not match its snapshots or its topics. A restart does not
  help.
- `UserCodeError`: a function of the user raised an exception. The topology stops, because the function would
  raise the exception again after a restart. A sink does not raise this error if the cause may be temporary, for
  example a database restart. Instead, the runner starts the sink again.
- `SnapshotError`: a snapshot cannot be saved or loaded, for example because the disk is full or a file is
  damaged.
- `StaleEpochError`: a processor of an old *epoch* tried to write. Each start of the topology begins a new
  epoch. The write is refused, and the processor ends.
- `CodecError`: a value cannot be encoded, or bytes cannot be decoded.
"""

from __future__ import annotations

import sqlite3

from hmb.client import KafkaError

# Each database module has its own error classes, but their names come from PEP 249. So HMB compares names. Errors with
# these two names often have a cause outside of the program, for example a lost connection.
DATABASE_OUTAGES = {"OperationalError", "InterfaceError"}
PRIMARY_CODE = 0xFF  # the bits of an SQLite error code that contain the primary code


class HailstormError(Exception):
    """The base class of every error that Hailstorm itself defines and raises."""


class TopologyError(HailstormError):
    """The topology cannot run as the user declared it."""


class UserCodeError(HailstormError):
    """A function that the user wrote for the topology raised an exception.

    `processor` is the name of the processor that called the function. `__cause__` is the exception of the function.
    """

    def __init__(self, processor: str, function: str, origin: str, cause: BaseException) -> None:
        super().__init__(f"{processor}: {function} raised {type(cause).__name__} for {origin}: {cause}")
        self.processor = processor


class SnapshotError(HailstormError):
    """A snapshot cannot be saved or loaded."""


class StaleEpochError(HailstormError):
    """An operation was refused, because the topology has begun a newer epoch than the epoch of the operation."""


class CodecError(HailstormError):
    """A value cannot be encoded, or bytes cannot be decoded."""


def can_pass(error: BaseException) -> bool:
    """Return whether a call that raised `error` may succeed later without a change to the program.

    The function returns True for OSError, for KafkaError, and for the errors OperationalError and InterfaceError of
    a database module. Their cause is often temporary. For example, the database may be restarting.

    SQLite raises OperationalError also for mistakes in a statement, such as "no such table". These errors have the
    code SQLITE_ERROR, and the function returns False for them.
    """
    if isinstance(error, OSError | KafkaError):
        return True
    if getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE == sqlite3.SQLITE_ERROR:
        return False
    return not DATABASE_OUTAGES.isdisjoint(each.__name__ for each in type(error).__mro__)
