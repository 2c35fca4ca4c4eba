"""Run Spark on this machine: find the programs that Spark needs, and start a session.

Problem: a Spark session needs PySpark, Java and some settings. If PySpark, Java or a setting is missing, Spark's own
error is a long traceback of Java or Python.

Idea: the function `findings` checks everything that Spark needs. The function `session` starts Spark only if nothing is
missing. If something is missing, `session` raises an error, whose message names the first missing package and the
command that installs this package.

Example: PySpark is installed, but Java is not. `hmb.spark.session()` raises `SparkUnavailableError`, whose message
contains the command that installs Java. `hmb spark doctor` prints a list of everything that Spark needs, and the entry
for Java contains the same message.

A program that creates its own Spark session does not need this folder.

Read in this order:
    environment  finds the Python packages and the Java installation that Spark needs
    sessions     starts a local Spark with settings for one machine
    doctor       `hmb spark doctor`: reports everything that Spark needs
    ship         `hmb spark ship`: writes an archive with HMB for the workers of a Spark cluster
"""
