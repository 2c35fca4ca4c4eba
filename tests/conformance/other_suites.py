"""Runs the test suites of other projects with HMB's pytest plugin in place of their containers.

    python -m tests.conformance.other_suites aiokafka FOLDER       # the source tree of aiokafka 0.14.0
    python -m tests.conformance.other_suites quixstreams FOLDER    # the source tree of quixstreams 3.25.0

FOLDER is a Git checkout of the other project, because its source distribution on PyPI contains no tests. The command
copies FOLDER, and appends `other_suites/NAME.py` to the copy's `tests/conftest.py`. The fixtures in
`other_suites/NAME.py` replace the fixtures that start Kafka in a container. The suite runs in a virtual environment of
its own, in which the released package of the other project is installed.

`other_suites/NAME.txt` lists the tests that are expected to fail, with their reasons. A name in the list that ends with
`*` matches every test whose name begins with the text before the `*`. If another test fails, the command exits with
code 1.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
FIXTURES = Path(__file__).with_suffix("")
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
SUITE_SECONDS = 1800
LAST_CHARACTERS = 4000  # an error message contains this number of characters from the end of the output


@dataclass(frozen=True)
class Suite:
    """A project's test suite: its requirements, and the arguments that select its tests."""

    requirements: tuple[str, ...]
    arguments: tuple[str, ...]  # the arguments of pytest
    # The name of a source folder to delete from the copy, so that the tests import the installed package from PyPI.
    package: str | None = None


QUIX = "tests/test_quixstreams/"
SUITES = {
    "aiokafka": Suite(
        ("aiokafka==0.14.0", "pytest-asyncio", "pytest-mock", "docker", "cramjam", "async-timeout"),
        (
            *("tests", "--docker-image=hmb:4.0.0", "--no-pull", "--asyncio-mode=auto"),
            *("-o", "addopts=", "-o", "filterwarnings="),
        ),
        package="aiokafka",
    ),
    "quixstreams": Suite(
        (
            *("quixstreams==3.25.0", "confluent-kafka[avro,json,protobuf,schemaregistry]<2.12"),
            *("testcontainers==4.13.2", "docker", "fastavro", "protobuf<7", "jsonschema", "pandas<3"),
            *("redis<6", "requests"),
        ),
        (
            *("-o", "log_cli=false", QUIX + "test_kafka", QUIX + "test_internal_consumer"),
            *(QUIX + "test_internal_producer.py", QUIX + "test_checkpointing.py", QUIX + "test_sources/test_core"),
        ),
    ),
}


def expected_failures(name: str) -> list[str]:
    """Return the first word of each line of the suite's list, without comments."""
    lines = (FIXTURES / f"{name}.txt").read_text().splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def is_expected(test: str, expected: list[str]) -> bool:
    return any(test == each or (each.endswith("*") and test.startswith(each[:-1])) for each in expected)


def unexpected_failures(name: str, output: str) -> list[str]:
    """Return the tests that failed, except those in the suite's list of expected failures."""
    expected = expected_failures(name)
    return [test for test in FAILED.findall(output) if not is_expected(test, expected)]


def copy_with_fixtures(name: str, source: Path, copy: Path) -> None:
    """Copy a project's source tree. Append `other_suites/NAME.py` to `tests/conftest.py` in the copy."""
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git"))
    if package := SUITES[name].package:
        shutil.rmtree(copy / package)
    with (copy / "tests" / "conftest.py").open("a") as conftest:
        conftest.write("\n\n" + (FIXTURES / f"{name}.py").read_text())


def run(name: str, source: Path) -> str:
    """Run the suite, and return pytest's output."""
    suite = SUITES[name]
    with tempfile.TemporaryDirectory(prefix="hmb-suite-") as folder:
        copy, environment = Path(folder, "copy"), Path(folder, "venv")
        copy_with_fixtures(name, source, copy)
        venv.create(environment, with_pip=True)
        python = str(environment / "bin" / "python")
        install = [python, "-m", "pip", "install", "-q", "-e", str(PROJECT), "pytest", "pytest-timeout"]
        subprocess.run([*install, *suite.requirements], check=True)
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=60", *suite.arguments]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=SUITE_SECONDS)
        if done.returncode not in (0, 1):
            output = (done.stdout + done.stderr)[-LAST_CHARACTERS:]
            raise RuntimeError(f"pytest ended with exit code {done.returncode}: {output}")
        return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SUITES)
    parser.add_argument("folder", type=Path, help="the project's source tree")
    options = parser.parse_args()
    output = run(options.name, options.folder)
    print(output.splitlines()[-1])
    if unexpected := unexpected_failures(options.name, output):
        sys.exit("unexpected: " + " ".join(unexpected))


if __name__ == "__main__":
    main()
