"""Listeners: the addresses on which the broker accepts connections, and the addresses that it advertises.

A client connects to any address first. The response to its Metadata request names the advertised address of the same
listener, and the client connects to that one from then on. If a listener has the port 0, the system selects a free port
when the listener is bound, and the broker advertises this port.

The setting `listener.security.protocol.map` contains the protocol of each listener name. A listener that is not in the
map and has the name of a protocol uses this protocol. All other listeners use PLAINTEXT, so a broker with two PLAINTEXT
listeners needs no map. The broker supports only PLAINTEXT. It refuses the protocols with encryption, because their
sockets must never be open without it.
"""

from __future__ import annotations

import errno
import logging
import re
import socket
from dataclasses import dataclass

from hmb.broker.config.broker_config import BrokerConfig
from hmb.broker.config.keys import ConfigError
from hmb.protocol.errors import HmbError

LOGGER = logging.getLogger(__name__)
LISTENER = re.compile(r"(?P<name>[A-Z0-9_.-]+)://(?P<host>\[[^\]]*\]|[^:\[\]]*):(?P<port>\d{1,5})", re.IGNORECASE)
BACKLOG = 512
ADVICE = {
    errno.EADDRINUSE: "stop what uses it, or choose another port with --port (0: any free one)",
    errno.EADDRNOTAVAIL: "choose an address of this machine with --host",
    errno.EACCES: "choose a port from 1024 on with --port",
}
WILDCARDS = ("", "0.0.0.0", "::")
PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Listener:
    """The address of a listener, and the address that the broker advertises for it."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int

    def __str__(self) -> str:
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def advertised(self) -> str:
        return f"{_bracketed(self.advertised_host)}:{self.advertised_port}"


class BindError(HmbError):
    """The broker cannot listen on an address. The message contains the reason, and what to do."""


def parse_listeners(config: BrokerConfig) -> list[Listener]:
    """Return the listeners that the settings name. Raises ConfigError."""
    advertised = {
        name: (host, port) for name, host, port in _parse("advertised.listeners", config.advertised_listeners)
    }
    protocols = _parse_protocols(config.listener_protocols)
    listeners = []
    for name, host, port in _parse("listeners", config.listeners):
        if (protocol := protocols.get(name, PLAINTEXT)) != PLAINTEXT:
            problem = f"{name} is {protocol}, but only PLAINTEXT is spoken here"
            raise ConfigError(problem, "listeners", config.listeners)
        default_host = host
        if host in WILDCARDS and name not in advertised:
            default_host = socket.gethostname()
            LOGGER.warning(
                "clients connect to the advertised address %s; if that is wrong, set advertised.listeners=%s://host:port",
                *(default_host, name),
            )
        told_host, told_port = advertised.pop(name, (default_host, port))
        listeners.append(Listener(name, host, port, told_host, told_port))
    if not listeners:
        raise ConfigError("nothing to listen on", "listeners", config.listeners)
    if advertised:
        problem = f"{', '.join(advertised)} is not among the listeners"
        raise ConfigError(problem, "advertised.listeners", config.advertised_listeners)
    return listeners


def bind(listener: Listener) -> tuple[socket.socket, Listener]:
    """Bind a listener; return its socket, and the listener with the port that the system assigned. Raises BindError."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listener.host, listener.port))
        bound.listen(BACKLOG)
    except (socket.gaierror, UnicodeError) as error:
        bound.close()
        raise BindError(
            f"cannot resolve {listener.host!r} to listen there; check the name, or give an address"
        ) from error
    except OSError as error:
        bound.close()
        advice = ADVICE.get(error.errno or 0, "choose another address with --host and --port")
        raise BindError(f"cannot listen on {listener}: {error.strerror}; {advice}") from error
    port = bound.getsockname()[1]
    return bound, Listener(
        listener.name, listener.host, port, listener.advertised_host, listener.advertised_port or port
    )


def _parse(setting: str, text: str) -> list[tuple[str, str, int]]:
    addresses = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = LISTENER.fullmatch(part)
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(f"{part!r} is not NAME://host:port", setting, text)
        addresses.append((match["name"].upper(), match["host"].strip("[]"), int(match["port"])))
    return addresses


def _parse_protocols(text: str) -> dict[str, str]:
    """Return the protocol of each listener name, in capitals; the names of the protocols are included."""
    protocols = {name: name for name in PROTOCOLS}
    for part in filter(None, (part.strip().upper() for part in text.split(","))):
        name, _, protocol = part.partition(":")
        if protocol not in PROTOCOLS:
            problem = f"{part!r} is not NAME:protocol, one of {', '.join(PROTOCOLS)}"
            raise ConfigError(problem, "listener.security.protocol.map", text)
        protocols[name] = protocol
    return protocols


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
