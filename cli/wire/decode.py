"""`hmb decode`: explain the bytes of a message in Kafka's protocol, field by field.

The bytes of a message do not show whether the message is a request, a response or record batches. `hmb decode`
therefore tries the following possibilities one after the other, and uses the first one that matches the bytes:
1. record batches: the CRC of the first batch must be right
2. a request, with or without its size: all bytes must belong to the request
3. the response to a request that is earlier in the input, with the same correlation id
4. a response of the API and version that the user names
5. a request that is damaged
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ..shared.errors import DAMAGE, ERROR, NOT_FOUND, USAGE, CliError
from ..shared.output import json_option, plural, print_json
from ..shared.parameters import IntRange, api, complete_api

if TYPE_CHECKING:
    from hmb.protocol.schema import Request, Response

    from .frames import WireFrame

MAX_INPUT = 64 << 20  # bytes: several times the largest frame
SMALLEST = 4  # bytes; the smallest response contains only a correlation id
ARGUMENTS = "the arguments"  # If the bytes are command-line arguments, error messages use this name for the input.
MAX_CANDIDATES = 8  # an error message lists at most this number of possible responses


class Expected(NamedTuple):
    """The message that the user expects: its kind (request, response or records), its API and its version."""

    request: type[Request] | None
    version: int | None
    is_response: bool
    is_records: bool

    @property
    def response(self) -> type[Response] | None:
        from hmb.protocol.messages import response_class

        return None if self.request is None else response_class(self.request.api_key)


@click.command()
@click.argument("words", nargs=-1, type=click.Path(), metavar="[HEX... | FILE]")
@click.option(
    "--api", "expected_api", type=api, metavar="API", help="The API of the message, by name or number.",
    shell_complete=complete_api
)
@click.option("--version", type=IntRange(0), metavar="N", help="The version of the message.")
@click.option(
    "--response", "is_response", is_flag=True, help="The message is a response. This needs --api and --version."
)
@click.option("--records", "is_records", is_flag=True, help="The bytes are only record batches, or only a message set.")
@json_option
def command(
    words: tuple[str, ...],
    expected_api: type[Request] | None,
    version: int | None,
    is_response: bool,
    is_records: bool,
    as_json: bool,
) -> None:
    """Explain the bytes of a message field by field.

    Write the bytes as hexadecimal digits, or name a FILE, or use standard input. FILE and standard input can
    contain binary data, hexadecimal digits, or the output of xxd, hexdump -C, tcpdump -x, `hmb sniff --hex` or
    this command.

    A response contains neither its API nor its version. Add --api and --version, or put the matching request before
    the response in the same input.

    If a message is damaged, the command reports the position on standard error, and exits with code 5.
    """
    expected = Expected(expected_api, version, is_response, is_records)
    _check(expected)
    name, pieces = _pieces(words)
    damages = unknown = 0
    for number, frame in enumerate(_frames(pieces, expected)):
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
        raise CliError(f"{name}: damage found in {plural(damages, 'place')}", DAMAGE)
    if unknown:
        click.get_current_context().exit(ERROR)


def _check(expected: Expected) -> None:
    """Raise click.UsageError for options that contradict each other."""
    if expected.is_records and (expected.is_response or expected.request or expected.version is not None):
        raise click.UsageError("--records cannot be combined with --api, --version or --response")
    if expected.version is not None and expected.request is None:
        raise click.UsageError("--version needs --api")
    if expected.request is not None and expected.version is not None:
        versions = expected.request.versions
        if expected.version not in versions:
            what = f"HMB knows versions {versions[0]} to {versions[-1]} of this API, not {expected.version}"
            raise click.UsageError(what)


def _print(frame: WireFrame, number: int, problems: list[str], as_json: bool) -> None:
    from .frames import document

    if as_json:
        fields = [field.fields() for field in frame.fields(problems)]
        print_json(document(frame) | {"fields": fields, "problems": problems})
        return
    sys.stdout.write("\n" * bool(number) + frame.title() + "\n")
    for line in frame.lines(problems):
        sys.stdout.write(line + "\n")


# Reading the input


def _input(words: tuple[str, ...]) -> tuple[str, bytes]:
    """Return the name and the contents of the input: a file, the arguments themselves, or standard input."""
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
        return ARGUMENTS, " ".join(words).encode()
    if len(data) > MAX_INPUT:
        raise CliError(f"{name}: more than {MAX_INPUT >> 20} MB; `hmb dump-log` has no such limit for log files")
    if not data:
        raise CliError(f"{name} is empty; it must contain the bytes of a message")
    return name, data


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except OSError:  # The word is too long for a file name, so the caller treats it as hexadecimal digits.
        return False


def _pieces(words: tuple[str, ...]) -> tuple[str, list[memoryview]]:
    """Return the name of the input, and its bytes as a list of blocks.

    The list usually has one block. A hex dump of several messages can have one block for each message. If the input
    contains captured packets, each direction of a connection is a separate block.

    Raises CliError if the input is wrong, for example if it is empty.
    """
    from .hex_input import HalfByte, HexError, read_bytes

    name, data = _input(words)
    try:
        pieces = [memoryview(piece) for piece in read_bytes(data) if piece]
    except HexError as error:
        if name == ARGUMENTS and len(words) == 1 and not isinstance(error, HalfByte):
            raise CliError(f"{words[0]}: neither a file nor hexadecimal digits", NOT_FOUND) from error
        raise CliError(f"{name}: {error}", USAGE) from error
    if not pieces:
        raise CliError(f"{name}: it contains no bytes")
    return name, pieces


# Recognizing the message


def _frames(pieces: Iterable[memoryview], expected: Expected) -> Iterator[WireFrame]:
    """Yield all messages in the pieces (blocks of bytes), in their order.

    The bytes of a response do not show its API. The function takes the API from an earlier request with the same
    correlation id.
    """
    # Several connections can use the same correlation id. The dict therefore maps each id to a list of all requests
    # with this id that were found so far, the newest first.
    asked: dict[int, list[WireFrame]] = {}
    for piece in pieces:
        position = 0
        while position < len(piece):
            frame = _recognize(piece[position:], expected, asked)
            if frame.kind == "request" and frame.message is not None:
                asked.setdefault(_int32(frame.wire, frame.start + 4), []).insert(0, frame)
            yield frame
            position += len(frame.wire)


def _recognize(data: memoryview, expected: Expected, asked: dict[int, list[WireFrame]]) -> WireFrame:
    """Return the message at the beginning of the data.

    A response does not contain its API and version. Raises CliError for a response if neither the user nor an
    earlier request names them.
    """
    from hmb.protocol.annotate import SIZE

    from .frames import NO_VERSION, WireFrame, fits, request_frame

    if expected.is_records or (not expected.is_response and expected.request is None and _are_records(data)):
        return WireFrame("records", data, None, NO_VERSION, sized=False)
    size = _int32(data, 0)
    wire = data[: SIZE + size] if size >= SMALLEST else data
    response = expected.response
    responses = [_response_to(each, wire) for each in asked.get(_int32(wire, 4), ())] if response is None else []
    if not expected.is_response:
        sized, bare = request_frame(wire), request_frame(data, sized=False)
        for request, exactly in ((sized, True), (bare, True), (sized, False)):
            is_expected = expected.request in (None, request.message) and expected.version in (None, request.version)
            if is_expected and fits(request, exactly=exactly):
                return request
            if responses and request is bare:
                return next(filter(fits, responses), responses[0])
    if response is not None and expected.version is not None:
        bare = WireFrame("response", data, response, expected.version, sized=False)
        return bare if fits(bare) else WireFrame("response", wire, response, expected.version)
    request = request_frame(wire)
    if expected.is_response or not _has_request_header(request):
        _refuse_response(wire, data, expected)
    return request


def _response_to(request: WireFrame, wire: memoryview) -> WireFrame:
    from hmb.protocol.messages import response_class

    from .frames import WireFrame

    assert request.message is not None
    return WireFrame("response", wire, response_class(request.message.api_key), request.version)


def _has_request_header(frame: WireFrame) -> bool:
    """Return whether the bytes begin with the header of a request.

    Other bytes can look like a header by chance. The client id in the header must therefore be printable and not
    empty.
    """
    from hmb.protocol.errors import ProtocolError

    try:
        client_id = frame.header()[0].client_id
    except ProtocolError:
        return False
    return bool(client_id) and client_id.isprintable()


def _refuse_response(wire: memoryview, data: memoryview, expected: Expected) -> None:
    """Raise CliError if the bytes match a response, or if the user has set the option --response.

    A response contains neither its API nor its version, so the user must set --api and --version. The error's
    message lists the APIs and versions whose responses match the bytes.
    """
    from hmb.protocol.messages import API_KEYS, api_name, response_class

    from .frames import WireFrame, fits

    classes = map(response_class, API_KEYS) if expected.response is None else [expected.response]
    candidates = [
        f"{api_name(response.api_key)} v{version}"
        for response in classes
        for version in response.versions
        if fits(WireFrame("response", wire, response, version))
        or (expected.is_response and fits(WireFrame("response", data, response, version, sized=False)))
    ]
    if not candidates and not expected.is_response:
        return
    shown = f"{', '.join(candidates[:MAX_CANDIDATES])}{' ...' * (len(candidates) > MAX_CANDIDATES)}"
    hint = f"; they could be {shown}" if candidates else ""
    what = "" if expected.is_response else f"these {len(wire)} bytes are not a request, and "
    what += "a response does not contain its API"
    raise CliError(f"{what}: set the API and version of the response with --api and --version{hint}", USAGE)


def _are_records(data: memoryview) -> bool:
    """Return whether the data begins with complete, undamaged records (a batch, or a message v0 or v1)."""
    from hmb.protocol.errors import KafkaError
    from hmb.records import parse_batch

    try:
        parse_batch(data).check()
    except KafkaError:
        return False
    return True


def _int32(data: memoryview, position: int) -> int:
    """Return the number in the 4 bytes at a position. Return -1 if the data is too short."""
    number = data[position : position + 4]
    return int.from_bytes(number, "big", signed=True) if len(number) == 4 else -1
