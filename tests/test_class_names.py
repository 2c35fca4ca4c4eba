"""No two classes have the same name, so that a reader who searches for a name finds one definition."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent


def class_names() -> Iterator[str]:
    """Yield the name of every top-level class of the package, of the commands and of the benchmarks."""
    for folder in ("hmb", "cli", "bench"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    yield node.name


def test_no_two_top_level_classes_share_a_name() -> None:
    shared = {name for name, count in Counter(class_names()).items() if count > 1}
    assert not shared, "rename one of the two classes"
