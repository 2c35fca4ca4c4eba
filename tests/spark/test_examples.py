"""Tests of two examples of the documentation: a query with a state of its own, and a declarative pipeline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")

import pyspark
from click.testing import CliRunner

import hmb
from hmb.bench import peers
from hmb.cli.main import main
from hmb.spark.local.environment import find_java, findings, java_home

pytestmark = [pytest.mark.external, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "spark"
SPARK_HOME = Path(pyspark.__file__).parent


@pytest.fixture
def servers() -> Iterator[str]:
    for each in findings():
        if each.problem:
            pytest.skip(each.problem)
    with hmb.Broker(config={"num.partitions": "2"}) as broker:
        yield broker.bootstrap_servers


def measure(servers: str, *readings: tuple[str, float]) -> None:
    with hmb.Producer(servers) as producer:
        for city, celsius in readings:
            producer.send("weather", str(celsius).encode(), city.encode())


def run(command: list[str], directory: Path, servers: str) -> None:
    java = find_java()
    assert java is not None
    environment = {
        **os.environ,
        "HMB_BOOTSTRAP_SERVERS": servers,
        "JAVA_HOME": str(java_home(java)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": peers.HOST,
    }
    done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"


def test_a_query_keeps_a_state_from_run_to_run(tmp_path: Path, servers: str) -> None:
    command = [sys.executable, str(EXAMPLES / "highest.py"), servers, str(tmp_path / "checkpoint")]
    measure(servers, ("Oslo", 1), ("Bern", 5), ("Oslo", 3), ("Oslo", 2))
    run(command, tmp_path, servers)
    measure(servers, ("Oslo", 2.5), ("Bern", 6))
    run(command, tmp_path, servers)
    printed = CliRunner().invoke(main, ["consume", "highest", "-b", servers, "-o", "start:end", "-f", "%k %v\n"]).stdout
    assert sorted(printed.splitlines()) == ["Bern 5.0", "Bern 6.0", "Oslo 3.0"]


def test_a_declarative_pipeline_reads_a_topic(tmp_path: Path, servers: str) -> None:
    pytest.importorskip("grpc", reason="PySpark's packages for pipelines are not installed: pip install 'hmb[spark]'")
    pytest.importorskip("yaml", reason="PySpark's packages for pipelines are not installed: pip install 'hmb[spark]'")
    shutil.copytree(EXAMPLES / "pipeline", tmp_path / "pipeline")
    definition = tmp_path / "pipeline" / "spark-pipeline.yml"
    definition.write_text(definition.read_text().replace("/tmp/weather-pipeline", str(tmp_path / "storage")))
    measure(servers, ("Oslo", 1), ("Bern", 5), ("Oslo", 3), ("Oslo", 2))
    program = str(SPARK_HOME / "bin" / "spark-pipelines")
    settings = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.catalogImplementation=in-memory"]
    run([program, "run", *settings], tmp_path / "pipeline", servers)
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "pipeline" / "spark-warehouse" / "highest")
    assert sorted(map(tuple, (row.values() for row in table.to_pylist()))) == [("Bern", 5.0), ("Oslo", 3.0)]
