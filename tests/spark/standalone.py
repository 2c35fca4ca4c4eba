"""A standalone Spark cluster on this machine: a master and one worker, each in its own process.

The Python of the worker is a new environment without any package. The worker also has another home directory. If root
runs the tests, the worker runs as the user `nobody`. The worker therefore resembles a machine on which HMB is not
installed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
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
# Hadoop's setting for the permissions of new files: all users can write. The driver and the worker can belong to two
# users, and both write into the output directory of a job.
SHARED_FILES = {"spark.hadoop.fs.permissions.umask-mode": "000"}
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


class StandaloneCluster:
    """A master and a worker with one core. Use the cluster as a context manager, which starts and ends it.

    `shared` is a directory into which the driver and the worker can write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.worker_user = _worker_user()
        self._processes = ExitStack()
        self._port, self._page, self._worker_page = peers.free_ports(3)
        self.master = f"spark://{peers.HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._home = self._new_folder(self.worker_user)
        self.shared = self._new_folder(self.worker_user)
        self.shared.chmod(0o777)
        self._python = self._home / "python"
        self._run([str(_worker_python()), "-m", "venv", "--without-pip", str(self._python)]).check_returncode()
        self._start(MASTER, self._folder, None, "--port", str(self._port), "--webui-port", str(self._page))
        _wait_for(f"http://{peers.HOST}:{self._page}", "Spark Master")
        work = ["--cores", "1", "--memory", "1g", "--work-dir", str(self._home / "work")]
        self._start(
            WORKER, self._home, self.worker_user, *work, "--webui-port", str(self._worker_page), self.master
        )
        _wait_for(f"http://{peers.HOST}:{self._page}", "ALIVE</td>")
        return self

    def __exit__(self, *_exception: object) -> None:
        self._processes.close()

    def imports(self, module: str) -> bool:
        """Return whether the worker's Python can import a module."""
        return self._run([str(self._python / "bin" / "python3"), "-c", f"import {module}"]).returncode == 0

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        """Run a command as the worker's user, in the worker's home directory."""
        return subprocess.run(
            command, env=self._environment(), cwd=self._home, user=self.worker_user, capture_output=True, timeout=120
        )

    def _new_folder(self, owner: str | None) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="hmb-spark-"))
        self._processes.callback(shutil.rmtree, folder, ignore_errors=True)
        if owner is not None:
            shutil.chown(folder, owner)
        return folder

    def _environment(self) -> dict[str, str]:
        """Return all environment variables of the cluster's processes.

        With these variables, a process finds Java, Spark, and a Python in which HMB is not installed. The process
        inherits no variable from the tests.
        """
        java = find_java()
        assert java is not None
        return {
            "HOME": str(self._home),
            "JAVA_HOME": str(java_home(java)),
            "PATH": f"{self._python / 'bin'}:/usr/bin:/bin",
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": peers.HOST,
        }

    def _start(self, name: str, folder: Path, user: str | None, *arguments: str) -> None:
        log = self._processes.enter_context((self._folder / f"{name}.log").open("wb"))
        command = [str(SPARK_HOME / "bin" / "spark-class"), name, "--host", peers.HOST, *arguments]
        process = subprocess.Popen(
            command, env=self._environment(), cwd=folder, user=user, stdout=log, stderr=log, start_new_session=True
        )
        self._processes.callback(_end, process)


def _worker_python() -> Path:
    """Return the Python from which the worker's environment is made.

    The function prefers a Python of the operating system with the same version as the tests' Python. The user `nobody`
    often cannot run the tests' Python, because it is below root's home directory.
    """
    system = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    return system if system.exists() else Path(sys.executable).resolve()


def _worker_user() -> str | None:
    """Return the name of the user who runs Spark's worker. None means: the same user who runs the tests.

    If root runs the tests, `nobody` runs the worker. But `nobody` must have access to the directories of Python, of
    Spark and of temporary files. If one of these directories or of their parents is not open for all users, the
    function returns None.
    """
    needed = [SPARK_HOME / "bin", _worker_python().parent, Path(tempfile.gettempdir())]
    is_open = all(folder.stat().st_mode & 0o005 == 0o005 for each in needed for folder in (each, *each.parents))
    try:
        return pwd.getpwnam("nobody").pw_name if os.geteuid() == 0 and is_open else None
    except KeyError:
        return None


def submit(folder: Path, master: str, job: Path, *arguments: str, settings: dict[str, str]) -> str:
    """Run a job with the command `spark-submit`, and return the job's output.

    The driver of the job uses the same Python interpreter as the tests.
    """
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
