"""`hmb sniff`: look at what clients and brokers say to each other, from in between."""

import json
import re
import shutil
import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from hmb.defaults import DEFAULT_HOST, DEFAULT_SERVER

from ..shared.common import CliError, api, complete_api, json_option, servers
from ..shared.streams import reader_has_left

if TYPE_CHECKING:
    from hmb.protocol.schema import Request

    from .frame_streams import Seen
    from .frames import Frame
    from .proxy import Link

DEFAULT_LISTEN = f"{DEFAULT_HOST}:9093"
ERROR = re.compile(r"error_code=([A-Z]\w+)")
LOOK_SECONDS = 0.5  # between looks whether somebody reads the output
LONGEST_LINE = 200  # characters, where there is no terminal
SHORTEST_TEXT = 20  # characters of what a message says, however narrow the terminal


def _listen(text: str) -> str:
    """The type of an option: host:port, where port 0 is any free one."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not an address: write host:port, for example {DEFAULT_LISTEN}")
    return text


@click.command()
@click.option(
    "--listen",
    type=_listen,
    metavar="HOST:PORT",
    default=DEFAULT_LISTEN,
    show_default=True,
    help="Where clients come to.",
)
@click.option(
    "-b",
    "--to",
    "--bootstrap-server",
    "to",
    type=servers,
    metavar="HOST:PORT",
    default=DEFAULT_SERVER,
    show_default=True,
    help="The broker behind it, or several with commas, of which the first that answers is taken.",
)
@click.option(
    "--api",
    "apis",
    type=api,
    metavar="API",
    multiple=True,
    help="Only this one: Produce, 0. May be repeated.",
    shell_complete=complete_api,
)
@click.option("-v", "--verbose", is_flag=True, help="Show all fields, one a line.")
@click.option("--hex", "as_hex", is_flag=True, help="Show all fields with their bytes.")
@json_option
def command(
    listen: str, to: str, apis: "tuple[type[Request], ...]", verbose: bool, as_hex: bool, as_json: bool
) -> None:
    """Print what clients and a broker say to each other, as a proxy in between.

    Point a client to the address of --listen instead of the broker's. Each request (->) and each answer (<-) is a line:
    the number of its connection, its API and version, correlation id, size, and what it says; an answer has the time it
    took. Addresses in answers are changed, so that clients stay here. What cannot be decoded is passed on all the same.
    Ends with Ctrl-C.
    """
    from hmb.client.metadata import parse_servers

    from .proxy import Observer, Proxy
    from .readdressing import Address

    host, _, port = listen.rpartition(":")
    show: _Show = (_Documents if as_json else _Lines)(apis, verbose=verbose, as_hex=as_hex)
    brokers = [Address(node.host, node.port) for node in parse_servers(to)]
    try:
        proxy = Proxy(Address(host.strip("[]"), int(port)), brokers, Observer(show.frame, show.note))
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0]  # socket.create_server adds what it did
        raise CliError(f"cannot listen on {listen}: {why}; name another address with --listen") from error
    try:
        while not proxy.wait(LOOK_SECONDS) and not reader_has_left():
            pass
    finally:
        proxy.close()


class _Show:
    """Writes what is seen, one frame at a time: the threads of all connections come here."""

    def __init__(self, apis: "tuple[type[Request], ...]", *, verbose: bool, as_hex: bool) -> None:
        self._keys = {each.api_key for each in apis}
        self._verbose, self._as_hex = verbose, as_hex
        self._color = click.get_current_context().color
        self._lock = threading.Lock()  # guards the output, so that lines stay whole

    def frame(self, link: "Link", seen: "Seen") -> None:
        message = seen.frame and seen.frame.message
        if self._keys and (message is None or message.api_key not in self._keys):
            return
        text = self._text(link, seen, datetime.now().astimezone())
        with self._lock:
            click.echo(text, color=self._color)

    def note(self, link: "Link | None", text: str) -> None:
        raise NotImplementedError

    def _text(self, link: "Link", seen: "Seen", now: datetime) -> str:
        raise NotImplementedError


class _Lines(_Show):
    @property
    def _room(self) -> int:
        """A frame is a line on a terminal, and not much more than that elsewhere."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else LONGEST_LINE

    def note(self, link: "Link | None", text: str) -> None:
        with self._lock:
            click.echo(f"{'' if link is None else f'#{link.number} '}{text}", err=True)

    def _text(self, link: "Link", seen: "Seen", now: datetime) -> str:
        is_request = seen.question is None and seen.frame is not None
        asked = seen.frame if seen.question is None else seen.question.frame
        what = "?" if asked is None else f"{asked.api} v{(seen.frame or asked).version}"
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
        room = self._room - len(click.unstyle(" ".join(words)))
        lines = [" ".join([*words, *self._said(seen, room)]).rstrip()]
        if seen.frame is not None and (self._verbose or self._as_hex):
            lines += self._fields(seen.frame)
        return "\n".join(lines)

    def _said(self, seen: "Seen", room: int) -> list[str]:
        """What the frame says, in so many characters, and what was done to it."""
        from hmb.protocol.errors import ProtocolError

        from .frames import brief

        notes = [click.style(f"[{seen.note}]", fg="yellow")] if seen.note else []
        if seen.frame is None:
            return notes or [click.style("[not known]", fg="yellow")]
        if len(seen.frame.wire) < seen.size:
            return [click.style("[too large to look into]", fg="yellow"), *notes]
        try:
            header, body = seen.frame.decode()
        except ProtocolError as error:
            return [click.style(f"[cannot be decoded: {error}]", fg="red"), *notes]
        if seen.question is None and (client := header.client_id) is not None:
            notes.insert(0, client)
        text = brief(body) if body is not None else "[not known]"
        if errors := dict.fromkeys(ERROR.findall(text)):  # said at once: the text may be cut before them
            notes.append(click.style(" ".join(errors), fg="red"))
        room = max(SHORTEST_TEXT, room - sum(len(click.unstyle(note)) + 1 for note in notes) - 1)
        return [*notes, text if len(text) <= room else f"{text[: room - 3]}..."]

    def _fields(self, frame: "Frame") -> list[str]:
        from hmb.protocol.annotate import meaning

        problems: list[str] = []
        if self._as_hex:
            lines = ["    " + line.replace("\n", "\n    ") for line in frame.lines(problems)]
        else:
            lines = [f"    {field.field} = {meaning(field.field, field.value)}" for field in frame.fields(problems)]
        return lines + [click.style(f"    {problem}", fg="red") for problem in problems]


class _Documents(_Show):
    """JSON, a document a frame or note."""

    def note(self, link: "Link | None", text: str) -> None:
        document = {"type": "note", "connection": None if link is None else link.number, "note": text}
        with self._lock:
            click.echo(json.dumps(document, ensure_ascii=False))

    def _text(self, link: "Link", seen: "Seen", now: datetime) -> str:
        from .frames import document, to_json

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
        return to_json(fields)
