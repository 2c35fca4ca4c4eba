"""Runs the commands of the page "From one machine to a cluster" with Spark and three Apache Kafka 4.3.0 brokers.

    python -m tests.conformance.cluster_page     # writes the present output of all commands into the page

The commands and their output are in the blocks ```` ```session ```` of the page. The build of the page does not run
them, because they need Java, Kafka's jars and Spark. A test runs them instead, and compares the output.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hmb.bench import peers
from tests.spark.versions import BUSY, TRIES

if TYPE_CHECKING:
    from command_session import CommandSession

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "how-to" / "cluster.md"
FILES = (*(DOCS / "how-to" / "cluster").iterdir(), DOCS / "spark" / "job.py")
SPARK_STEPS = "## Step 6"  # the heading of the first step that needs Spark
BLOCK = re.compile(r"(?<=^```session\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ .*$(?:\n(?!\$ ).*)*", re.MULTILINE)
PORTS = (19092, 29092, 39092, 19093, 29093, 39093, 7077)  # the ports in the page and in its scripts
WAITING = re.compile(r"^waiting for .* \.\.\.\n", re.MULTILINE)  # a line that appears only on a busy machine
SECONDS = 400.0  # for one command; three brokers start slowly on a busy machine


class Step(NamedTuple):
    """A command of the page. `expected` is its output on the page, and `output` is its output in this run."""

    command: str
    expected: str
    output: str


def run(text: str, kafka: Path) -> Iterator[Step]:
    """Run the commands of the page `text` with the jars in the folder `kafka`, and yield each command."""
    sys.path.insert(0, str(DOCS / "_ext"))
    import command_session

    command_session.TIMEOUT = SECONDS
    os.environ["KAFKA"] = str(kafka.resolve())
    ports = dict(zip(map(str, PORTS), map(str, peers.free_ports(len(PORTS))), strict=True))
    with closing(command_session.CommandSession()) as session:
        session.start_broker()
        for file in FILES:
            shutil.copy(file, session.directory)
        for script in session.directory.glob("*.sh"):
            script.write_text(_replaced(script.read_text(), ports))
        try:
            for block in BLOCK.findall(text):
                for shown in COMMAND.findall(block):
                    command, _, expected = shown.partition("\n")
                    output = _run(session, _replaced(command.removeprefix("$ "), ports))
                    output = _replaced(output, {real: name for name, real in ports.items()})
                    yield Step(command, expected, WAITING.sub("", output))
        except command_session.CommandFailed as error:
            logs = (f"{log.name}:\n{log.read_text()[-3000:]}" for log in session.directory.glob("*.log"))
            raise AssertionError("\n".join([str(error), *logs])) from error
        finally:
            for pid in (*session.directory.glob("kafka-*/pid"), *session.directory.glob("spark-*.pid")):
                with suppress(ProcessLookupError, ValueError):
                    os.kill(int(pid.read_text()), signal.SIGKILL)


def _run(session: CommandSession, command: str) -> str:
    """Run a command of the page, at most TRIES times. Repeat it only if a Spark job fails on a busy machine.

    On a busy machine, a Python worker can start too late for Spark, and the job then fails. The next run of the job
    continues from the job's checkpoint, so the output does not change.
    """
    from command_session import CommandFailed

    log = session.directory / "job.log"
    for _ in range(TRIES - 1):
        try:
            return session.run(command)
        except CommandFailed:
            if not log.exists() or BUSY not in log.read_text():
                raise
    return session.run(command)


def _replaced(text: str, numbers: dict[str, str]) -> str:
    return re.sub(r"\b\d+\b", lambda found: numbers.get(found[0], found[0]), text)


def comparable(output: str) -> list[str]:
    """Return the words of an output, without the details that differ from run to run.

    These details are the addresses of the controller and the coordinator, the times, and the order of ISRs.
    """
    output = re.sub(r"(controller|coordinator) [\d.:]+", r"\1 N", output)
    output = re.sub(r"in [\d.]+ s$", "in N s", output, flags=re.MULTILINE)
    return re.sub(r"\d(?:,\d)+", lambda found: ",".join(sorted(found[0].split(","))), output).split()


def with_present_output(text: str, kafka: Path) -> str:
    """Run the commands of the page `text`, and return the page with the new outputs of these commands."""
    steps = iter(list(run(text, kafka)))

    def block(found: re.Match[str]) -> str:
        made = (next(steps) for _ in COMMAND.findall(found[0]))
        return "".join(f"{step.command}\n{step.output}" for step in made)

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    PAGE.write_text(with_present_output(PAGE.read_text(), peers.kafka_43_jars()))
