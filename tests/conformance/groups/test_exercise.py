"""Groups of every client that is installed here, each through `exercise.run` on one broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hmb.bench import peers
from tests.conformance.groups.exercise import CONFIG, run
from tests.conformance.groups.kinds import KINDS

pytestmark = [pytest.mark.external, pytest.mark.slow, pytest.mark.timeout(400)]

RACE = "kafka-python 3.0.12 forgets its rejoin, and beats no more, where a poll times out meanwhile"
MARKS = {"kafka-python": [pytest.mark.xfail(reason=RACE, strict=False)]}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[peers.Hmb]:
    with peers.Hmb(tmp_path_factory.mktemp("groups") / "hmb", config=CONFIG) as hmb:
        yield hmb


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=MARKS.get(kind, [])) for kind in KINDS])
def test_members_and_the_broker_are_killed_and_nothing_is_lost(broker: peers.Hmb, kind: str, tmp_path: Path) -> None:
    assert "all delivered" in run(broker, kind, tmp_path / kind)
