"""In the tables that compare HMB with other test tools, each named function and each named test exists."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

from hmb.broker.config.broker import BROKER_CONFIGS
from hmb.cli.main import COMMANDS

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "library" / "testing-compared.md"
NO_TEST = "-"


def table_lines() -> list[list[str]]:
    """Return the cells of each table line without the first cell, which names a feature of another tool."""
    lines = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [cells[-2:] for cells in lines if cells[-1] not in ("test", "---")]


LINES = table_lines()
NAMES = sorted({name for ours, _ in LINES for name in re.findall(r"`([^`]+)`", ours)})
SHOWN_BY = sorted({test.strip("`") for _, test in LINES if test != NO_TEST})


def exists(name: str) -> bool:
    """Return whether a dotted name exists. If a parameter follows in parentheses (`f(x=)`), it must exist, too."""
    path, _, parameter = name.removesuffix("=)").partition("(")
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return not parameter or (callable(found) and parameter in inspect.signature(found).parameters)
    return False


def is_fixture(name: str) -> bool:
    return re.fullmatch(r"hmb_\w+|kafka_bootstrap_servers", name) is not None


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("hmb.")])
def test_a_call_in_the_tables_exists(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize("name", [name for name in NAMES if is_fixture(name)])
def test_a_fixture_in_the_tables_exists(name: str) -> None:
    assert hasattr(importlib.import_module("hmb.testing.plugin"), name)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("hmb ")])
def test_a_command_in_the_tables_exists(name: str) -> None:
    assert name.split()[1] in COMMANDS


@pytest.mark.parametrize("name", [name for name in NAMES if "." in name and not name.startswith("hmb.")])
def test_a_setting_in_the_tables_exists(name: str) -> None:
    assert name in BROKER_CONFIGS


@pytest.mark.parametrize("test", SHOWN_BY)
def test_a_test_in_the_tables_exists(test: str) -> None:
    path, _, name = test.partition("::")
    functions = [each for each in ast.parse((TESTS / path).read_text()).body if isinstance(each, ast.FunctionDef)]
    assert name in [each.name for each in functions]


def test_each_feature_of_hmb_has_a_test_or_says_why_not() -> None:
    unproved = [ours for ours, test in LINES if test == NO_TEST and not ours.startswith("no")]
    assert [ours for ours in unproved if not re.match(r"`[\w.]+`(, | in |$)|`hmb.Admin", ours)] == []


def test_a_name_that_does_not_exist_is_found() -> None:
    assert exists("hmb.Broker(as_version=)")
    assert not exists("hmb.Broker(color=)")
    assert not exists("hmb.Broker.fly")
