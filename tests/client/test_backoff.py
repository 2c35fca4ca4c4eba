"""Tests of the pauses between a client's attempts to send a request."""

from __future__ import annotations

from hmb.client.backoff import Backoff, jittered, pause_after


def test_each_failure_doubles_the_pause_up_to_the_limit() -> None:
    pauses = [pause_after(failures, 0.25, longest=1.0) for failures in (0, 1, 2, 3, 100_000)]
    assert pauses == [0.25, 0.5, 1.0, 1.0, 1.0]


def test_jitter_changes_a_pause_by_at_most_a_fifth() -> None:
    pauses = {jittered(10) for _ in range(100)}
    assert len(pauses) > 1
    assert all(8 <= pause <= 12 for pause in pauses)


def test_a_response_resets_the_pause_only_after_its_end() -> None:
    backoff = Backoff(0.25)
    backoff.failed(now=0)
    backoff.failed(now=1)
    assert backoff.retry_at == 1.5
    backoff.response_received(now=1.25)
    backoff.failed(now=2)
    assert backoff.retry_at == 3.0
    backoff.response_received(now=3)
    backoff.failed(now=4)
    assert backoff.retry_at == 4.25
