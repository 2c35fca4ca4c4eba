"""`hmb decode`: bytes of Kafka's protocol, from wherever they were copied, field by field."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..shared.common import DAMAGE, ERROR, NOT_FOUND, USAGE, CliError, api, complete_api, json_option

if TYPE_CHECKING:
    from hmb.protocol.schema import Request, Response

    from .frames import Frame

MAX_INPUT = 64 << 20  # bytes: some times the largest frame
SMALLEST = 4  # bytes of an answer: its correlation id
MAX_FITS = 8  # responses that the bytes might be, in an error


class Wanted(NamedTuple):
    """What the user says that the bytes are."""

    request: "type[Request] | None"
    version: int | None
    is_response: bool
    is_records: bool

    @property
    def response(self) -> "type[Response] | None":
        from hmb.protocol.messages import response_class

        return None if self.request is None else response_class(self.request.api_key)


@click.command()
@click.argument("words", nargs=-1, type=click.Path(), metavar="[HEX... | FILE]")
@click.option(
    "--api",
    "wanted_api",
    type=api,
    metavar="API",
    help="Of which API the message is: Produce, 0.",
    shell_complete=complete_api,
)
@click.option("--version", type=click.IntRange(0), metavar="N", help="In which version it is.")
@click.option("--response", "is_response", is_flag=True, help="It is an answer; takes --api and --version.")
@click.option("--records", "is_records", is_flag=True, help="It is record batches or a message set, without a message.")
@json_option
def command(
    words: tuple[str, ...],
    wanted_api: "type[Request] | None",
    version: int | None,
    is_response: bool,
    is_records: bool,
    as_json: bool,
) -> None:
    """Show what the bytes of a message mean, a field a line.

    The bytes are given as hexadecimal digits, or in a FILE, or on standard input: binary, digits, what xxd, hexdump -C
    or tcpdump -x printed, or `hmb sniff --hex`, or this command. A request says what it is; a response does not, so
    name its --api and --version, unless its request stands before it. What is wrong is named on standard error with
    its position, and the command ends with exit code 5.
    """
    wanted = Wanted(wanted_api, version, is_response, is_records)
    if is_records and (is_response or wanted_api or version is not None):
        raise click.UsageError("--records excludes --api, --version and --response")
    if version is not None and wanted_api is None:
        raise click.UsageError("--version is that of an API: name it with --api")
    if wanted.request is not None and version is not None and version not in wanted.request.versions:
        versions = wanted.request.versions
        raise click.UsageError(f"hmb knows this API in versions {versions[0]} to {versions[-1]}, not {version}")
    name, data = _input(words)
    damages = unknown = 0
    for number, frame in enumerate(_frames(_pieces(name, data), wanted)):
        problems: list[str] = []
        _print(frame, number, problems, as_json)
        sys.stdout.flush()
        if frame.is_unknown:
            unknown += 1
        else:
            damages += len(problems)
        for problem in problems:
            click.echo(f"hmb: {name}: {frame.title()}: {problem}", err=True)
    if damages:
        raise CliError(f"{name}: damage found in {damages} place{'s' * (damages > 1)}", DAMAGE)
    if unknown:
        click.get_current_context().exit(ERROR)


def _print(frame: "Frame", number: int, problems: list[str], as_json: bool) -> None:
    from .frames import document, to_json

    if as_json:
        fields = [field.fields() for field in frame.fields(problems)]
        click.echo(to_json(document(frame) | {"fields": fields, "problems": problems}))
        return
    sys.stdout.write("\n" * bool(number) + frame.title() + "\n")
    for line in frame.lines(problems):
        sys.stdout.write(line + "\n")


# What to read


def _input(words: tuple[str, ...]) -> tuple[str, bytes]:
    """The name of the input and what it is: a file, the words themselves, standard input."""
    if not words or words == ("-",):
        if sys.stdin.isatty():
            click.echo("paste the bytes, then press Ctrl-D on a line of its own", err=True)
        data = sys.stdin.buffer.read(MAX_INPUT + 1)
        name = "standard input"
    elif len(words) == 1 and _is_file(words[0]):
        name = words[0]
        with Path(name).open("rb") as file:
            data = file.read(MAX_INPUT + 1)
    else:
        return "the arguments", _as_digits(words)
    if len(data) > MAX_INPUT:
        raise CliError(f"{name}: more than {MAX_INPUT >> 20} MB; `hmb dump-log` reads files of a log of any size")
    if not data:
        raise CliError(f"{name} is empty; give the bytes of a message")
    return name, data


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except OSError:  # digits can be longer than a name may be
        return False


def _as_digits(words: tuple[str, ...]) -> bytes:
    from .hex_input import HalfByte, HexError, read_bytes

    text = " ".join(words).encode()
    try:
        read_bytes(text)
    except HexError as error:
        if len(words) == 1 and not isinstance(error, HalfByte):
            raise CliError(f"{words[0]}: no such file, and no hexadecimal digits", NOT_FOUND) from error
        raise CliError(f"the arguments: {error}", USAGE) from error
    return text


def _pieces(name: str, data: bytes) -> list[memoryview]:
    from .hex_input import HexError, read_bytes

    try:
        pieces = [memoryview(piece) for piece in read_bytes(data) if piece]
    except HexError as error:
        raise CliError(f"{name}: {error}", USAGE) from error
    if not pieces:
        raise CliError(f"{name}: no bytes in it")
    return pieces


# What the bytes are


def _frames(pieces: Iterable[memoryview], wanted: Wanted) -> Iterator["Frame"]:
    """The messages of all pieces; a response is known by its correlation id, where its request came before."""
    asked: dict[int, list[Frame]] = {}  # the last one first; each connection has numbers of its own
    for piece in pieces:
        position = 0
        while position < len(piece):
            frame = _recognize(piece[position:], wanted, asked)
            if frame.kind == "request" and frame.message is not None:
                asked.setdefault(_int32(frame.wire, frame.start + 4), []).insert(0, frame)
            yield frame
            position += len(frame.wire)


def _recognize(data: memoryview, wanted: Wanted, asked: "dict[int, list[Frame]]") -> "Frame":
    """The message at the beginning of the data: what the user says, or what the bytes can be."""
    from hmb.protocol.annotate import SIZE

    from .frames import NO_VERSION, Frame, fits, request_frame

    if wanted.is_records or (not wanted.is_response and wanted.request is None and _are_records(data)):
        return Frame("records", data, None, NO_VERSION, sized=False)
    size = _int32(data, 0)
    wire = data[: SIZE + size] if size >= SMALLEST else data
    response = wanted.response
    answers = [_answer(each, wire) for each in asked.get(_int32(wire, 4), ())] if response is None else []
    if not wanted.is_response:
        sized, bare = request_frame(wire), request_frame(data, sized=False)
        for request, exactly in ((sized, True), (bare, True), (sized, False)):
            is_wanted = wanted.request in (None, request.message) and wanted.version in (None, request.version)
            if is_wanted and fits(request, exactly=exactly):
                return request
            if answers and request is bare:
                return next(filter(fits, answers), answers[0])
    if response is not None and wanted.version is not None:
        bare = Frame("response", data, response, wanted.version, sized=False)
        return bare if fits(bare) else Frame("response", wire, response, wanted.version)
    request = request_frame(wire)
    if wanted.is_response or not _has_request_header(request):
        _refuse_response(wire, data, wanted)
    return request


def _answer(question: "Frame", wire: memoryview) -> "Frame":
    from hmb.protocol.messages import response_class

    from .frames import Frame

    assert question.message is not None
    return Frame("response", wire, response_class(question.message.api_key), question.version)


def _has_request_header(frame: "Frame") -> bool:
    """Whether the bytes begin like a request of somebody with a name, whatever follows."""
    from hmb.protocol.errors import ProtocolError

    try:
        client_id = frame.header()[0].client_id
    except ProtocolError:
        return False
    return bool(client_id) and client_id.isprintable()


def _refuse_response(wire: memoryview, data: memoryview, wanted: Wanted) -> None:
    """Raises CliError where the bytes are, or are said to be, a response, but nobody says of what."""
    from hmb.protocol.messages import API_KEYS, api_name, response_class

    from .frames import Frame, fits

    candidates = map(response_class, API_KEYS) if wanted.response is None else [wanted.response]
    whole = [
        f"{api_name(response.api_key)} v{version}"
        for response in candidates
        for version in response.versions
        if fits(Frame("response", wire, response, version))
        or (wanted.is_response and fits(Frame("response", data, response, version, sized=False)))
    ]
    if not whole and not wanted.is_response:
        return
    hint = f"; they could be {', '.join(whole[:MAX_FITS])}{' ...' * (len(whole) > MAX_FITS)}" if whole else ""
    what = "" if wanted.is_response else f"these {len(wire)} bytes are no request, and "
    what += "a response does not say what it answers"
    raise CliError(f"{what}: name its API and version with --api and --version{hint}", USAGE)


def _are_records(data: memoryview) -> bool:
    """Whether the data begins with a whole batch or message whose CRC is right."""
    from hmb.protocol.errors import KafkaError
    from hmb.records import parse_batch

    try:
        parse_batch(data).check()
    except KafkaError:
        return False
    return True


def _int32(data: memoryview, position: int) -> int:
    """-1 where the data ends before."""
    number = data[position : position + 4]
    return int.from_bytes(number, "big", signed=True) if len(number) == 4 else -1
