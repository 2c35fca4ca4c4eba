"""The tables of runs that were kept: what a command printed at its end, or did not come to print.

hmb bench show hmb-bench/thesis-20261121-200000.json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..suite import complain
from .samples import read, samples_of
from .tables import Table, text


def tables_of(document: Mapping[str, Any]) -> Sequence[Table]:
    """Those of the suite whose runs they are, made by its own module.  Raises ValueError."""
    samples = samples_of(document)
    suite = samples[0].suite.split()[0]  # of "clients produce" the first word
    module = "thesis.suite" if suite == "thesis" else f"scenarios.{suite}"
    try:
        found: Sequence[Table] = import_module(f"hmb.bench.{module}").tables(samples)
    except (ModuleNotFoundError, AttributeError, KeyError) as missing:
        raise ValueError(f"no table can be made of the suite {suite!r}: {missing}") from missing
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="hmb bench show", description="The tables of runs that were kept.")
    parser.add_argument("files", type=Path, nargs="+", help="that a scenario wrote")
    try:
        for path in parser.parse_args().files:
            for line in text(tables_of(read(path))):
                print(line)
    except (OSError, ValueError) as problem:
        return complain(problem)
    return 0


if __name__ == "__main__":
    sys.exit(main())
