"""Tests that run the documentation's examples. The build of the documentation does not run these examples."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = "pytester"
EXAMPLES = Path(__file__).parents[2] / "docs" / "library"


@pytest.mark.parametrize(("name", "passed"), [("test_async.py", 1), ("test_with_unittest.py", 2)])
def test_an_example_passes(pytester: pytest.Pytester, name: str, passed: int) -> None:
    shutil.copy(EXAMPLES / name, pytester.path)
    pytester.runpytest_subprocess("-p", "no:cacheprovider", name).assert_outcomes(passed=passed)


def test_a_consumer_that_a_test_leaves_open_is_counted_at_the_end(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import hmb
        LEFT = []

        def test_one(hmb_broker, hmb_topic):
            hmb_broker.produce(hmb_topic, "one")
            LEFT.append(hmb.Consumer(hmb_broker.bootstrap_servers, hmb_topic, offset="earliest"))
            assert next(iter(LEFT[0])).value == b"one"
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"hmb: .*\.py::test_one left (1 connection|\d connections) open; .*"])
