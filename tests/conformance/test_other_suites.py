"""Runs the test suites of other projects with HMB's pytest plugin. Only tests on a list of known failures may fail.

The environment variable `HMB_SUITES` names a folder with the source trees `aiokafka` and `quixstreams`. If the variable
is not set, pytest skips these two test suites.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conformance import other_suites


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.timeout(other_suites.SUITE_SECONDS + 600)  # for the suite, and for the installation of its packages
@pytest.mark.parametrize("name", other_suites.SUITES)
def test_a_suite_fails_only_where_its_list_says_so(name: str) -> None:
    folder = Path(os.environ.get("HMB_SUITES", ""), name)
    if "HMB_SUITES" not in os.environ or not folder.is_dir():
        pytest.skip(f"no source tree of {name}: set HMB_SUITES to a folder that contains it")
    assert other_suites.unexpected_failures(name, other_suites.run(name, folder)) == []


def test_a_failure_outside_the_list_is_found() -> None:
    output = "FAILED tests/test_sasl.py::Sasl::test_plain - no\nERROR tests/test_new.py::test_it - no\n"
    assert other_suites.is_expected("tests/test_sasl.py::Sasl::test_plain", ["tests/test_sasl.py*"])
    assert not other_suites.is_expected("tests/test_sasl.py::Sasl::test_plain", ["tests/test_sasl.py"])
    assert other_suites.unexpected_failures("aiokafka", output) == ["tests/test_new.py::test_it"]


def test_a_copy_gets_the_fixtures_and_loses_the_package(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for folder in ("tests", "aiokafka"):
        (source / folder).mkdir(parents=True)
    (source / "tests" / "conftest.py").write_text("import pathlib\n")
    other_suites.copy_with_fixtures("aiokafka", source, tmp_path / "copy")
    conftest = (tmp_path / "copy" / "tests" / "conftest.py").read_text()
    assert conftest.startswith("import pathlib\n")
    assert "hmb.Broker(" in conftest
    assert not (tmp_path / "copy" / "aiokafka").exists()
