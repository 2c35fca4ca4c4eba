"""Groups the result files of benchmarks. The runs of one group have the same machine and the same scale.

A median of several runs is useful only if all runs used the same machine, and the same value of the option
`--scale`. An `Origin` therefore contains the benchmark (suite), the machine and the scale of a result file. A
table or a chart combines several files only if the origins of these files are equal.

The user can give names of files to `hmb bench show` and `hmb bench plot`. Without names, the commands read the user's
own runs in `hmb-bench/`. If this folder contains no runs, the commands read the published runs in `bench/results`.
Several files in the folder may have the same benchmark, machine and scale (`--scale`). The commands read only the
newest of these files, because the older ones may contain results of older code.
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
    """The benchmark, the machine and the scale of the results in a file.

    The scale is the value of the option --scale, for example 0.1 for a quick run. Two files of results can be
    compared if their origins are equal.
    """

    suite: str
    cpu: str
    cores: int
    scale: float

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Origin:
        """Return the origin of the results in a file: the benchmark (suite), the machine and the scale.

        `document` is the content of the file, as the function `read` returns it.
        """
        suite = str(document["samples"][0]["suite"]).split()[0]  # For example, "clients produce" becomes "clients".
        machine, scale = document["machine"], SCALE.search(document["command"])
        return cls(suite, str(machine["cpu"]), int(machine["cores"]), float(scale[1]) if scale else 1.0)

    def __str__(self) -> str:
        scale = "" if self.scale == 1 else f", --scale {self.scale:g}"
        return f"{self.cpu}, {self.cores} cores{scale}"


def by_origin(paths: Sequence[Path]) -> dict[Origin, list[Sample]]:
    """Read the files `paths`, or the newest files if `paths` is empty. Return the samples of each origin.

    Each file numbers its rounds from 0. If several files have the same origin, the function continues the numbers.
    For example, if the first file contains rounds 0 to 4, the second file's rounds begin at 5.

    A report divides HMB's rate by Kafka's rate of the same round. Because no two files use the same numbers, both
    rates come from the same file.

    Raises OSError, InvalidSamples.
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
    """Return the newest file of results for each combination of benchmark, machine and scale.

    The files come from the folder of the user's own runs, or from the published runs if the user's folder is empty.
    """
    for folder in (DIRECTORY, PUBLISHED):
        if files := sorted(folder.glob("*-*.json"), key=lambda path: path.stem.partition("-")[2]):
            return list({Origin.of(read(path)): path for path in files}.values())
    return []


# Most suites (benchmarks) have a module in the folder `scenarios`. For every other suite, this table maps the name of
# the suite to a module in `hmb.bench`.
MODULES = {
    "thesis": "thesis.suite",
    "hailstorm": "streams.hailstorm",
    "mirror": "mirror",
    "share": "share",
    "security": "security.command",
    "testing": "testing",
    "ui": "ui",
}


def view_of(suite: str) -> SuiteReport:
    """Return the view of a benchmark: the object that makes tables and charts from the benchmark's results.

    `suite` is the name of the benchmark. Raises InvalidSamples if no benchmark has this name.
    """
    module = MODULES.get(suite, f"scenarios.{suite}")
    try:
        view: SuiteReport = import_module(f"hmb.bench.{module}").VIEW
    except ModuleNotFoundError as missing:
        raise InvalidSamples(f"no suite is called {suite!r}: {missing}") from missing
    return view


def file_suffixes(origins: Iterable[Origin]) -> dict[Origin, str]:
    """Return for each origin a suffix for the file names of its charts. Two origins never write to the same file.

    An origin is a benchmark (suite), a machine and a scale. If a benchmark has only one origin, the suffix is
    empty. Otherwise, the suffix contains the machine and the scale.
    """
    origins = list(origins)
    suites = [origin.suite for origin in origins]
    return {
        origin: "" if suites.count(origin.suite) == 1 else "-" + re.sub(r"[^a-z0-9.]+", "-", str(origin).lower())
        for origin in origins
    }
