"""Tests of `hmb spark ship`, which writes an archive with HMB for the workers of a Spark cluster."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'hmb[spark]'")

import hmb
from hmb.cli.main import main
from hmb.spark.local import ship
from hmb.spark.local.environment import SparkUnavailableError
from hmb.spark.local.sessions import check
from tests.spark.standalone import SHARED_FILES, StandaloneCluster, submit

JOB = Path(__file__).parents[2] / "docs" / "spark" / "job.py"
KEYS, EACH = ("a", "b", "c"), 200


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ship, "PYSPARK_NEEDS", {"no-such-package"})
    result = CliRunner().invoke(main, ["spark", "ship", str(tmp_path / "a.zip")])
    assert result.exit_code == 1
    assert f"no-such-package is not installed for {sys.executable}; to fix it: pip install" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ship, "PYSPARK_NEEDS", set())
    result = CliRunner().invoke(main, ["spark", "ship", str(tmp_path / "missing" / "a.zip")])
    assert result.exit_code == 1
    assert f"cannot write {tmp_path}/missing/a.zip: No such file or directory" in result.stderr


def test_another_python_imports_hmb_from_the_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Python without any packages can import the client and its codecs from the unpacked archive."""
    monkeypatch.setattr(ship, "PYSPARK_NEEDS", {"numpy"})  # Without pyarrow, the archive is written in a second.
    result = CliRunner().invoke(main, ["spark", "ship", str(tmp_path / "a.zip"), "--json"])
    told = json.loads(result.stdout)
    assert {"hmb", "crc32c", "cramjam", "numpy"} <= set(told["packages"])
    assert told["settings"]["spark.archives"] == f"{tmp_path}/a.zip#hmb"
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        archive.extractall(tmp_path / "hmb")
    program = "import hmb, crc32c, cramjam, numpy, re2; print(hmb.Producer.__module__, hmb.__file__)"
    command = [sys.executable, "-S", "-c", program]  # -S hides the packages of this Python.
    done = subprocess.run(command, env={"PYTHONPATH": "hmb"}, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1].startswith(f"{tmp_path}/hmb/")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    try:
        check()
    except SparkUnavailableError as missing:
        pytest.skip(str(missing))
    with StandaloneCluster(tmp_path) as started:
        yield started


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_without_hmb_reads_a_topic(cluster: StandaloneCluster, tmp_path: Path) -> None:
    """A Spark worker without HMB runs the example job of the documentation.

    If root runs the test, the worker usually runs as the user `nobody`.
    """
    assert not cluster.imports("hmb")
    assert not cluster.imports("pyarrow")
    shipment = ship.ship(tmp_path / "hmb-spark.zip")
    with hmb.Broker(config={"num.partitions": "2"}) as broker:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for number in range(EACH):
                for key in KEYS:
                    producer.send("events", b"%d" % number, key.encode())
        arguments = (cluster.master, broker.bootstrap_servers, str(cluster.shared / "job"))
        settings = {**shipment.settings, **SHARED_FILES}
        printed = submit(tmp_path, cluster.master, JOB, *arguments, settings=settings)
        owners = {file.owner() for file in (cluster.shared / "job" / "records").glob("*.parquet")}
    assert owners == {cluster.worker_user or getpass.getuser()}
    assert printed == f"{dict.fromkeys(KEYS, EACH)} on {cluster.master}\n"
