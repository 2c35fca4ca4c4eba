"""`hmb sniff`: run a proxy between clients and brokers, and print all messages that pass through it.

`hmb sniff` prints each message as one line. In this example, the first line is a request of 214 bytes, and the second
line is its response of 60 bytes. Both have the correlation id 5 and belong to connection 1 (#1):
    10:30:00.123 #1 -> Produce v13 (5) 214 B rdkafka acks=-1, topic_data=[{name='weather', ...
    10:30:00.125 #1 <- Produce v13 (5) 60 B 1.8 ms responses=[{name='weather', ...

Each line begins with the time, the number of the connection, and the direction: -> is a request, and <- is a response.
Next come the API and its version, the correlation id, and the size in bytes. A request then shows the client id. A
response instead shows the time since its request. The rest of the line contains the message's fields, which the
function `frames.brief` converts to text. If the line is wider than the terminal, the command shortens the fields.
"""

from __future__ import annotations

import re
import shutil
import sys
import threading
from abc import ABC, abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from hmb.defaults import DEFAULT_HOST
from hmb.printable import printable

from ..shared.client_options import ClientConfig, client_options, security_settings
from ..shared.errors import USAGE, CliError
from ..shared.output import json_option, print_json
from ..shared.parameters import api, complete_api
from ..shared.streams import reader_has_left

if TYPE_CHECKING:
    from hmb.protocol.schema import Request

    from .frame_streams import SeenFrame
    from .frames import WireFrame
    from .opened_tls import TlsContexts
    from .proxy import Link

DEFAULT_LISTEN = f"{DEFAULT_HOST}:9093"
ERROR = re.compile(r"error_code=([A-Z]\w+)")
CHECK_INTERVAL = 0.5  # seconds between two checks whether a program still reads the output
LONGEST_LINE = 200  # the maximum number of characters in a line, if the output is not a terminal
SHORTEST_TEXT = 20  # show at least this number of characters of a message, also on a narrow terminal


def listen_address(text: str) -> str:
    """Return the text if it is an address `host:port`. Port 0 means any free port. Raises click.BadParameter."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not an address: write host:port, for example {DEFAULT_LISTEN}")
    return text


@click.command()
@click.option(
    "--listen", type=listen_address, metavar="HOST:PORT", default=DEFAULT_LISTEN, show_default=True,
    help="The address of the proxy, to which clients connect."
)
@client_options(security_settings, server_synonyms=("--to",))
@click.option(
    "--tls-key", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="A PEM file with the broker's private key and certificate. The proxy needs both to decrypt TLS connections."
)
@click.option(
    "--api", "apis", type=api, metavar="API", multiple=True,
    help="Show only messages of this API (a name or a number). The option can be repeated.", shell_complete=complete_api
)
@click.option("-v", "--verbose", is_flag=True, help="Show all fields of each message, with one field on each line.")
@click.option("--hex", "as_hex", is_flag=True, help="Show all fields with their bytes.")
@json_option
def command(
    listen: str,
    client: ClientConfig,
    tls_key: str | None,
    apis: tuple[type[Request], ...],
    verbose: bool,
    as_hex: bool,
    as_json: bool,
) -> None:
    """Run a proxy between clients and a broker, and print all messages that pass through it.

    Clients must connect to the proxy's address (--listen) instead of the broker's address. The command prints each
    request (->) and each response (<-) as one line. In responses, the proxy replaces the addresses of brokers with its
    own addresses, so that clients connect only to the proxy. The proxy also forwards bytes that it cannot decode.
    Ctrl-C ends the command.

    The proxy can read encrypted messages only with --tls-key. To set how the proxy itself connects to the broker,
    use ssl.* settings with -X.
    """
    from hmb.client.metadata import parse_servers

    from .proxy import Observer, Proxy
    from .readdressing import Address

    host, _, port = listen.rpartition(":")
    show: _FramePrinter = (_JsonPrinter if as_json else _LinePrinter)(apis, verbose=verbose, as_hex=as_hex)
    brokers = [Address(node.host, node.port) for node in parse_servers(client.servers)]
    contexts = None if tls_key is None else _tls_contexts(tls_key, client)
    try:
        proxy = Proxy(Address(host.strip("[]"), int(port)), brokers, Observer(show.frame, show.note), contexts)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0]  # leave out the text that create_server adds
        raise CliError(f"cannot listen on {listen}: {why}; name another address with --listen") from error
    try:
        while not proxy.wait(CHECK_INTERVAL) and not reader_has_left():
            pass
    finally:
        proxy.close()


def _tls_contexts(key: str, client: ClientConfig) -> TlsContexts:
    """Return the TLS contexts of the proxy. The file `key` contains the private key and the certificate of a broker.

    Raises CliError if the file cannot be loaded, or if a setting for TLS is wrong.
    """
    import ssl

    from hmb.client.security.settings import SecuritySettingError, client_security

    from .opened_tls import TlsContexts

    for_clients = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        for_clients.load_cert_chain(key, password="")  # An empty password: OpenSSL must not ask for one.
        settings = {"security.protocol": "SSL", **client.keywords.get("security", {})}
        for_brokers = client_security(settings).context
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror or error
        raise CliError(f"--tls-key {key}: cannot load a private key and its certificate: {why}") from error
    except SecuritySettingError as error:
        raise CliError(str(error), USAGE) from error
    if for_brokers is None:
        raise CliError("--tls-key needs security.protocol=SSL or SASL_SSL", USAGE)
    return TlsContexts(for_clients, for_brokers)


class _FramePrinter(ABC):
    """Prints frames for the threads of all connections, but only one thread prints at a time."""

    def __init__(self, apis: tuple[type[Request], ...], *, verbose: bool, as_hex: bool) -> None:
        self._keys = {each.api_key for each in apis}
        self._verbose, self._as_hex = verbose, as_hex
        self._color = click.get_current_context().color
        self._lock = threading.Lock()  # guards the output: without it, two threads could mix their lines

    def frame(self, link: Link, seen: SeenFrame) -> None:
        message = seen.frame and seen.frame.message
        if self._keys and (message is None or message.api_key not in self._keys):
            return
        now = datetime.now().astimezone()
        with self._lock:
            self._print(link, seen, now)

    @abstractmethod
    def note(self, link: Link | None, text: str) -> None:
        """Print a text about a connection, or about the proxy if `link` is None."""

    @abstractmethod
    def _print(self, link: Link, seen: SeenFrame, now: datetime) -> None:
        """Print one frame. The caller must hold the lock `self._lock`."""


class _LinePrinter(_FramePrinter):
    """Prints each frame as one line. With -v or --hex, the fields of the frame follow."""

    @property
    def _width(self) -> int:
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else LONGEST_LINE

    def note(self, link: Link | None, text: str) -> None:
        with self._lock:
            click.echo(f"{'' if link is None else f'#{link.number} '}{text}", err=True)

    def _print(self, link: Link, seen: SeenFrame, now: datetime) -> None:
        is_request = seen.request is None and seen.frame is not None
        known = seen.frame if seen.request is None else seen.request.frame
        what = "?" if known is None else f"{known.api} v{(seen.frame or known).version}"
        words = [
            f"{now:%H:%M:%S}.{now.microsecond // 1000:03}",
            f"#{link.number}",
            click.style("->" if is_request else "<-", fg="blue" if is_request else "green"),
            click.style(what, bold=True),
            f"({seen.correlation_id})",
            f"{seen.size} B",
        ]
        if seen.elapsed is not None:
            words.append(f"{1000 * seen.elapsed:.1f} ms")
        room = self._width - len(click.unstyle(" ".join(words)))
        lines = [" ".join([*words, *self._contents(seen, room)]).rstrip()]
        if seen.frame is not None and (self._verbose or self._as_hex):
            lines += self._fields(seen.frame)
        click.echo("\n".join(lines), color=self._color)

    def _contents(self, seen: SeenFrame, room: int) -> list[str]:
        """Return the last parts of a line: the client id of a request, notes, errors, and the message's fields.

        The line has space for `room` more characters. If the parts need more space, shorten the fields, but not below
        SHORTEST_TEXT characters. If the frame cannot be decoded, a note says so.
        """
        from hmb.protocol.errors import ProtocolError

        from .frames import brief

        notes = [click.style(f"[{seen.note}]", fg="yellow")] if seen.note else []
        if seen.frame is None:
            return notes or [click.style("[unknown]", fg="yellow")]
        if len(seen.frame.wire) < seen.size:
            return [click.style("[too large to decode]", fg="yellow"), *notes]
        try:
            header, body = seen.frame.decode()
        except ProtocolError as error:
            return [click.style(f"[cannot be decoded: {error}]", fg="red"), *notes]
        if seen.request is None and (client := header.client_id) is not None:
            notes.insert(0, printable(client))
        text = brief(body) if body is not None else "[unknown]"
        if errors := dict.fromkeys(ERROR.findall(text)):  # Errors come first, because the line may be cut.
            notes.append(click.style(" ".join(errors), fg="red"))
        room = max(SHORTEST_TEXT, room - sum(len(click.unstyle(note)) + 1 for note in notes) - 1)
        return [*notes, text if len(text) <= room else f"{text[: room - 3]}..."]

    def _fields(self, frame: WireFrame) -> list[str]:
        from hmb.protocol.annotate import meaning

        problems: list[str] = []
        if self._as_hex:
            lines = ["    " + line.replace("\n", "\n    ") for line in frame.lines(problems)]
        else:
            lines = [f"    {field.field} = {meaning(field.field, field.value)}" for field in frame.fields(problems)]
        return lines + [click.style(f"    {problem}", fg="red") for problem in problems]


class _JsonPrinter(_FramePrinter):
    """Prints each frame and each note as a line of JSON."""

    def note(self, link: Link | None, text: str) -> None:
        with self._lock:
            print_json({"type": "note", "connection": None if link is None else link.number, "note": text})

    def _print(self, link: Link, seen: SeenFrame, now: datetime) -> None:
        from .frames import document

        fields: dict[str, Any] = {"type": "response"} if seen.frame is None else document(seen.frame)
        header = fields.pop("header", None) or {}
        body = fields.pop("body", None)
        fields |= {"correlation_id": seen.correlation_id, "client_id": header.get("client_id"), "size": seen.size}
        fields |= {"time": now.isoformat(timespec="milliseconds"), "connection": link.number, "note": seen.note}
        fields |= {"client": str(link.client), "broker": str(link.broker)}
        if seen.elapsed is not None:
            fields["elapsed_ms"] = round(1000 * seen.elapsed, 3)
        if self._verbose:
            fields["body"] = body
        if self._as_hex and seen.frame is not None:
            problems: list[str] = []
            fields["fields"] = [field.fields() for field in seen.frame.fields(problems)]
            fields["problems"] = problems
        print_json(fields)
