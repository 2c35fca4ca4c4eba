"""Tests of the line that a command prints while it waits for a broker."""

import threading

import pytest

from hmb.cli.shared.waiting_notice import WaitingNotice


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.cli.shared.waiting_notice.NOTICE_SECONDS", 0.01)


def test_the_reason_of_a_wait_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    asked = threading.Event()

    def reason() -> str:
        asked.set()
        return "the broker"

    with WaitingNotice(reason, lambda: 1):
        assert asked.wait(30)
    assert capsys.readouterr().err == "waiting for the broker ...\n"


@pytest.mark.parametrize("moving", [True, False])
def test_nothing_is_printed_during_progress_or_without_a_wait(
    capsys: pytest.CaptureFixture[str], moving: bool
) -> None:
    enough = threading.Event()
    seen: list[None] = []

    def progress() -> object:
        seen.append(None)
        if len(seen) > 20:
            enough.set()
        return len(seen) if moving else None

    with WaitingNotice(lambda: "nothing", progress):
        assert enough.wait(30)
    assert capsys.readouterr().err == ""


def test_the_reason_is_printed_again_after_progress(capsys: pytest.CaptureFixture[str]) -> None:
    moved = 0
    asked = threading.Semaphore(0)

    def reason() -> str:
        asked.release()
        return f"answer {moved}"

    with WaitingNotice(reason, lambda: moved):
        assert asked.acquire(timeout=30)
        moved = 1
        assert asked.acquire(timeout=30)
    assert capsys.readouterr().err == "waiting for answer 0 ...\nwaiting for answer 1 ...\n"
