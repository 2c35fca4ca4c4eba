"""Start Spark on this machine without any configuration: `spark = hmb.spark.session()`.

Problem: Spark on one machine needs Java, the right Python interpreter for its workers, and settings for one machine. If
one of these three is missing or wrong, Spark fails, with a different error message in each case.

The function `session` finds Java (module `environment`) and registers the data source `hmb`. By default, Spark's
workers run the first `python3` on the PATH. With `session`, the workers run the same Python interpreter as the
calling program.

The session has these settings, which suit a laptop. The argument `config` can change each of them:
    memory      a quarter of the machine's memory, between 1 and 4 GB, for Spark's Java process
    partitions  after a shuffle: one for each core; Spark's default is 200, which suits a cluster
    network     127.0.0.1 only, so Spark does not have to resolve the machine's name
    time zone   UTC, so a timestamp looks the same on every machine; Spark's default is the machine's time zone
    filters     Spark passes the filters of a batch query to the data source (module `hmb.spark.filters`)
    output      errors only: no warnings, no progress bar, no web page (spark.ui.enabled=true enables the page)

If `master` names a cluster, such as spark://host:7077, the session does not change the cluster's settings for memory,
network and partitions.

Limit: Spark waits 10 seconds for a Python worker to start, and no setting changes this time. On a very busy machine, a
query can fail with "Python worker failed to connect back". In this case, start the query again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hmb.spark.local.environment import SparkUnavailableError, find_java, findings, java_home, quiet_logging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIB = 1024**3


def session(app_name: str = "hmb", master: str = "local[*]", config: Mapping[str, str] | None = None) -> SparkSession:
    """Return the running SparkSession, or start one.

    If a session is already running, only the settings in `config` change. Raises SparkUnavailableError, whose message
    names what is missing.
    """
    check()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from hmb.spark.source import HmbDataSource

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # Spark then does not resolve the machine's name.
    builder = SparkSession.builder
    # A process has at most one Spark context. A test with getActiveSession() would not be enough, because this method
    # finds a session only in the thread that has started the session.
    if SparkContext._active_spark_context is None:
        local = _for_this_machine() if master.startswith("local") else {}
        builder = _with(builder.appName(app_name).master(master), {**_quiet(), **local})
    spark = _with(builder, config or {}).getOrCreate()
    spark.dataSource.register(HmbDataSource)
    return spark


def _with(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def check() -> None:
    """Set JAVA_HOME to the Java that Spark will use. Raises SparkUnavailableError if a package or Java is missing."""
    for finding in findings():
        if finding.problem:
            raise SparkUnavailableError(f"{finding.problem}; to fix it: {finding.fix} (`hmb spark doctor` checks more)")
    java = find_java()
    assert java is not None, "findings() reports a problem if no Java is found"
    os.environ["JAVA_HOME"] = str(java_home(java))


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
