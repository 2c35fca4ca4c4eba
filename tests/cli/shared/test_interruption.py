"""Tests of Ctrl-C during a step of a command: the command waits for the end of the step, up to a time limit."""

import signal
import threading

import pytest

from hmb.cli.shared.interruption import uninterrupted


def test_a_step_is_interrupted_at_its_end() -> None:
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), uninterrupted(60):
        signal.raise_signal(signal.SIGINT)
        done.append("step")
    assert done == ["step"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_step_that_does_not_end_is_interrupted(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), uninterrupted(0.01):
        signal.raise_signal(number)
        threading.Event().wait(30)
        pytest.fail("it was not interrupted")


def test_a_second_ctrl_c_ends_the_command_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), uninterrupted(60):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it was not interrupted")
