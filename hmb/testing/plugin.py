"""The pytest plugin: options, fixtures, and the report of a failed test.

pytest imports this module at each start, even in a project that does not use Kafka. To keep this start fast, only the
fixtures import the broker.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hmb.testing.clock import ManualClock
    from hmb.testing.embedded import Broker
    from hmb.testing.faults.requests import Faults
    from hmb.testing.fixtures.session import Session
    from hmb.testing.request_record import RequestRecord

LONGEST_NAME = 200  # characters of a topic's name before the random digits; Kafka allows 249 characters in total


SESSION: pytest.StashKey[Session] = pytest.StashKey()
TEST = pytest.StashKey[str]()  # the id of the current test
SUMMARY = pytest.StashKey[list[str]]()  # the lines that pytest prints at the end of the test run


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hmb", "HMB, the Kafka-compatible broker")
    group.addoption(
        "--hmb-bootstrap",
        metavar="HOST:PORT",
        help="run the tests with this broker; pytest skips the tests that need HMB's embedded broker",
    )
    group.addoption(
        "--hmb-keep",
        action="store_true",
        help="keep the topics of the tests and the broker's data directory; pytest prints the directory's path",
    )
    group.addoption(
        "--hmb-ui",
        action="store_true",
        help="after a failed test, print a link to the page of its broker, and wait for Enter",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the address in `--hmb-bootstrap` once, so that a wrong address is reported once and not by each test."""
    servers: str | None = config.getoption("--hmb-bootstrap")
    if servers is None or hasattr(config, "workerinput"):  # a worker of pytest-xdist
        return
    from hmb.client import Admin, HmbError

    try:
        with Admin(servers) as admin:
            admin.list_topics()
    except (HmbError, ValueError, TimeoutError) as error:
        raise pytest.UsageError(f"--hmb-bootstrap: {error}") from None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(SUMMARY, []):
        terminalreporter.write_line(f"hmb: {line}")


def _add_to_summary(config: pytest.Config, *lines: str) -> None:
    """Print lines at the end of the test run. A worker of pytest-xdist sends the lines to the main process."""
    summary = config.stash.setdefault(SUMMARY, [])
    summary.extend(lines)
    if hasattr(config, "workeroutput"):
        config.workeroutput["hmb"] = summary


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """At the end of the test run, print the lines that a pytest-xdist worker has sent. A crashed worker sends none."""
    _add_to_summary(node.config, *getattr(node, "workeroutput", {}).get("hmb", []))


@pytest.fixture(scope="session")
def hmb_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Return the embedded broker of this test session. With pytest-xdist, each worker process has its own broker.

    With `--hmb-bootstrap` the tests use another broker, so pytest skips a test that needs the embedded broker.
    """
    from hmb.testing.clock import ManualClock
    from hmb.testing.embedded import Broker
    from hmb.testing.fixtures.report import LastLines
    from hmb.testing.fixtures.session import Session

    config = request.config
    if config.getoption("--hmb-bootstrap"):
        pytest.skip("the test uses the embedded broker, but --hmb-bootstrap names another one")
    directory = tempfile.mkdtemp(prefix="hmb-kept-") if config.getoption("--hmb-keep") else None
    if directory is not None:
        _add_to_summary(config, f"the broker's data is kept in {directory}")
    log = LastLines()
    log.start()
    try:
        with Broker(directory, clock=ManualClock()) as broker:
            config.stash[SESSION] = session = Session(broker, log)
            session.begin(config.stash.get(TEST, ""))
            yield broker
            del config.stash[SESSION]
            _add_to_summary(config, *session.left_open())
    finally:
        log.stop()


@pytest.fixture(scope="session")
def hmb_secure_broker() -> Iterator[Broker]:
    """Return an embedded broker with TLS and the user `alice`, whose password is `alice-secret`.

    The dict `hmb_secure_broker.security` contains the settings for a client. HMB's clients take the dict as their
    argument `security`. Other Kafka clients take each setting separately, for example `sasl.password`.
    """
    from hmb.testing.embedded import Broker

    with Broker(users={"alice": "alice-secret"}, tls=True) as broker:
        yield broker


@pytest.fixture
def hmb_faults(hmb_broker: Broker) -> Faults:
    """Return the object that simulates faults in the broker. The plugin removes all faults after each test."""
    return hmb_broker.faults


@pytest.fixture
def hmb_requests(hmb_broker: Broker) -> RequestRecord:
    """Return the record of the requests that clients send during this test. At the start of a test, it is empty."""
    return hmb_broker.requests


@pytest.fixture
def hmb_clock(hmb_broker: Broker) -> Iterator[ManualClock]:
    """Return the clock of the embedded broker.

    If a test has moved the clock, the fixture deletes all topics and groups after the test, and sets the clock back to
    the real time. Records with timestamps in the future would otherwise disturb the next test.
    """
    clock = hmb_broker.clock
    assert clock is not None
    yield clock
    if clock.has_moved:
        hmb_broker.reset()
        clock.restore_real_time()


@pytest.fixture(scope="session")
def kafka_bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """Return the address of the broker (`host:port`). Clients of every Kafka library can connect to it."""
    given: str | None = request.config.getoption("--hmb-bootstrap")
    return given or request.getfixturevalue("hmb_broker").bootstrap_servers


@pytest.fixture
def hmb_topic(request: pytest.FixtureRequest, kafka_bootstrap_servers: str) -> Iterator[str]:
    """Return the name of a new topic with one partition. The topic is deleted after the test."""
    name = _fresh_name(request)
    session = request.config.stash.get(SESSION, None)
    is_kept = request.config.getoption("--hmb-keep")
    if session is None:
        yield from _remote_topic(kafka_bootstrap_servers, name, is_kept=is_kept)
        return
    broker = session.broker
    broker.create_topic(name)
    yield name
    if name in broker.topics() and not is_kept:
        broker.delete_topic(name)


@pytest.fixture
def hmb_group(request: pytest.FixtureRequest) -> str:
    """Return a name for a consumer group that no other test uses."""
    return _fresh_name(request)


def _fresh_name(request: pytest.FixtureRequest) -> str:
    test = re.sub(r"[^a-zA-Z0-9_-]+", "-", request.node.name).strip("-")
    return f"{test[:LONGEST_NAME]}-{secrets.token_hex(4)}"


def _remote_topic(servers: str, name: str, *, is_kept: bool) -> Iterator[str]:
    from hmb.client import Admin, NewTopic

    with Admin(servers) as admin:
        admin.create_topics([NewTopic(name, 1)])
        yield name
        if not is_kept:
            admin.delete_topics([name])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[TEST] = item.nodeid
    if (session := item.config.stash.get(SESSION, None)) is not None:
        session.begin(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Remove all faults, and start the broker if it is stopped. The fixtures then delete the test's topic."""
    if (session := item.config.stash.get(SESSION, None)) is not None:
        session.restore()


def pytest_exception_interact(node: pytest.Item | pytest.Collector, report: pytest.TestReport) -> None:
    """With `--hmb-ui`, serve the broker's page after a failed test. pytest ends the test's fixtures afterwards."""
    session = node.config.stash.get(SESSION, None)
    if session is None or not node.config.getoption("--hmb-ui") or not _uses_broker(node):
        return
    from hmb.testing.fixtures.page import keep_open

    capture: Any = node.config.pluginmanager.getplugin("capturemanager")
    reporter: Any = node.config.pluginmanager.getplugin("terminalreporter")
    capture.suspend(in_=True)  # pytest otherwise replaces standard input by an empty one.
    try:
        keep_open(session.broker, node.nodeid, reporter.write_line if reporter else print)
    finally:
        capture.resume()


def _uses_broker(node: pytest.Item | pytest.Collector) -> bool:
    return bool({"hmb_broker", "kafka_bootstrap_servers"} & set(getattr(node, "fixturenames", ())))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    session = item.config.stash.get(SESSION, None)
    if report.failed and session is not None and _uses_broker(item):
        report.sections.extend(session.sections())
    return report
