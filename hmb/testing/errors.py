"""The exceptions of the tools for tests. `hmb` exports all of them, and `except hmb.HmbError` catches all of them."""

from __future__ import annotations

from hmb.protocol.errors import HmbError


class BrokerNotRunning(HmbError, RuntimeError):
    """An error that a method raises if it needs a running broker, but the broker is not running."""

    def __init__(self) -> None:
        super().__init__("the broker is not running; call start() or restart()")


class FaultError(HmbError, ValueError):
    """An error for an invalid description of a fault that a test injects, for example a negative delay.

    The message names the wrong value.
    """


class NameNotFound(HmbError, ValueError):
    """An error for a wrong API name, or a wrong name of an error code.

    The message suggests a similar name, if one exists.
    """


class RequestsMissing(HmbError, AssertionError):
    """An error of `wait_for`: too few requests came before the timeout. The message names the recorded requests."""
