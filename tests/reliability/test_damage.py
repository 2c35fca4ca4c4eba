"""Damages files of a data directory, one case in each test. The docstring of the module `damage` explains the cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from tests.reliability import damage
from tests.reliability.damage import KINDS, MOMENTS, Broken, Case, cases, kind_of, run
from tests.reliability.data_set import DataSet, build

SEED = 33
CASES = 100
FILES = {
    *(".kafka_cleanshutdown", ".lock", "hmb-manifest", "meta.properties", "topics.json", "configs.json", "ids"),
    *("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "cleaner-offset-checkpoint"),
    *("leader-epoch-checkpoint", "partition.metadata", "__consumer_offsets-0/.log", "__transaction_state-0/.log"),
    *(f"plain-0/.{suffix}" for suffix in ("log", "index", "timeindex", "snapshot")),
    *("table-0/.log", "old-0/.log", "plain-1/.txnindex"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return build(tmp_path_factory.mktemp("damage"), SEED)


@pytest.fixture(scope="module")
def chosen(data: DataSet) -> Iterator[list[Case]]:
    yield list(islice(cases(data, SEED), CASES))


@pytest.mark.parametrize("number", range(CASES))
def test_damage_is_reported_or_harmless_and_intact_records_are_served(
    data: DataSet, chosen: list[Case], number: int
) -> None:
    case = chosen[number]
    try:
        run(case, data)
    except Broken as error:
        pytest.fail(f"{case}: {error}")


def test_every_kind_of_file_is_damaged_in_every_way(data: DataSet) -> None:
    found = list(islice(cases(data, SEED), 5_000))
    assert {kind_of(case.name) for case in found} >= FILES
    assert {(case.moment, case.kind) for case in found} == {(moment, kind) for moment in MOMENTS for kind in KINDS}


def test_the_checks_notice_a_record_that_is_no_longer_served(data: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other tests are useful only if they notice lost records.

    This test expects a record that never existed, and the check must fail.
    """
    case = Case(MOMENTS[0], "plain-0/leader-epoch-checkpoint", "bit flipped", 1)
    run(case, data)
    plain = data.expected.partitions["plain-0"]
    more = replace(plain, records=plain.records | {plain.end - 1: (b"k", b"v")})
    expected = replace(data.expected, partitions=data.expected.partitions | {"plain-0": more})
    with pytest.raises(Broken, match="plain-0: "):
        run(case, replace(data, expected=expected))


def test_damage_that_nobody_reports_is_noticed(data: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose_all(path: Path, _: object) -> None:
        """Remove the whole log, and the manifest that lists its files.

        A broker that starts after this loss cannot notice it.
        """
        for file in path.parent.iterdir():
            file.unlink()
        (path.parent.parent / "hmb-manifest").unlink()

    monkeypatch.setitem(damage.KINDS, "deleted", lose_all)
    with pytest.raises(Broken, match="plain-1: intact records are missing"):
        run(Case(MOMENTS[1], "plain-1/partition.metadata", "deleted", 1), data)
