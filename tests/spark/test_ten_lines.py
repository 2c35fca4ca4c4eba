"""Tests of the Spark example in the README: the documentation has the same example, and its output is correct."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "spark" / "ten_lines.py"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_shows_it() -> None:
    assert f"```python\n{EXAMPLE.read_text(encoding='utf-8')}```" in README


@pytest.mark.external
def test_it_prints_its_result() -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(EXAMPLE)], env=environment, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() in README
    assert "|      Seattle|    2|" in done.stdout
