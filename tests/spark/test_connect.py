"""Tests of `hmb.spark.session("sc://...")` with a real Spark Connect server, and of the error without a server."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="PySpark's packages for Spark Connect are not installed: pip install 'hmb[spark]'")

import hmb
import hmb.spark
from hmb.bench import peers
from hmb.spark.local.environment import SparkUnavailableError, find_java, findings, java_home

ROOT = Path(__file__).parents[2]
JOB = ROOT / "docs" / "spark" / "job.py"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
EACH = 200


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Start a Spark Connect server with two threads, and return its address."""
    for each in findings():
        if each.problem:
            pytest.skip(each.problem)
    import pyspark

    java = find_java()
    assert java is not None
    home, (port,) = Path(pyspark.__file__).parent, peers.free_ports(1)
    settings = {
        "spark.connect.grpc.binding.address": peers.HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
    }
    options = [each for name, value in settings.items() for each in ("--conf", f"{name}={value}")]
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home(java)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": peers.HOST,
    }
    command = [str(home / "bin" / "spark-submit"), "--class", SERVER, "--master", "local[2]", *options]
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)
        try:
            _wait_for(port, server)
            yield f"sc://{peers.HOST}:{port}"
        finally:
            server.terminate()
            server.wait(60)


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    last = time.monotonic() + 200
    while time.monotonic() < last and server.poll() is None:
        try:
            return socket.create_connection((peers.HOST, port), timeout=5).close()
        except OSError:
            time.sleep(0.3)
    raise TimeoutError("the Spark Connect server does not answer")


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_documented_job_runs_in_the_server(address: str, tmp_path: Path) -> None:
    """The documented job runs in a Spark Connect server. The client process needs no Java.

    The variable SPARK_REMOTE of the client process contains the server's address. Its variables JAVA_HOME and PATH name
    no directory with Java, so only the server can use Java.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_REMOTE": address, "JAVA_HOME": "", "PATH": "/nowhere"}
    with hmb.Broker(config={"num.partitions": "3"}) as broker:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for number in range(EACH):
                producer.send("events", b"%d" % number, b"a")
        command = [sys.executable, str(JOB), "", broker.bootstrap_servers, str(tmp_path / "job")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    counts, _, ran_on = done.stdout.rpartition(" on ")
    assert (ast.literal_eval(counts), ran_on) == ({"a": EACH}, "local[2]\n")


def test_no_server() -> None:
    (port,) = peers.free_ports(1)
    with pytest.raises(SparkUnavailableError, match=f"no Spark Connect server answers at {peers.HOST}:{port}"):
        hmb.spark.session(master=f"sc://{peers.HOST}:{port}")
