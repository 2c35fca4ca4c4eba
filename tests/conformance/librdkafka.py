"""Runs librdkafka's own integration tests against a broker, each in its own process.

    python -m tests.conformance.librdkafka                        # all tests except "n/a", against HMB
    python -m tests.conformance.librdkafka --tests 0030 0081      # only these two, with their output
    python -m tests.conformance.librdkafka --against kafka43

`librdkafka.txt` lists the expected result of each test: `pass`, `gap` (with its cause) or `n/a` (not applicable). A
test is not applicable if it needs several brokers, or a feature that the installed build of librdkafka does not have. A
test that also fails with Kafka is not applicable, either.

If a test fails although `librdkafka.txt` expects `pass`, the command exits with code 1. If a test passes although
`librdkafka.txt` expects `gap`, the command prints a remark. A developer can then update `librdkafka.txt`.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from hmb.bench import peers
from tests.conformance.java_clients import QUICK_START
from tests.conformance.librdkafka_security import SecuredListeners
from tests.conformance.matrix import BROKERS
from tests.conformance.tools.shell_tools import TOOLS

LIST = Path(__file__).with_suffix(".txt")
TEST_SECONDS = 300
# Settings of the cluster on which librdkafka's authors run the tests. The tests expect topics with four partitions.
CONFIG = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    # Every client may do everything, until a test creates an ACL for a topic or a group.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
# Tests that start `kafka-acls` several times. With the variable CI, librdkafka gives a test three times as much time.
WITH_ACLS = {"0081", "0109", "0115", "0119"}
SCRIPTS = ("kafka-topics", "kafka-acls")  # the tools of Kafka that the tests call


class Expectation(NamedTuple):
    """One line of the list: the test's number, the expected result, and the reason if the test does not pass."""

    test: str
    expected: str
    reason: str


def expectations() -> dict[str, Expectation]:
    lines = (line.split(maxsplit=2) for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    return {test: Expectation(test, expected, "".join(reason)) for test, expected, *reason in lines}


def tests_folder() -> Path:
    folder = Path(os.environ.get("HMB_LIBRDKAFKA") or peers.FETCHED / "librdkafka") / "tests"
    if not (folder / "test-runner").exists():
        raise peers.PeerUnavailable(f"no test-runner in {folder}: run tests/conformance/fetch_librdkafka.sh")
    return folder


def known_tests(folder: Path) -> list[str]:
    return sorted(match[0] for path in folder.glob("0*.c*") if (match := re.match(r"\d{4}", path.name)))


def make_scripts(folder: Path) -> None:
    """Create shell scripts like those in Kafka's `bin/`, because the tests call them."""
    (folder / "bin").mkdir()
    for name in SCRIPTS:
        script = folder / "bin" / f"{name}.sh"
        tool = peers.java(peers.kafka_43_jars(), TOOLS[name], options=QUICK_START)
        script.write_text(f'#!/bin/sh\nexec {shlex.join(tool)} "$@"\n')
        script.chmod(0o755)


def run_test(folder: Path, test: str, bootstrap: str, secured: SecuredListeners, log: Path) -> bool:
    """Run one test, and write its output to `log`. Return True if it passed. A skipped test has not passed."""
    with tempfile.TemporaryDirectory() as temporary:
        make_scripts(Path(temporary))
        settings = Path(temporary) / "test.conf"
        lines = secured.client_settings(test) | {"test.topic.random": "true"}
        settings.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        environment = {
            **os.environ,
            "TESTS": test,
            "TEST_MODE": "bare",
            "TEST_KAFKA_VERSION": "4.0.0",
            "RDKAFKA_TEST_CONF": str(settings),
            "KAFKA_PATH": temporary,
            "BROKERS": bootstrap,
            "LD_LIBRARY_PATH": f"{folder.parent / 'src'}:{folder.parent / 'src-cpp'}",
            **secured.environment(test),
        }
        if test in WITH_ACLS:
            environment["CI"] = "true"
        command = [str(folder / "test-runner"), "-Q", "-p1"]
        with log.open("wb") as output:
            try:
                done = subprocess.run(
                    command, cwd=folder, env=environment, stdout=output, stderr=output, timeout=TEST_SECONDS
                )
            except subprocess.TimeoutExpired:
                output.write(b"\nnot done in time\n")
                return False
    ran = re.search(rf"^\|.* {test}_\w+ +\| +PASSED", log.read_text(errors="replace"), re.MULTILINE)
    return done.returncode == 0 and ran is not None


def main() -> int:
    parser = argparse.ArgumentParser(description="Run librdkafka's integration tests against a broker.")
    parser.add_argument("--tests", nargs="*", help='the numbers of the tests (default: all tests except "n/a")')
    parser.add_argument("--logs", type=Path, default=None, help="a folder for the output of the tests")
    parser.add_argument("--against", choices=BROKERS, default="hmb")
    options = parser.parse_args()
    folder, expected = tests_folder(), expectations()
    wanted = options.tests or [test for test in known_tests(folder) if expected.get(test, _NEW).expected != "n/a"]
    logs = options.logs or Path(tempfile.mkdtemp(prefix="hmb-librdkafka-"))
    logs.mkdir(parents=True, exist_ok=True)
    print(f"output of the tests: {logs}", flush=True)
    secured = SecuredListeners(logs)
    config = CONFIG | secured.config
    with BROKERS[options.against](logs / "broker", port=secured.port, config=config) as broker:
        secured.create_user()
        results = run_tests(folder, wanted, broker.bootstrap, secured, logs, expected)
    worse = [test for test, passes in results.items() if not passes and expected.get(test, _NEW).expected == "pass"]
    print(f"{sum(results.values())} of {len(results)} pass; failed although `pass` is expected: {worse or 'none'}")
    return 1 if worse else 0


def run_tests(
    folder: Path,
    tests: list[str],
    bootstrap: str,
    secured: SecuredListeners,
    logs: Path,
    expected: dict[str, Expectation],
) -> dict[str, bool]:
    results: dict[str, bool] = {}
    for test in tests:
        started = time.monotonic()
        results[test] = run_test(folder, test, bootstrap, secured, logs / f"{test}.log")
        before = expected.get(test, _NEW).expected
        remark = "" if (before == "pass") == results[test] else f"   (the list says {before})"
        seconds = time.monotonic() - started
        print(f"{test} {'pass' if results[test] else 'FAIL'} {seconds:6.1f} s{remark}", flush=True)
    return results


_NEW = Expectation("", "new", "")

if __name__ == "__main__":
    sys.exit(main())
