"""A local Spark: finds what Spark needs on this machine, and starts a session.

Problem: a Spark session needs PySpark, Java and some settings before it reads the first topic. If one of them is
missing, Spark's own error is a long Java or Python traceback.

Idea: `findings` checks every requirement in the same order in which Spark needs them. `session` starts Spark only if
all of them are met, and otherwise reports the first missing one with the command that installs it.

Example: PySpark is installed, and no Java is found. `hmb.spark.session()` raises `SparkUnavailableError`, whose message
contains the command that installs a Java. `hmb spark doctor` prints the same message in a list of all requirements.

A program that has a Spark session already needs nothing from this folder.

Read in this order:

    environment  finds the Python packages and the Java that Spark needs
    sessions     starts a local Spark with settings for one machine
    doctor       `hmb spark doctor`: reports everything that Spark needs
"""
