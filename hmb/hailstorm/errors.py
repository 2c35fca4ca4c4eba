"""The errors of Hailstorm: each names the processor or the file, what is wrong, and what to do.

A user's mistake, a lost record and an internal error are different types, so that a runner knows what to do:

- `TopologyError`: the topology is wrong, or does not match its snapshots or its topics. A restart does not help.
- `UserCodeError`: a function of the topology raised. The same record would raise again, so the topology stops.
- `SnapshotError`: a snapshot store is full, unreadable or belongs to another topology.
- `StaleEpochError`: a processor of an older epoch tried to write. The store refuses the write, and the processor ends.
"""

from __future__ import annotations


class HailstormError(Exception):
    """The base class of every error that Hailstorm raises on purpose."""


class TopologyError(HailstormError):
    """A topology that cannot run as it is declared."""


class UserCodeError(HailstormError):
    """A function of the topology raised an exception.

    `processor` is the processor that called the function. The original exception is the cause (`__cause__`).
    """

    def __init__(self, processor: str, function: str, origin: str, cause: BaseException) -> None:
        super().__init__(f"{processor}: {function} raised {type(cause).__name__} for {origin}: {cause}")
        self.processor = processor


class SnapshotError(HailstormError):
    """A snapshot that cannot be saved or loaded."""


class StaleEpochError(HailstormError):
    """An operation of an older epoch is refused, because a newer epoch of the topology has begun."""


class CodecError(HailstormError):
    """A value that cannot be encoded, or bytes that cannot be decoded."""
