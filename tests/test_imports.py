"""Tests that no two folders of `hmb` import each other.

For example, `broker` imports `storage`, so `storage` must not import `broker`. A reader can therefore understand
`storage` without `broker`.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import hmb
import hmb.client
import hmb.client.errors

ROOT = Path(hmb.__file__).parent
SMALL_MODULES = {"defaults", "printable", "state_table", "units", "uuids"}
MAY_IMPORT = {
    "protocol": set(),
    "records": {"protocol"},
    "security": {"protocol"},
    "storage": {"protocol", "records"},
    "coordinator": {"protocol", "records", "storage"},
    "broker": {"protocol", "records", "security", "storage", "coordinator"},
    "client": {"protocol", "records", "security"},
    "spark": {"protocol", "records", "client"},
    "hailstorm": {"client"},
    "mirror": {"protocol", "records", "client"},
    "monitoring": {"protocol", "records", "security", "storage", "coordinator", "broker", "client"},
    "testing": {"protocol", "records", "security", "storage", "broker", "client", "monitoring"},
}


def imported_folders(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.update({node.module} if node.module != "hmb" else {f"hmb.{alias.name}" for alias in node.names})
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("hmb.")}


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_folder_imports_only_the_folders_before_it(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert imported_folders(path) - {folder, *SMALL_MODULES} <= MAY_IMPORT[folder], path


def test_every_folder_has_its_place() -> None:
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders == set(MAY_IMPORT)


def test_a_wheel_has_every_folder() -> None:
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))
    folders = [".".join(path.parent.relative_to(ROOT.parent).parts) for path in ROOT.rglob("__init__.py")]
    assert set(folders) <= set(project["tool"]["setuptools"]["packages"])


@pytest.mark.parametrize("package", [hmb, hmb.client], ids=lambda package: package.__name__)
def test_the_names_that_a_program_needs_are_in_the_top_package(package: ModuleType) -> None:
    assert {"AtTime", "FromStart", "KafkaError", "NewTopic"} <= set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name).__name__ == name


def test_dir_names_classes_before_their_first_use() -> None:
    assert {"Broker", "Consumer", "KafkaError", "Producer"} <= set(dir(hmb))
    assert {"Connection", "Consumer", "KafkaError"} <= set(dir(hmb.client))


def test_every_exception_is_in_the_documented_tree() -> None:
    assert hmb.client.errors.__doc__ is not None
    tree, errors = hmb.client.errors.__doc__, [getattr(hmb, name) for name in hmb.__all__]
    exceptions = [it for it in errors if issubclass(it, Exception)]
    assert {it.__name__ for it in exceptions} >= {"BindError", "ConnectionFailed", "DeserializationError"}
    assert {it.__name__ for it in exceptions} >= {"DataDirectoryError", "FaultError", "NameNotFound", "RequestsMissing"}
    for exception in exceptions:
        assert issubclass(exception, hmb.HmbError)
        assert f" {exception.__name__} " in tree.replace("\n", " ")
