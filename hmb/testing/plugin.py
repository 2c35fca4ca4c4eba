"""The pytest plugin: options, fixtures, and the report of a failed test.

pytest imports this module at each start, even in a project that does not use Kafka. To keep this start fast, only the
fixtures import the broker.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from hmb.testing.clock import ManualClock
    from hmb.testing.embedded import Broker
    from hmb.testing.faults import Faults
    from hmb.testing.report import LastLines
    from hmb.testing.request_record import RequestRecord

LONGEST_NAME = 200  # characters of a topic's name before the random letters; Kafka allows 249 characters in total


class Session(NamedTuple):
    """The embedded broker of a test session, and the last lines that this broker has logged."""

    broker: Broker
    log: LastLines


SESSION = pytest.StashKey[Session]()
LEFT_OPEN = pytest.StashKey[int]()  # the number of connections that were still open when the broker stopped
KEPT = pytest.StashKey[str]()  # the broker's data directory, if the user gave --hmb-keep


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("hmb", "HMB, the Kafka-compatible broker")
    group.addoption(
        "--hmb-bootstrap",
        metavar="HOST:PORT",
        help="test against this broker; tests that use hmb_broker itself are skipped",
    )
    group.addoption(
        "--hmb-keep",
        action="store_true",
        help="keep the broker's data directory and the topics of the tests; the end of the run names the directory",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--hmb-keep") and (directory := config.stash.get(KEPT, "")):
        terminalreporter.write_line(f"hmb: the broker's data is kept in {directory}")
    if left := config.stash.get(LEFT_OPEN, 0):
        what = "1 connection of a client was" if left == 1 else f"{left} connections of clients were"
        terminalreporter.write_line(f"hmb: {what} open after the last test; close each client (`with` does it)")


@pytest.fixture(scope="session")
def hmb_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Return the embedded broker of this test session. With pytest-xdist, each worker process has its own broker.

    With `--hmb-bootstrap` the tests use another broker, so pytest skips a test that needs the embedded one.
    """
    from hmb.testing.clock import ManualClock
    from hmb.testing.embedded import Broker
    from hmb.testing.report import LastLines

    config = request.config
    if config.getoption("--hmb-bootstrap"):
        pytest.skip("the test uses the embedded broker, but --hmb-bootstrap names another one")
    if config.getoption("--hmb-keep"):
        config.stash[KEPT] = tempfile.mkdtemp(prefix="hmb-kept-")
    log = LastLines()
    log.start()
    try:
        with Broker(config.stash.get(KEPT, None), clock=ManualClock()) as broker:
            config.stash[SESSION] = Session(broker, log)
            yield broker
            del config.stash[SESSION]
            config.stash[LEFT_OPEN] = broker.open_connections
    finally:
        log.stop()


@pytest.fixture
def hmb_faults(hmb_broker: Broker) -> Iterator[Faults]:
    """Return the faults of the embedded broker. After the test, remove all faults, also those of the disk."""
    with hmb_broker.faults as faults:
        yield faults
    hmb_broker.disk.clear()


@pytest.fixture
def hmb_requests(hmb_broker: Broker) -> Iterator[RequestRecord]:
    """Return the record of the requests that clients send during this test. It is empty when the test begins."""
    requests = hmb_broker.requests
    requests.clear()
    yield requests
    requests.stop()


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
        if not hmb_broker.is_running:
            hmb_broker.start()
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
    test = re.sub(r"[^a-zA-Z0-9_-]+", "-", request.node.name).strip("-")
    name = f"{test[:LONGEST_NAME]}-{secrets.token_hex(4)}"
    session = request.config.stash.get(SESSION, None)
    is_kept = request.config.getoption("--hmb-keep")
    if session is None:
        yield from _remote_topic(kafka_bootstrap_servers, name, is_kept=is_kept)
        return
    broker = session.broker
    if not broker.is_running:  # A test that ran before this test has stopped the broker.
        broker.start()
    broker.create_topic(name)
    yield name
    if broker.is_running and name in broker.topics() and not is_kept:
        broker.delete_topic(name)


def _remote_topic(servers: str, name: str, *, is_kept: bool) -> Iterator[str]:
    from hmb.client import Admin, NewTopic

    with Admin(servers) as admin:
        admin.create_topics([NewTopic(name, 1)])
        yield name
        if not is_kept:
            admin.delete_topics([name])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if (session := item.config.stash.get(SESSION, None)) is not None:
        session.log.lines.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    session = item.config.stash.get(SESSION, None)
    uses_broker = {"hmb_broker", "kafka_bootstrap_servers"} & set(getattr(item, "fixturenames", ()))
    if report.failed and session is not None and uses_broker:
        from hmb.testing.report import last_records, last_requests

        report.sections.append(("hmb: log of the broker", "\n".join(session.log.lines)))
        report.sections.append(("hmb: last records", last_records(session.broker)))
        if requests := last_requests(session.broker):
            report.sections.append(("hmb: last requests", requests))
    return report
