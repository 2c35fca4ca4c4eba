"""Fetch the jars of Apache Kafka 4.3.0 and 0.8.2.2 with Maven."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click

from ..errors import BenchmarkError
from .jars import FETCHED

SCRIPT = Path(__file__).with_name("fetch_kafka.sh")


@click.command("fetch-kafka")
@click.pass_context
def command(ctx: click.Context) -> None:
    """Fetch the jars of Apache Kafka 4.3.0 and 0.8.2.2 with Maven.

    The jars go to .peers in a checkout of HMB's repository, otherwise to hmb/kafka in the user's cache folder.
    """
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise BenchmarkError(f"{tool} is not on the PATH; on Debian: apt install default-jre-headless maven")
    ctx.exit(subprocess.run(["bash", str(SCRIPT), str(FETCHED)]).returncode)
