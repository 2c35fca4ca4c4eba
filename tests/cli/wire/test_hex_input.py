"""Tests of the input of `hmb decode`: it accepts bytes in several text formats."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hmb.cli.wire.hex_input import HexError, read_bytes

BYTES = bytes(range(0x20, 0x52))
XXD = """\
00000000: 2021 2223 2425 2627 2829 2a2b 2c2d 2e2f   !"#$%&'()*+,-./
00000010: 3031 3233 3435 3637 3839 3a3b 3c3d 3e3f  0123456789:;<=>?
00000020: 4041 4243 4445 4647 4849 4a4b 4c4d 4e4f  @ABCDEFGHIJKLMNO
00000030: 5051                                     PQ
"""
HEXDUMP = """\
00000000  20 21 22 23 24 25 26 27  28 29 2a 2b 2c 2d 2e 2f  | !"#$%&'()*+,-./|
00000010  30 31 32 33 34 35 36 37  38 39 3a 3b 3c 3d 3e 3f  |0123456789:;<=>?|
00000020  40 41 42 43 44 45 46 47  48 49 4a 4b 4c 4d 4e 4f  |@ABCDEFGHIJKLMNO|
00000030  50 51                                             |PQ|
00000032
"""
ANNOTATED = """\
Some message v0, 50 bytes
000000  20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f  name: string = 'aa bb'
000010  30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f
000020  40 41 42 43                                      count = 66
000024  44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50 51        rest = 12
"""
OD = "\n".join(f"{n:06x} {BYTES[n : n + 16].hex(' ')}" for n in range(0, 50, 16)) + "\n000032\n"


@pytest.mark.parametrize(
    "text",
    [
        BYTES.hex(),
        BYTES.hex(" ").upper(),
        BYTES.hex(":"),
        "\n".join(f"0x{byte:02x}," for byte in BYTES),
        "b'" + "".join(f"\\x{byte:02x}" for byte in BYTES) + "'",
        XXD,
        HEXDUMP,
        ANNOTATED,
        OD,
        XXD.replace("\n", "\r\n"),
    ],
)
def test_text(text: str) -> None:
    assert read_bytes(text.encode()) == [BYTES]


def in_ascii(row: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)


def as_xxd(data: bytes) -> str:
    rows = [(n, data[n : n + 16]) for n in range(0, len(data), 16)]
    return "".join(f"{n:08x}: {row.hex(' ', -2):<39}  {in_ascii(row)}\n" for n, row in rows)


def as_hexdump(data: bytes) -> str:
    lines, last = [], b""
    for n in range(0, len(data), 16):
        row = data[n : n + 16]
        if row != last:
            digits = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"
            lines.append(f"{n:08x}  {digits:<48}  |{in_ascii(row)}|")
        elif lines[-1] != "*":
            lines.append("*")
        last = row
    return "\n".join([*lines, f"{len(data):08x}"])


@pytest.mark.parametrize("written", [as_xxd, as_hexdump])
@given(
    st.binary(min_size=1).map(lambda data: data.translate(bytes(range(256)).replace(b"\1", b" ").replace(b"\2", b"|")))
)
@example(b"x |abc|")
@example(b"ab |cd|")
@example(bytes(100))
def test_whatever_bytes_a_dump_shows(written: Callable[[bytes], str], data: bytes) -> None:
    assert read_bytes(written(data).encode()) == [data]


def test_binary() -> None:
    assert read_bytes(b"\0\0\0\x16\0\3") == [b"\0\0\0\x16\0\3"]
    assert read_bytes(b"\xff\xfe") == [b"\xff\xfe"]


def test_rows_that_are_like_the_one_before() -> None:
    text = "00000000  00 00 00 00 00 00 00 01  00 00 00 00 00 00 00 02  |................|\n*\n00000035\n"
    row = bytes.fromhex("0000000000000001 0000000000000002")
    assert read_bytes(text.encode()) == [row * 3 + row[:5]]


def test_an_offset_of_0_begins_another_piece() -> None:
    assert read_bytes((XXD + "an answer:\n" + HEXDUMP).encode()) == [BYTES, BYTES]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("00 0", "3 hexadecimal digits are not a whole number of bytes"),
        ("00 01\n02 0g", "line 2: 'g' is not a hexadecimal digit"),
        (XXD.replace("00000010:", "00000040:"), "line 2: offset 40 follows 10: rows are missing"),
        ("0000000 0000 2b00 0300\n0000006\n", "words of several bytes, not single bytes"),
        ("00000000  00 00  |..|\n*\nffffffffffff\n", r"line 3: the line `\*` cannot stand for rows up to offset f{12}"),
        ("00000100: 00 00\n*\n000000f0: 00 01\n", r"line 3: the line `\*` cannot stand for rows up to offset f0$"),
    ],
)
def test_input_that_is_not_valid(text: str, problem: str) -> None:
    with pytest.raises(HexError, match=problem):
        read_bytes(text.encode())


def packet(source: int, target: int, sequence: int, payload: bytes) -> bytes:
    """Return an IPv4 packet with one TCP segment. The headers of IP and of TCP each have an option."""
    tcp = source.to_bytes(2, "big") + target.to_bytes(2, "big") + sequence.to_bytes(4, "big") + bytes(4)
    tcp += b"\x60\x18" + bytes(10)
    size = 24 + len(tcp) + len(payload)
    return b"\x46\0" + size.to_bytes(2, "big") + bytes(5) + b"\x06" + bytes(14) + tcp + payload


def tcpdump(*packets: bytes) -> bytes:
    rows = []
    for each in packets:
        rows.append("12:00:00.000001 IP localhost.40000 > localhost.9092: Flags [P.], length 9")
        rows += [f"\t0x{n:04x}:  {each[n : n + 16].hex(' ', 2)}" for n in range(0, len(each), 16)]
    return "\n".join(rows).encode()


def test_packets() -> None:
    there = [packet(1, 2, 2**32 - 3, b"first "), packet(1, 2, 3, b"second"), packet(1, 2, 3, b"second, ")]
    back = [packet(2, 1, 7, b"answer"), packet(2, 1, 13, b"")]
    assert read_bytes(tcpdump(there[0], back[0], *there[1:], back[1])) == [b"first second, ", b"answer"]


def test_a_missing_packet_begins_another_piece() -> None:
    assert read_bytes(tcpdump(packet(1, 2, 0, b"abc"), packet(1, 2, 5, b"fgh"))) == [b"abc", b"fgh"]


def test_packets_with_an_ethernet_header() -> None:
    assert read_bytes(tcpdump(bytes(12) + b"\x08\x00" + packet(1, 2, 0, b"abc"))) == [b"abc"]


SNIFFED = "21:42:45.916 #1 -> Some v0 (0) 50 B hmb\n" + "".join(f"    {line}\n" for line in ANNOTATED.splitlines()[1:])


def test_the_output_of_sniff_is_accepted_as_hexadecimal() -> None:
    assert read_bytes((SNIFFED * 2).encode()) == [BYTES, BYTES]
    assert read_bytes(SNIFFED.replace("aa bb", "\u00e4\u00f6").encode()) == [BYTES]


def test_some_rows_of_the_output_of_sniff() -> None:
    assert read_bytes("\n".join(SNIFFED.splitlines()[3:]).encode()) == [BYTES[0x20:]]
