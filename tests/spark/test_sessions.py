"""Tests of `hmb.spark.session()`, which starts Spark on this machine. If software is missing, the error names it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import hmb.spark
from hmb.spark.local import sessions
from hmb.spark.local.environment import Finding, SparkUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_missing_package_is_reported_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Finding("pandas", "2.1.4", "pandas 2.1.4 is too old: 2.2 is needed", "pip install 'pandas>=2.2'")
    monkeypatch.setattr(sessions, "findings", lambda: [Finding("pyspark", "4.3.0"), bad])
    with pytest.raises(SparkUnavailableError, match=r"pandas 2[.]1[.]4 is too old: .*; to fix it: pip install"):
        hmb.spark.session()


def test_the_functions_stay_functions_when_their_modules_are_imported() -> None:
    assert callable(hmb.spark.session)
    assert callable(hmb.spark.load)
    assert callable(hmb.spark.session)


@pytest.mark.external
@pytest.mark.timeout(300)
def test_settings_for_a_laptop(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.driver.memory") == "1g"  # The `config` of the tests takes precedence over the default.
    assert hmb.spark.session().sparkContext is spark.sparkContext
