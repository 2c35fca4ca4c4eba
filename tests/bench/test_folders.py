"""Tests of the folders in `bench`: a wheel contains each folder, and each folder's docstring lists all its modules."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import hmb
import hmb.bench

ROOT = Path(hmb.__file__).parents[1]
BENCH = Path(hmb.bench.__file__).parent
FOLDERS = sorted(path.parent for path in BENCH.rglob("__init__.py"))


def test_a_wheel_contains_every_folder_and_its_data() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    names = {folder: ".".join(("hmb", *folder.relative_to(ROOT).parts)) for folder in FOLDERS}
    assert set(names.values()) <= set(settings["packages"])
    for folder, name in names.items():
        data = {path.suffix for path in folder.iterdir() if path.suffix in (".sh", ".json")}
        assert {f"*{suffix}" for suffix in data} <= set(settings["package-data"].get(name, []))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_essay_of_a_folder_names_its_modules(folder: Path) -> None:
    essay = (folder / "__init__.py").read_text(encoding="utf-8").partition("Read in this order:")[2]
    modules = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    assert len(modules) <= 15
    assert [name for name in modules if f"`{name}`" not in essay] == []
