"""Tests of the option `-f`: the output for each letter of a format, and the errors for incomplete formats."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.cli.records.formats import parse_format
from hmb.cli.records.unpack import LETTERS, UnpackError, parse_unpack
from hmb.client import ConsumerRecord
from hmb.records import TimestampType

HEADERS = (("a", b"1"), ("b", None), ("a", b"\xff"))
RECORD = ConsumerRecord("t", 3, 258, 1645000000123, TimestampType.CREATE_TIME, b"key", b"\x00\x01val", HEADERS)
TOMBSTONE = ConsumerRecord("t", 3, 259, -1, TimestampType.NO_TIMESTAMP_TYPE, None, None, ())


def write(text: str, record: ConsumerRecord = RECORD, null: bytes = b"") -> bytes:
    return parse_format(text).writer(null)([record])


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("%t [%p] %o", b"t [3] 258"),
        (r"%k\t%s\n", b"key\t\x00\x01val\n"),
        ("%v", b"\x00\x01val"),
        ("%K %S %V %H %T", b"3 5 5 3 1645000000123"),
        ("%R", b"\x00\x00\x00\x05"),
        ("100%% %{%} \\\\ \\x41\\0", b"100% {} \\ A\0"),
        ("%h", b"a=1,b=,a=\xff"),
        ("%h{ %k=%v{hex}}%%", b" a=31 b= a=ff%"),
        ("%h{%K:%V%}}", b"1:1}1:-1}1:1}"),
        ("%k{hex} %k{base64} %k{base64raw}", b"6b6579 a2V5 a2V5"),
        ("%s{base64} %s{base64raw}", b"AAF2YWw= AAF2YWw"),
        ("%v{unpack[>Hs]}", b"1val"),
        ("%v{unpack{{<H c.$}}}", b"256va($: 1 bytes left)"),
        ("%o{hex64} %o{hex8} %o{hex4} %o{bool} %o{ascii}", b"0000000000000102 02 2 true 258"),
        ("%o{big64}%o{big16}%o{little32}%o{byte}", b"\0\0\0\0\0\0\1\2\1\2\2\1\0\0\2"),
        ("%d{strftime[%F %T]}", b"2022-02-16 08:26:40"),
        ("%d{strftime### [%F] ###}", b" [2022-02-16] "),
        ("%T{strftime(%H:%M)}", b"08:26"),
        ("%d %d{big8}", b"1645000000123 {"),
        ("é€\udcff%p", "é€".encode() + b"\xff3"),
        ("", b""),
        (r"no letter\n", b"no letter\n"),
    ],
)
def test_letters(text: str, printed: bytes) -> None:
    assert write(text) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("%k,%s,%K,%S,%H,%h", b"NULL,NULL,-1,-1,0,"),
        ("%R", b"\xff\xff\xff\xff"),
        ("%s{hex}", b"NULL"),
        ("%T %d{strftime[%F]}", b"-1 1969-12-31"),
    ],
)
def test_null_is_printed_as_its_marker_and_with_length_minus_one(text: str, printed: bytes) -> None:
    assert write(text, TOMBSTONE, b"NULL") == printed


def test_a_timestamp_outside_the_calendar_is_printed_as_a_number() -> None:
    assert write("%d{strftime[%F]}", RECORD._replace(timestamp=2**63 - 1)) == b"9223372036854775807"


def test_many_records_and_their_count() -> None:
    writer = parse_format(r"%i:%o\n").writer()
    assert writer([RECORD, TOMBSTONE]) + writer([RECORD]) + writer([]) == b"1:258\n2:259\n3:258\n"
    assert parse_format("x").writer()([RECORD, RECORD]) == b"xx"


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("%t %q", "%q is not a letter of a format; the letters are %t %k", 3),
        ("%t 50%", "ends in a %", 5),
        (r"%t\q", r"'\q' is not an escape", 2),
        (r"\x4", r"'\x' is not an escape", 0),
        ("%v{rot13}", "'rot13' is not a modifier; the modifiers are hex, base64, base64raw, unpack[...]", 3),
        ("%p{hex", "this brace is not closed", 2),
        ("%p{strftime[%F]}", "'strftime[%F]' is not a modifier; the modifiers are ascii", 3),
        ("%v{unpack}", "unpack requires brackets: unpack[...]", 9),
        ("%v{unpack[>I}", "the ] of unpack is missing", 13),
        ("%v{unpack[>I]", "a } is missing after unpack", 13),
        ("%v{unpack[>Iz]}", "'z' is not a letter of unpack", 12),
        ("%v{unpack[sI]}", "no letter can follow s or $", 11),
        ("%h{%k", "the braces of %h are not closed", 5),
        ("%h{%o}", "%o is not a letter of a format; the letters are %k %s %v %K %S %V %%", 3),
        ("%R{hex}", "%R takes no braces", 2),
    ],
)
def test_a_mistake_is_shown_with_its_place(text: str, message: str, place: int) -> None:
    with pytest.raises(click.BadParameter) as caught:
        parse_format(text)
    assert message in caught.value.message
    assert caught.value.message.startswith(f"{text!r}, character {place + 1}: ")


@given(st.text(alphabet="%{}[]()#\\x0ntkvshTdpoKR41unpackstrftimehex \n\x00é", max_size=30))
def test_any_format_is_parsed_or_refused(text: str) -> None:
    try:
        written = parse_format(text)
    except click.BadParameter:
        return
    assert isinstance(written.writer(b"-")([RECORD, TOMBSTONE]), bytes)


@pytest.mark.parametrize(
    ("description", "data", "printed"),
    [
        ("b B", b"\xff\xff", b"-1255"),
        ("<h>h", b"\x01\x00\x01\x00", b"1256"),
        ("iIqQ", b"\xff" * 24, b"-14294967295-118446744073709551615"),
        ("cxc", b"ab", b"ab"),
        (">I", b"\x01", b"(I: 1 of 4 bytes)"),
        ("c$", b"", b"(c: 0 of 1 bytes)"),
        ("ccI", b"", b"(c: 0 of 1 bytes)(c: 0 of 1 bytes)(I: 0 of 4 bytes)"),
        ("s", b"rest", b"rest"),
    ],
)
def test_unpack(description: str, data: bytes, printed: bytes) -> None:
    assert parse_unpack(description)(data) == printed


@given(st.text(alphabet=LETTERS, max_size=8), st.binary(max_size=20))
def test_unpack_takes_any_data(description: str, data: bytes) -> None:
    try:
        unpack = parse_unpack(description)
    except UnpackError:
        return
    assert isinstance(unpack(data), bytes)
