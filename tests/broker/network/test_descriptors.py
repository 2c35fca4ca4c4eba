"""Tests of file descriptors: the broker divides them between connections and log files."""

from __future__ import annotations

import resource

import pytest

from hmb.broker.network import descriptors

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize("limit", [8, 64, 200, 256, 1_024, 10_240, 2**20])
def test_files_connections_and_the_reserve_fit_into_the_limit(limit: int) -> None:
    files, connections = descriptors.for_files(limit), descriptors.for_connections(limit)
    assert connections >= 1
    assert files + 2 * connections + descriptors.RESERVE <= limit or connections == 1


@pytest.mark.parametrize(
    ("limits", "allowed", "expected"),
    [
        ((1_024, 524_288), 2**20, 524_288),
        ((256, INFINITE), 2**20, descriptors.ENOUGH),  # the soft and the hard limit of a process on macOS
        ((256, 2**20), 20_000, descriptors.ENOUGH),  # a system that allows fewer descriptors than it reports
        ((256, 4_096), 256, 256),
        ((4_096, 4_096), 0, 4_096),
        ((65_536, INFINITE), 2**20, 65_536),
        ((INFINITE, INFINITE), 2**20, descriptors.ENOUGH),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_allows(
    limits: tuple[int, int], allowed: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = [limits]

    def setrlimit(_: int, wanted: tuple[int, int]) -> None:
        if not 0 <= wanted[0] <= allowed:
            raise ValueError("current limit exceeds maximum limit")
        current.append(wanted)

    monkeypatch.setattr(resource, "getrlimit", lambda _: current[-1])
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    assert descriptors.raise_limit() == expected
    assert current[-1] in (limits, (expected, limits[1]))
