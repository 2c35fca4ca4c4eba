"""Files of samples, grouped by the machine and the scale of their runs.

A median must not contain figures of different machines. It must not mix figures of full runs and of quick runs
(`--scale 0.1`) either. An `Origin` names machine and scale, and only files of the same origin share a table or a chart.

Without names of files, `hmb bench show` and `hmb bench plot` take the reader's own runs in `hmb-bench/`. They take the
published ones in `bench/results` only if no own run exists. If several files have the same suite and origin, the newest
file is used, because an older file may have measured older code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InvalidSamples
from .samples import DIRECTORY, Sample, read, samples_of
from .view import SuiteReport

PUBLISHED = Path(__file__).resolve().parents[1] / "results"
SCALE = re.compile(r"--scale[ =](\S+)")


@dataclass(frozen=True)
class Origin:
    """The suite, machine and scale that files have in common if their runs can be compared."""

    suite: str
    cpu: str
    cores: int
    scale: float

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Origin:
        """Return the origin of the samples in a file. `document` is the content of the file, as `read` returned it."""
        suite = str(document["samples"][0]["suite"]).split()[0]  # For example, "clients produce" becomes "clients".
        machine, scale = document["machine"], SCALE.search(document["command"])
        return cls(suite, str(machine["cpu"]), int(machine["cores"]), float(scale[1]) if scale else 1.0)

    def __str__(self) -> str:
        scale = "" if self.scale == 1 else f", --scale {self.scale:g}"
        return f"{self.cpu}, {self.cores} cores{scale}"


def by_origin(paths: Sequence[Path]) -> dict[Origin, list[Sample]]:
    """Read these files, or the newest ones, and return their samples by origin. Raises OSError, InvalidSamples.

    The rounds of a later file get higher numbers, so that a ratio never compares runs of two files.
    """
    groups: dict[Origin, list[Sample]] = {}
    for path in paths or newest_files():
        document = read(path)
        try:
            origin, added = Origin.of(document), samples_of(document)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidSamples(f"{path} is not a file of samples that `hmb bench` wrote: {error!r}") from error
        samples = groups.setdefault(origin, [])
        first = max((sample.turn + 1 for sample in samples), default=0)
        samples += [replace(sample, turn=sample.turn + first) for sample in added]
    if not groups:
        raise InvalidSamples(f"no runs in {DIRECTORY} or {PUBLISHED}: run a benchmark, or name a file of samples")
    return groups


def newest_files() -> list[Path]:
    """Return the newest own file of each suite and origin, or the newest published ones; [] if neither exist."""
    for folder in (DIRECTORY, PUBLISHED):
        if files := sorted(folder.glob("*-*.json"), key=lambda path: path.stem.partition("-")[2]):
            return list({Origin.of(read(path)): path for path in files}.values())
    return []


# The modules of suites that are not in the folder of scenarios.
MODULES = {"thesis": "thesis.suite", "hailstorm": "streams.hailstorm", "testing": "testing"}


def view_of(suite: str) -> SuiteReport:
    """Return the view that a suite's module declares. Raises InvalidSamples if no such suite exists."""
    module = MODULES.get(suite, f"scenarios.{suite}")
    try:
        view: SuiteReport = import_module(f"hmb.bench.{module}").VIEW
    except ModuleNotFoundError as missing:
        raise InvalidSamples(f"no suite is called {suite!r}: {missing}") from missing
    return view


def file_suffixes(origins: Iterable[Origin]) -> dict[Origin, str]:
    """Return a suffix for file names for each origin; "" for the only origin of a suite."""
    origins = list(origins)
    suites = [origin.suite for origin in origins]
    return {
        origin: "" if suites.count(origin.suite) == 1 else "-" + re.sub(r"[^a-z0-9.]+", "-", str(origin).lower())
        for origin in origins
    }
