"""Start Spark on this machine without any configuration: `spark = hmb.spark.session()`.

Problem: Spark on one machine needs Java, the right Python interpreter for its workers, and settings for one machine. If
one of these three is missing or wrong, Spark fails, with a different error message in each case.

The function `session` finds Java (module `environment`) and registers the data source `hmb`. By default, Spark's
workers run the first `python3` on the PATH. With `session`, the workers run the same Python interpreter as the
calling program.

The function `hmb.spark.session()` uses these settings, which suit a laptop. To change a setting, pass it in the
argument `config`:
    memory      Spark's Java process gets a quarter of the machine's memory, but at least 1 GB and at most 4 GB.
    partitions  A shuffle creates one partition for each core. Spark's default is 200, which suits a cluster.
    network     Spark uses only the address 127.0.0.1, so it does not have to look up the machine's name.
    time zone   UTC, so a timestamp looks the same on every machine. Spark's default is the machine's time zone.
    filters     Spark can pass the filters of a batch query to the data source (module `hmb.spark.filters`).
    output      Spark prints only errors, and shows no progress bar. Its web page is off; the setting
                `spark.ui.enabled=true` turns it on.

If `master` names a cluster, such as spark://host:7077, the session does not change the cluster's settings for memory,
network and partitions.

If `master` is the address of a Spark Connect server, such as sc://host:15002, Spark runs in the server. The calling
program then needs no Java. The server's Python needs HMB, because the server runs the data source.

Limit: Spark waits 10 seconds for a Python worker to start, and no setting changes this time. On a very busy machine, a
query can fail with "Python worker failed to connect back". In this case, start the query again.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hmb.spark.local.environment import (
    Finding,
    SparkUnavailableError,
    connect_findings,
    find_java,
    findings,
    java_home,
    quiet_logging,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIB = 1024**3
REMOTE = "sc://"  # the addresses of Spark Connect servers begin with this scheme
CONNECT_PORT = 15002  # the port of a Spark Connect server, if its address contains none


def session(app_name: str = "hmb", master: str | None = None, config: Mapping[str, str] | None = None) -> SparkSession:
    """Return the running SparkSession. If no session is running, start a session.

    `master` says where Spark runs:

    - `local[N]`: on this machine, with N threads
    - `spark://HOST:PORT`: on a cluster
    - `sc://HOST:PORT`: on a Spark Connect server

    The default of `master` is the address in the environment variable SPARK_REMOTE, if it begins with `sc://`.
    Otherwise, it is `local[*]`: this machine, with one thread for each core.

    A running session without Spark Connect keeps its name and its master. Only the settings in `config` change.

    Raises SparkUnavailableError if something is missing, for example Java, or if the server does not answer.
    """
    remote = os.environ.get("SPARK_REMOTE", "")
    master = master or (remote if remote.startswith(REMOTE) else "local[*]")
    spark = _connect(master, config or {}) if master.startswith(REMOTE) else _start(app_name, master, config or {})
    from hmb.spark.source import HmbDataSource

    spark.dataSource.register(HmbDataSource)
    return spark


def _start(app_name: str, master: str, config: Mapping[str, str]) -> SparkSession:
    check()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # Spark then does not resolve the machine's name.
    builder = SparkSession.builder
    # A process has at most one Spark context, so this check finds the sessions of all threads. getActiveSession() would
    # find only a session of the same thread.
    if SparkContext._active_spark_context is None:
        local = _for_this_machine() if master.startswith("local") else {}
        builder = _with(builder.appName(app_name).master(master), {**_quiet(), **local})
    return _with(builder, config).getOrCreate()


def _connect(address: str, config: Mapping[str, str]) -> SparkSession:
    """Return a session of the Spark Connect server at `address`, for example sc://localhost:15002."""
    _raise_first_problem(connect_findings())
    from pyspark.sql import SparkSession

    server = urlsplit(address)
    host, port = server.hostname or "localhost", server.port or CONNECT_PORT
    try:  # Without this test, PySpark repeats its first request for about ten minutes.
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        raise SparkUnavailableError(
            f"no Spark Connect server answers at {host}:{port} ({error}); start one with sbin/start-connect-server.sh "
            "in Spark's folder, or correct the address"
        ) from error
    settings = {name: value for name, value in _quiet().items() if name.startswith("spark.sql.")}
    return _with(SparkSession.builder.remote(address), {**settings, **config}).getOrCreate()


def _with(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def check() -> None:
    """Set JAVA_HOME to the Java that Spark will use. Raises SparkUnavailableError if a package or Java is missing."""
    _raise_first_problem(findings())
    java = find_java()
    assert java is not None, "findings() reports a problem if no Java is found"
    os.environ["JAVA_HOME"] = str(java_home(java))


def _raise_first_problem(findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.problem:
            raise SparkUnavailableError(f"{finding.problem}; to fix it: {finding.fix} (`hmb spark doctor` checks more)")


def _quiet() -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet_logging().as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
    }


def _for_this_machine() -> dict[str, str]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    return {
        "spark.driver.memory": f"{min(4 * GIB, max(GIB, memory)) // 1024**2}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }
