"""Listeners: the addresses on which the broker accepts connections, and the addresses that it sends to its clients.

A client first connects to an address that its user has configured. The client sends a Metadata request. The response
contains the *advertised address* of the listener that the client has connected to. For all further connections, the
client uses the advertised address.

If a listener has the port 0, the system selects a free port when the broker binds the listener. The broker then
advertises this port.

Each listener has a name and a security protocol. The setting `listener.security.protocol.map` maps names to
protocols. If the setting does not contain the name of a listener, the name itself can be a protocol, such as
SSL. The listener then uses this protocol. Otherwise, it uses PLAINTEXT. The module `hmb.security.protocols`
describes the four protocols.
"""

from __future__ import annotations

import errno
import logging
import re
import socket
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from hmb.broker.config.broker import BrokerConfig
from hmb.broker.config.keys import ConfigError
from hmb.protocol.errors import HmbError
from hmb.security.protocols import SecurityProtocol

LOGGER = logging.getLogger(__name__)
LISTENER = re.compile(r"(?P<name>[A-Z0-9_.-]+)://(?P<host>\[[^\]]*\]|[^:\[\]]*):(?P<port>\d{1,5})", re.IGNORECASE)
BACKLOG = 512
ADVICE = {
    errno.EADDRINUSE: "stop the program that uses the port, or choose another port with --port (0: any free port)",
    errno.EADDRNOTAVAIL: "choose an address of this machine with --host",
    errno.EACCES: "choose a port from 1024 on with --port",
}
WILDCARDS = ("", "0.0.0.0", "::")


class Listener(NamedTuple):
    """One listener: the address on which it accepts connections, and the address that the broker sends to clients."""

    name: str
    host: str
    port: int
    advertised_host: str
    advertised_port: int
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    def __str__(self) -> str:
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def advertised(self) -> str:
        return f"{_bracketed(self.advertised_host)}:{self.advertised_port}"


def real_settings(properties: Mapping[str, str], listeners: Iterable[Listener], directory: Path) -> dict[str, str]:
    """Return a copy of `properties` in which `log.dirs` and `log.dir` contain the path `directory`.

    If `properties` has no setting `advertised.listeners`, the function adds this setting. The value contains the
    advertised addresses of `listeners`.
    """
    advertised = ",".join(f"{listener.name}://{listener.advertised}" for listener in listeners)
    directories = dict.fromkeys(("log.dirs", "log.dir"), str(directory))
    return {"advertised.listeners": advertised, **properties, **directories}


class BindError(HmbError):
    """The error for an address on which the broker cannot accept connections. The message contains the reason."""


def parse_listeners(config: BrokerConfig, unopened: Collection[str] = ()) -> list[Listener]:
    """Return the listeners that the settings of `config` contain. Leave out the listeners with a name in `unopened`.

    Raises ConfigError.
    """
    advertised = {
        name: (host, port) for name, host, port in _parse("advertised.listeners", config.advertised_listeners)
    }
    protocols = _parse_protocols(config.listener_protocols)
    listeners = []
    for name, host, port in _parse("listeners", config.listeners):
        if name in unopened:
            advertised.pop(name, None)
            continue
        default_host = host
        if host in WILDCARDS and name not in advertised:
            default_host = socket.gethostname()
            LOGGER.warning(
                "clients connect to the advertised address %s; if it is wrong, set advertised.listeners=%s://host:port",
                *(default_host, name),
            )
        told_host, told_port = advertised.pop(name, (default_host, port))
        protocol = protocols.get(name, SecurityProtocol.PLAINTEXT)
        listeners.append(Listener(name, host, port, told_host, told_port, protocol))
    if not listeners:
        raise ConfigError("name a listener, such as PLAINTEXT://127.0.0.1:9092", "listeners", config.listeners)
    if advertised:
        problem = f"{', '.join(advertised)} is not among the listeners"
        raise ConfigError(problem, "advertised.listeners", config.advertised_listeners)
    return listeners


def bind(listener: Listener) -> tuple[socket.socket, Listener]:
    """Bind a listener. Return its socket, and a copy of the listener that contains the bound port. Raises BindError."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listener.host, listener.port))
        bound.listen(BACKLOG)
    except (socket.gaierror, UnicodeError) as error:
        bound.close()
        raise BindError(
            f"cannot resolve {listener.host!r}, the host of a listener; check the name, or use an IP address"
        ) from error
    except OSError as error:
        bound.close()
        advice = ADVICE.get(error.errno or 0, "choose another address with --host and --port")
        raise BindError(f"cannot listen on {listener}: {error.strerror}; {advice}") from error
    port = bound.getsockname()[1]
    return bound, listener._replace(port=port, advertised_port=listener.advertised_port or port)


def _parse(setting: str, text: str) -> list[tuple[str, str, int]]:
    addresses = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = LISTENER.fullmatch(part)
        if match is None or int(match["port"]) > 65535:
            raise ConfigError(f"{part!r} is not NAME://host:port", setting, text)
        addresses.append((match["name"].upper(), match["host"].strip("[]"), int(match["port"])))
    return addresses


def _parse_protocols(text: str) -> dict[str, SecurityProtocol]:
    """Parse `listener.security.protocol.map`. Return a mapping from listener names, in capitals, to protocols.

    A user does not need to list a listener whose name is a protocol, such as SSL. So the mapping also contains the
    name of each protocol. Raises ConfigError if a part of the setting is not NAME:PROTOCOL.
    """
    protocols = {str(each): each for each in SecurityProtocol}
    for part in filter(None, (part.strip().upper() for part in text.split(","))):
        name, _, protocol = part.partition(":")
        if protocol not in SecurityProtocol.__members__:
            problem = f"{part!r} is not NAME:PROTOCOL, with one of the protocols {', '.join(SecurityProtocol)}"
            raise ConfigError(problem, "listener.security.protocol.map", text)
        protocols[name] = SecurityProtocol(protocol)
    return protocols


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
