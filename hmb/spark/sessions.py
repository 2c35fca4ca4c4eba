"""A Spark on this machine that just works: `spark = hmb.spark.session()`.

It finds a Java (`environment`), lets Spark's Python workers run this Python (they would take whatever `python3` is on
the PATH), registers the data source `hmb`, and has settings for a laptop, each of which `config` may change:

    memory      a quarter of the machine's, from 1 to 4 GB, for the one process in which a local Spark runs
    partitions  as many as there are cores after a shuffle, where Spark thinks of a cluster and takes 200
    network     127.0.0.1 only, with no need that the machine's name can be resolved
    time zone   UTC, so that a timestamp reads the same on every machine; Spark would take the machine's
    output      errors only: no warnings, no progress bar; no web page (spark.ui.enabled=true brings it back)

With another master, such as spark://host:7077, the settings of the machine are left to that cluster.

What no setting changes: Spark gives a Python process that a query needs 10 seconds to start.  On a machine that is too
busy for that, the query fails with "Python worker failed to connect back", and is to be started again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hmb.spark.environment import SparkUnavailableError, find_java, findings, java_home, quiet_logging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIB = 1024**3


def session(app_name: str = "hmb", master: str = "local[*]", config: Mapping[str, str] | None = None) -> SparkSession:
    """A SparkSession; the one that runs already, if there is one, whose settings stay but for those of `config`.

    SparkUnavailableError says what is missing.
    """
    check()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from hmb.spark.source import HmbDataSource

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # no name of this machine has to be looked up
    builder = SparkSession.builder
    if SparkContext._active_spark_context is None:  # of whatever thread; getActiveSession() tells of this one
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
    """SparkUnavailableError if something is missing; sets JAVA_HOME to the Java that was found."""
    for finding in findings():
        if finding.problem:
            raise SparkUnavailableError(f"{finding.problem}; to fix it: {finding.fix}  (hmb spark doctor tells all)")
    java = find_java()
    assert java is not None, "it was among the findings"
    os.environ["JAVA_HOME"] = str(java_home(java))


def _quiet() -> dict[str, str]:
    return {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet_logging().as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }


def _for_this_machine() -> dict[str, str]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    return {
        "spark.driver.memory": f"{min(4 * GIB, max(GIB, memory)) // 1024**2}m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 1),
    }
