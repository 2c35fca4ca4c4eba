r"""The option `-f` of `hmb consume`: a format such as `%k: %v\n`, which describes how to print a record as text.

A format can contain these letters and escapes. Most of the letters are those of kcat and rpk:
    %t                    topic
    %p                    partition
    %o                    offset
    %T %d                 timestamp, in ms since 1970
    %k                    key
    %s %v                 value
    %h                    headers, such as a=1,b=2
    %H                    number of headers
    %K                    length of the key (bytes), -1 for null
    %S %V                 length of the value (bytes), -1 for null
    %R                    length of the value, as 4 bytes (big endian)
    %i                    number of the printed record: 1, 2, 3 ...
    %% %{ %}              the characters % { }
    \n \t \r \0 \xHH \\   as in C

In a format, a modifier in braces after a letter changes how the field is printed:
    text            %v{hex} %v{base64} %v{base64raw} %v{unpack[>I$]} (see `unpack`)
    numbers         %o{hex64} prints 64 bits as hexadecimal digits; also {hex32}, {hex16}, {hex8}, {hex4}
                    %o{big64} prints 64 bits as 8 bytes, big-endian; also {big32}, {big16}, {big8}
                    %o{little64} prints 8 bytes, little-endian; also {little32}, {little16}, {little8}
                    %o{byte} prints the lowest byte, %o{bool} true or false, and %o{ascii} decimal digits
    timestamps      %d{strftime[%F %T]} prints the date and time in UTC, such as 2026-11-25 12:00:00.
                    Other brackets also work: strftime(%F), strftime{%F}, strftime#%F#, strftime[[%F]].
    headers         %h{ %k=%v{hex} } prints each header in the format between the outer braces.

The letter %T has different meanings in kcat and rpk. In kcat and in `hmb consume`, %T is the timestamp of the
record. In rpk, %T is the length of the topic's name.

`hmb consume` does not support every format of rpk. It cannot print the properties of a batch (in rpk: %e %x %y
%a) or the state of a partition (%[ %| %]). It does not accept date formats of the language Go.

`hmb consume` converts a format only once, to a template for the operator `%` of Python's `bytes`. For example,
the format `%p: %v` becomes the template `b"%d: %b"`.

`hmb consume` prints many records in two steps. First, it makes a list for each letter of the format. For
example, the list for the letter `v` contains the values of all records. Then it formats one record after the
other: the operator `%` replaces each placeholder of the template with a field of the record. Functions written
in C do both steps. If `hmb consume` instead called a Python function for each letter of each record, it would
take three times as long.

For example, a poll has returned three records, and the format is `%p-%o:%v\n`. The template contains one
placeholder for each letter of the format. The columns contain the fields of the three records, with one column
for each letter:
    template   b"%d-%d:%b\n"
    columns    (0, 0, 0)  (7, 8, 9)  (b"rain", b"sun", b"fog")       ->  b"0-7:rain\n0-8:sun\n0-9:fog\n"
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hmb.units import EPOCH

from ..shared.parameters import ESCAPES, unknown_escape
from .unpack import UnpackError, parse_unpack

if TYPE_CHECKING:
    from hmb.client import ConsumerRecord

Getter = Callable[[Any], Any]  # takes a record or a header, and returns one of its fields
Column = Callable[[Sequence[Any]], Iterable[Any]]  # takes records or headers, and returns one field of each
CLOSING = {"[": "]", "{": "}", "(": ")", "#": "#"}


def _length(name: str) -> Getter:
    get = attrgetter(name)
    return lambda record: -1 if (data := get(record)) is None else len(data)


class Letters(NamedTuple):
    """The letters that can follow % in a format. Each letter has a function that returns one field of a record.

    The functions in `texts` return bytes or None. The functions in `numbers` return an int. For letters inside
    `%h{...}`, the functions return a field of a header instead of a record.
    """

    texts: dict[str, Getter]
    numbers: dict[str, Getter]


VALUE, TIMESTAMP, VALUE_LENGTH = attrgetter("value"), attrgetter("timestamp"), _length("value")
OF_RECORD = Letters(
    {"t": lambda record: record.topic.encode(), "k": attrgetter("key"), "s": VALUE, "v": VALUE},
    {
        "p": attrgetter("partition"),
        "o": attrgetter("offset"),
        "T": TIMESTAMP,
        "d": TIMESTAMP,
        "K": _length("key"),
        "S": VALUE_LENGTH,
        "V": VALUE_LENGTH,
        "H": lambda record: len(record.headers),
    },
)
HEADER_LENGTH: Getter = lambda header: -1 if header[1] is None else len(header[1])  # noqa: E731
OF_HEADER = Letters(
    {"k": lambda header: header[0].encode(), "s": itemgetter(1), "v": itemgetter(1)},
    {"K": lambda header: len(header[0].encode()), "S": HEADER_LENGTH, "V": HEADER_LENGTH},
)


def _integer(bits: int, byteorder: Any) -> Callable[[int], bytes]:
    return lambda number: (number & (1 << bits) - 1).to_bytes(bits // 8, byteorder)


def _hexadecimal(bits: int) -> Callable[[int], bytes]:
    return lambda number: b"%0*x" % (bits // 4, number & (1 << bits) - 1)


TEXT_MODIFIERS: dict[str, Callable[[bytes], bytes]] = {
    "hex": lambda text: text.hex().encode(),
    "base64": base64.b64encode,
    "base64raw": lambda text: base64.b64encode(text).rstrip(b"="),
}
NUMBER_MODIFIERS: dict[str, Callable[[int], bytes]] = {
    "ascii": lambda number: b"%d" % number,
    **{f"hex{bits}": _hexadecimal(bits) for bits in (64, 32, 16, 8, 4)},
    **{f"big{bits}": _integer(bits, "big") for bits in (64, 32, 16, 8)},
    **{f"little{bits}": _integer(bits, "little") for bits in (64, 32, 16, 8)},
    "byte": _integer(8, "big"),
    "bool": lambda number: b"true" if number else b"false",
}


@dataclass(frozen=True)
class Piece:
    """One field of a record in an output format. For example, `%v{hex}` is the value in hexadecimal.

    `hmb consume` converts the whole format to a template for Python's operator `%`. The attribute `directive` is
    the field's placeholder in this template: `%d` for a number, or `%b` for bytes.
    """

    directive: bytes
    field: Getter
    modifier: Callable[[Any], bytes] | None = None

    def column(self, null: bytes) -> Column:
        field, modifier = self.field, self.modifier
        if modifier is None:
            if self.directive == b"%d":
                return lambda records: map(field, records)
            return lambda records: [null if data is None else data for data in map(field, records)]
        return lambda records: [null if data is None else modifier(data) for data in map(field, records)]


@dataclass(frozen=True)
class RecordFormat:
    """A parsed format: its fields, such as `%p`, and the constant bytes around them.

    For example, the format `%p: %v` has three parts: `%p`, the constant bytes `: `, and `%v`. The class
    `HeaderPiece` represents `%h`. `Piece` represents every other field.
    """

    parts: Sequence[bytes | Piece | HeaderPiece]

    def writer(self, null: bytes = b"") -> Callable[[Sequence[ConsumerRecord]], bytes]:
        """Return a function that converts records to bytes. `null` is the text for null keys and values."""
        template = b"".join(
            part.replace(b"%", b"%%") if isinstance(part, bytes) else part.directive for part in self.parts
        )
        columns = [part.column(null) for part in self.parts if not isinstance(part, bytes)]
        if not columns:
            literal = template % ()
            return lambda records: literal * len(records)
        return lambda records: b"".join(
            map(template.__mod__, zip(*[column(records) for column in columns], strict=True))
        )


@dataclass(frozen=True)
class HeaderPiece:
    """The letter %h in a format: it prints all headers of a record.

    `format` is the format of one header. `separator` is printed between two headers. If a record has no headers, `none`
    is printed instead.
    """

    format: RecordFormat
    separator: bytes = b""
    none: bytes = b""
    directive = b"%b"

    def column(self, null: bytes) -> Column:
        write, separator, none = self.format.writer(null), self.separator, self.none
        return lambda records: [
            separator.join([write((header,)) for header in record.headers]) if record.headers else none
            for record in records
        ]


def parse_format(text: str) -> RecordFormat:
    """Parse the value of -f. Raises click.BadParameter, which names the position of the mistake."""
    return FormatParser(text, OF_RECORD).parse()


class FormatParser:
    """Parses a format from left to right, beginning at the index `position`."""

    def __init__(self, text: str, letters: Letters, position: int = 0) -> None:
        self._text, self._letters, self._position = text, letters, position
        self._parts: list[bytes | Piece | HeaderPiece] = []

    def parse(self, inside: bool = False) -> RecordFormat:
        """Parse the format from the present position to its end.

        If `inside` is true, the parser is inside the braces of `%h{...}`, and stops at the closing brace.
        """
        while self._position < len(self._text):
            character = self._text[self._position]
            if inside and character == "}":
                return RecordFormat(self._parts)
            if character == "%":
                self._token()
            elif character == "\\":
                self._escape()
            else:
                self._literal(os.fsencode(character), 1)
        if inside:
            raise self._mistake("the braces of %h are not closed", len(self._text))
        return RecordFormat(self._parts)

    def _literal(self, data: bytes, length: int) -> None:
        if self._parts and isinstance(self._parts[-1], bytes):
            data = self._parts.pop() + data  # type: ignore[operator]
        self._parts.append(data)
        self._position += length

    def _escape(self) -> None:
        letter = self._text[self._position + 1 : self._position + 2]
        if letter in ESCAPES:
            return self._literal(ESCAPES[letter], 2)
        digits = self._text[self._position + 2 : self._position + 4]
        if letter == "x" and len(digits) == 2 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
            return self._literal(bytes.fromhex(digits), 4)
        raise self._mistake(unknown_escape(letter), self._position)

    def _token(self) -> None:
        start = self._position
        letter = self._text[start + 1 : start + 2]
        if not letter:
            raise self._mistake("the format ends in a %; a percent sign is %%", start)
        if letter in "%{}":
            return self._literal(letter.encode(), 2)
        self._position += 2
        braced = self._text[self._position : self._position + 1] == "{"
        self._position += braced
        if letter == "h" and self._letters is OF_RECORD:
            return self._headers(braced)
        if letter == "R" and self._letters is OF_RECORD:
            if braced:
                raise self._mistake("%R takes no braces; %S{big32} prints the same", start + 2)
            return self._parts.append(Piece(b"%b", VALUE_LENGTH, NUMBER_MODIFIERS["big32"]))
        if letter in self._letters.texts:
            modifier = self._modifier(TEXT_MODIFIERS, {"unpack": self._unpack}) if braced else None
            return self._parts.append(Piece(b"%b", self._letters.texts[letter], modifier))
        return self._number(letter, braced, start)

    def _number(self, letter: str, braced: bool, start: int) -> None:
        is_counter = letter == "i" and self._letters is OF_RECORD
        if not is_counter and letter not in self._letters.numbers:
            raise self._mistake(f"%{letter} is not a letter of a format; the letters are {self._known()}", start)
        field = _counter() if is_counter else self._letters.numbers[letter]
        if not braced:
            return self._parts.append(Piece(b"%d", field))
        modifier = self._modifier(NUMBER_MODIFIERS, {"strftime": _strftime} if letter in "dT" else {})
        return self._parts.append(Piece(b"%b", field, modifier))

    def _headers(self, braced: bool) -> None:
        if not braced:
            plain = FormatParser("%k=%v", OF_HEADER).parse()
            return self._parts.append(HeaderPiece(plain, b","))
        inner = FormatParser(self._text, OF_HEADER, self._position)
        self._parts.append(HeaderPiece(inner.parse(inside=True)))
        self._position = inner._position + 1
        return None

    def _modifier(
        self,
        plain: dict[str, Callable[[Any], bytes]],
        with_argument: dict[str, Callable[[str], Callable[[Any], bytes]]],
    ) -> Callable[[Any], bytes]:
        """Parse a modifier and the `}` after it.

        Some modifiers have an argument in brackets, for example `unpack[>I]`.
        """
        start = self._position
        for name, parse in with_argument.items():
            if self._text.startswith(name, start):
                self._position += len(name)
                modifier = parse(self._argument(name))
                if self._text[self._position : self._position + 1] != "}":
                    raise self._mistake(f"a }} is missing after {name}", self._position)
                self._position += 1
                return modifier
        name, closed, _ = self._text[start:].partition("}")
        if not closed:
            raise self._mistake("this brace is not closed; a brace itself is %{", start - 1)
        if name not in plain:
            known = ", ".join([*plain, *(f"{each}[...]" for each in with_argument)])
            raise self._mistake(f"{name!r} is not a modifier; the modifiers are {known}; a brace itself is %{{", start)
        self._position += len(name) + 1
        return plain[name]

    def _argument(self, name: str) -> str:
        """Parse the brackets after a modifier's name, and return the text inside. For example, return `>I` for `[>I]`.

        After the call, `_position` is the position after the closing bracket. `_inside` is the position of the
        first character of the returned text. Error messages need `_inside`.
        """
        start = self._position
        opening = self._text[start : start + 1]
        if opening not in CLOSING or not opening:
            raise self._mistake(f"{name} requires brackets: {name}[...]", start)
        width = len(self._text[start:]) - len(self._text[start:].lstrip(opening))
        closing = CLOSING[opening] * width
        self._inside = start + width
        end = self._text.find(closing, self._inside)
        if end < 0:
            raise self._mistake(f"the {closing} of {name} is missing", len(self._text))
        self._position = end + width
        return self._text[self._inside : end]

    def _unpack(self, description: str) -> Callable[[bytes], bytes]:
        try:
            return parse_unpack(description)
        except UnpackError as error:
            raise self._mistake(str(error), self._inside + error.position) from None

    def _known(self) -> str:
        more = ("h", "R", "i") if self._letters is OF_RECORD else ()
        return " ".join(f"%{letter}" for letter in (*self._letters.texts, *self._letters.numbers, *more, "%"))

    def _mistake(self, message: str, position: int) -> click.BadParameter:
        text = "".join(character if character.isprintable() else "?" for character in self._text)
        return click.BadParameter(f"{text!r}, character {position + 1}: {message}")


def _counter() -> Getter:
    numbers = count(1)
    return lambda record: next(numbers)


def _strftime(layout: str) -> Callable[[int], bytes]:
    def write(timestamp: int) -> bytes:
        try:
            return (EPOCH + timedelta(milliseconds=timestamp)).strftime(layout).encode(errors="surrogateescape")
        except (OverflowError, ValueError):  # Python has no dates after the year 9999.
            return b"%d" % timestamp

    return write
