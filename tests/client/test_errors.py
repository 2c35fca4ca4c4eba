"""The docstring of `hmb.client.errors` lists the exceptions of HMB, each with the module to import it from."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import hmb
from hmb.client import errors

LINE = re.compile(r"^    +(?P<name>[A-Z]\w+) *(?:\[(?P<module>[\w.]+)\])?", re.MULTILINE)


def bases_of_classes() -> dict[str, set[str]]:
    """Return the names of the base classes of each class in `hmb`. No two classes have the same name."""
    trees = [ast.parse(path.read_text("utf-8")) for path in Path(hmb.__file__).parent.rglob("*.py")]
    classes = [node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    return {node.name: {base.id for base in node.bases if isinstance(base, ast.Name)} for node in classes}


def subclasses(name: str) -> set[str]:
    """Return all direct and indirect subclasses of a class, except the subclasses of KafkaError."""
    direct = {each for each, bases in bases_of_classes().items() if name in bases}
    return direct.union(*(subclasses(each) for each in direct - {"KafkaError"}))


def test_the_table_lists_all_subclasses_of_hmb_error() -> None:
    listed = LINE.findall(errors.__doc__ or "")
    assert {name for name, _ in listed} == {"HmbError"} | subclasses("HmbError")


def test_each_exception_can_be_imported_from_the_module_in_the_table() -> None:
    for name, module in LINE.findall(errors.__doc__ or ""):
        assert issubclass(getattr(import_module(module or "hmb"), name), hmb.HmbError)
        assert bool(module) != (name in hmb.__all__)
