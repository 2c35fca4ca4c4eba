"""A standalone Spark cluster on this machine: a master and one worker, each in its own process.

The Python of the worker is a new environment without any package. Its home directory is another one, too. The worker
therefore resembles a machine on which nobody has installed HMB.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import pyspark

from hmb.bench import peers
from hmb.spark.local.environment import find_java, java_home

SPARK_HOME = Path(pyspark.__file__).parent
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


class StandaloneCluster:
    """A master and a worker with one core. Use the cluster as a context manager, which starts and ends it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes = ExitStack()
        self._port, self._page, self._worker_page = peers.free_ports(3)
        self.master = f"spark://{peers.HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._python = self._folder / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self._python)], check=True, timeout=120)
        self._start(MASTER, "--port", str(self._port), "--webui-port", str(self._page))
        _wait_for(f"http://{peers.HOST}:{self._page}", "Spark Master")
        work = ["--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / "work")]
        self._start(WORKER, *work, "--webui-port", str(self._worker_page), self.master)
        _wait_for(f"http://{peers.HOST}:{self._page}", "ALIVE</td>")
        return self

    def __exit__(self, *_exception: object) -> None:
        self._processes.close()

    def imports(self, module: str) -> bool:
        """Return whether the worker's Python can import a module."""
        command = [str(self._python / "bin" / "python3"), "-c", f"import {module}"]
        done = subprocess.run(command, env=self._environment(), cwd=self._folder, capture_output=True, timeout=60)
        return done.returncode == 0

    def _environment(self) -> dict[str, str]:
        """The variables of a machine that has Java, Spark and a Python without HMB, and nothing else."""
        java = find_java()
        assert java is not None
        return {
            "HOME": str(self._folder),
            "JAVA_HOME": str(java_home(java)),
            "PATH": f"{self._python / 'bin'}:/usr/bin:/bin",
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": peers.HOST,
        }

    def _start(self, name: str, *arguments: str) -> None:
        log = self._processes.enter_context((self._folder / f"{name}.log").open("wb"))
        command = [str(SPARK_HOME / "bin" / "spark-class"), name, "--host", peers.HOST, *arguments]
        process = subprocess.Popen(
            command, env=self._environment(), cwd=self._folder, stdout=log, stderr=log, start_new_session=True
        )
        self._processes.callback(_end, process)


def submit(folder: Path, master: str, job: Path, *arguments: str, settings: dict[str, str]) -> str:
    """Run a job with spark-submit, whose driver runs in this Python. Return what the job prints."""
    root = Path(__file__).parents[2]
    java = find_java()
    assert java is not None
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home(java)),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": "python3",  # The driver and the workers each run the first python3 on their own PATH.
        "PYTHONPATH": str(root),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": peers.HOST,
    }
    options = [each for name, value in settings.items() for each in ("--conf", f"{name}={value}")]
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, *options, str(job), *arguments]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=280)
    if done.returncode:
        raise RuntimeError(f"{done.stdout[-1500:]}\n{done.stderr[-6000:]}")
    return done.stdout


def _wait_for(page: str, text: str) -> None:
    """Wait up to 90 s, until this page of Spark's master contains this text."""
    last = time.monotonic() + 90
    while time.monotonic() < last:
        try:
            with urllib.request.urlopen(page, timeout=5) as answer:
                if text in answer.read().decode():
                    return
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.3)
    raise TimeoutError(f"{page} does not contain {text!r} after 90 s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process of Spark and the processes that it started."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)
    except ProcessLookupError:
        pass
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
