"""Measures how much processor time a broker needs for one login over SCRAM.

In a login with SCRAM, the client computes thousands of hashes, and the broker computes only a few. If the broker had to
compute thousands of hashes, a stranger could keep the broker busy with logins.

The login of a user that does not exist must not be faster or slower than other logins. Otherwise, the duration of a
login would show which users exist.

A measured login includes the connection of the client. The broker accepts the connection, answers ApiVersions,
SaslHandshake and two SaslAuthenticate requests, and closes the connection.

When the broker refuses a login, it waits before it answers, and uses no processor time while it waits. The duration of
a login therefore does not show how much work the broker does, so the benchmark measures only the processor time.
Several clients log in at the same time. Otherwise, the waiting would make the benchmark slow.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from hmb.client import Connection
from hmb.client.metadata import parse_servers
from hmb.client.security.settings import client_security
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.metadata import MetadataRequest

from ..peers import PeerFailed
from .brokers import MECHANISM, PASSWORD, USER, SecuredBroker

STRANGER = "mallory"  # no user has this name
USERS = {"known user": USER, "unknown user": STRANGER}
CLIENTS = 8  # the number of clients that log in at the same time


def login_cpu_ms(broker: SecuredBroker, user: str, logins: int) -> float:
    """Log in `logins` times. Return the processor time (ms) that the broker needs for one login.

    The broker must accept the user USER, and must refuse the user STRANGER, who does not exist. Otherwise, the
    function raises PeerFailed.
    """
    attempt: Callable[[int], bool] = partial(_is_accepted, broker.login, user)
    before = broker.plain.cpu_seconds()
    with ThreadPoolExecutor(CLIENTS) as clients:
        accepted = sum(clients.map(attempt, range(logins)))
    seconds = broker.plain.cpu_seconds() - before
    if accepted != (logins if user == USER else 0):
        raise PeerFailed(f"{broker.name} accepted {accepted} of {logins} logins of the user {user}")
    return seconds / logins * 1000


def _is_accepted(address: str, user: str, _number: int) -> bool:
    """Log in on a new connection. Return whether the broker accepts the user."""
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": MECHANISM}
    settings |= {"sasl.username": user, "sasl.password": PASSWORD}
    try:
        with Connection(*parse_servers(address)[0], security=client_security(settings)) as connection:
            connection.send(MetadataRequest(topics=[]))
    except KafkaError as error:
        if error.code != ErrorCode.SASL_AUTHENTICATION_FAILED:
            raise
        return False
    return True
