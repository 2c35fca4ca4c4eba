"""Write one archive with everything that the workers of a Spark cluster need, for the command `hmb spark ship`.

Problem: a Spark cluster runs the tasks of a query on other machines. Python on these machines often has neither HMB nor
Arrow. The user of a cluster may not be allowed to install packages there.

Spark's option `--archives` copies an archive to each worker, and unpacks the archive there. `ship` writes such
an archive. It contains HMB, the packages that HMB needs, and the packages that PySpark needs. Spark's option
`--py-files` would not work, because Python cannot import compiled packages, such as pyarrow, from a zip file.

Example: Spark unpacks `hmb-spark.zip#hmb` into the folder `hmb` of each executor's working directory. The setting
`spark.executorEnv.PYTHONPATH=hmb` makes this folder visible to Python:
    spark-submit --archives hmb-spark.zip#hmb --conf spark.executorEnv.PYTHONPATH=hmb job.py

The archive of `hmb spark ship` contains neither Python nor Java. It does not contain PySpark, because each
worker of a Spark cluster has PySpark.

The archive contains compiled packages. It works only on workers with the same operating system and the same
kind of processor as the computer that wrote the archive.

The workers must also have the same minor version of Python as this computer, for example 3.12. PySpark itself
requires the same minor version of Python on all machines.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hmb.spark.local.environment import INSTALL, PACKAGES

FOLDER = "hmb"  # the folder in which the workers find the packages
# PySpark needs these packages for data from Python. The workers of a Spark cluster have PySpark, but often not these
# packages. So the archive for the workers contains them.
PYSPARK_NEEDS = PACKAGES.keys() - {"pyspark"}
LEFT_OUT = {"__pycache__", "include", "tests"}  # Workers need no tests, and no header files for C++.


class Shipment(NamedTuple):
    """An archive for the workers of a Spark cluster."""

    path: Path
    size: int  # in bytes
    packages: dict[str, str]  # the name and the version of each package in the archive
    python: str  # the version of Python that the workers need, such as "3.12"
    platform: str  # the operating system and processor that the workers need, such as "linux-x86_64"

    @property
    def settings(self) -> dict[str, str]:
        """The Spark settings for this archive.

        With these settings, Spark unpacks the archive on each worker. Python on the worker can then import the packages
        in the archive.
        """
        return {"spark.archives": f"{self.path}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


class ShipError(Exception):
    """The archive cannot be written. The message names the reason."""


def ship(path: Path) -> Shipment:
    """Write the archive. Raises ShipError if a package is missing or the file cannot be written."""
    found = _distributions()
    temporary = path.with_name(f"{path.name}.part")  # An interrupted run must not leave half an archive.
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for file, name in sorted({(file, name) for each in found for file, name in _files(each)}):
                archive.write(file, name)
        temporary.replace(path)
        size = path.stat().st_size
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ShipError(f"cannot write {path}: {error.strerror or error}") from error
    packages = {each.name: each.version for each in found}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Shipment(path, size, packages, python, sysconfig.get_platform())


def _distributions() -> list[Distribution]:
    """Return HMB and the packages in PYSPARK_NEEDS, with all their dependencies, sorted by name."""
    found: dict[str, Distribution] = {}
    waiting = ["hmb", *PYSPARK_NEEDS]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            if name in PYSPARK_NEEDS:
                raise ShipError(f"{name} is not installed for {sys.executable}; to fix it: {INSTALL}") from error
            continue  # The package is only for another Python version or another operating system.
        waiting += _required(found[name])
    return [found[name] for name in sorted(found)]


def _required(package: Distribution) -> Iterator[str]:
    """Yield the names of the packages that a package always needs. The packages of its extras are left out."""
    for line in package.requires or ():
        name = re.match(r"[\w.-]+", line)
        if name is not None and not re.search(r"\bextra\s*==", line):
            yield name[0]


def _files(package: Distribution) -> Iterator[tuple[Path, str]]:
    """Yield each file of a package, with its name in the archive."""
    if package.name == "hmb":
        # After `pip install --editable`, the package's file list does not contain HMB's modules. So take all files of
        # the folders `hmb` and `pyspark_hmb`.
        yield from _folder("hmb")
        yield from _folder("pyspark_hmb")
        return
    for file in package.files or ():
        # Paths are relative to the folder site-packages. Commands are outside of this folder, for example
        # ../../../bin/hmb. Workers need neither commands nor the folders in LEFT_OUT.
        if ".." not in file.parts and not LEFT_OUT.intersection(file.parts[:-1]):
            yield Path(str(file.locate())), file.as_posix()


def _folder(module: str) -> Iterator[tuple[Path, str]]:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, f"{module} is a part of HMB"
    folder = Path(spec.origin).parent
    for file in folder.rglob("*"):
        name = file.relative_to(folder.parent)
        if file.is_file() and not LEFT_OUT.intersection(name.parts[:-1]):
            yield file, name.as_posix()
