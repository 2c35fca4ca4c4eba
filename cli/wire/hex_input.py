"""Read bytes from binary data, from hexadecimal digits, or from a hex dump.

Text input can have one of these forms. The right column describes the form, or names the programs that print it:
    0000002b00030001 ...                            digits, with spaces, commas, colons or 0x between them
    00000000: 0000 002b 0003 0001  ...+....         xxd
    00000000  00 00 00 2b 00 03 00 01  |...+....|   hexdump -C; a line `*` stands for rows with equal bytes
    000000  00 00 00 2b              size = 43      `hmb decode`, `hmb dump-log --hex`, the tests of HMB
        000000  00 00 00 2b          size = 43      `hmb sniff --hex`; the line above the dump contains the time
        0x0000:  4500 0067 2b6c 4000 ...            tcpdump -x: packets that begin with an IP header

A dump can contain several blocks of bytes, which this module calls pieces. A row with offset 0 begins a new piece.

A dump can contain packets that tcpdump has captured. In this case, the module returns only the bytes that TCP carries,
without the headers. A connection has two directions: from the client to the broker, and back. For each direction, the
module joins the contents of all packets to one block of bytes. If a packet is missing, a new block begins after the
gap.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

# In a hex dump, a line `*` replaces repeated rows up to the next offset. A wrong offset could fill the memory, so
# `_repeat` refuses blocks above this limit (bytes).
MAX_REPEATED = 1 << 26
ROW = re.compile(r"\s*(?:0x)?([0-9a-f]{4,16}):\s+(\S.*)", re.IGNORECASE)
ROW_WITHOUT_COLON = re.compile(r"\s*([0-9a-f]{4,16})\s{1,3}([0-9a-f]{2}(?:\s.*)?)", re.IGNORECASE)
ROW_OF_WORDS = re.compile(r"[0-9a-f]{7} +[0-9a-f]{4}( +[0-9a-f]{4})*\s*", re.IGNORECASE)
OFFSET_ALONE = re.compile(r"[0-9a-f]{4,16}", re.IGNORECASE)
EXPLANATION = re.compile(r"\s{2,}[a-z_][\w.\[\]]*(: .*)? = ")
ASCII_COLUMN = re.compile(r"\s\|.*\|\s*$")
BETWEEN = re.compile(r"0x|\\x|[\s,:;'\"\[\](){}]|\bb(?=['\"])", re.IGNORECASE)
TCP = 6  # the protocol number of TCP in an IP header


class HexError(ValueError):
    """A text is neither hexadecimal digits nor a hex dump. The message contains the reason, and often the line."""


class HalfByte(HexError):
    """The number of hexadecimal digits is odd, so the last byte is incomplete."""


def read_bytes(data: bytes) -> list[bytes]:
    """Decode the input `data` (hexadecimal digits, a hex dump or binary data), and return its bytes.

    A hex dump can contain several blocks of bytes, and each block becomes one item of the list. If the blocks are
    TCP packets, the contents of all packets in one direction of a connection become one item (`_tcp_streams`).
    After a missing packet, a new item begins. Hexadecimal digits and binary data become one item.

    Raises HexError if the input is text but contains neither valid digits nor a valid dump.
    """
    if b"\0" in data:
        return [data]
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        return [data]
    rows = [row for row in map(_row, lines) if row is not None]
    if any(row[2] for row in rows) or (rows and rows[0][0] == 0):
        return _tcp_streams(list(_pieces(lines)))
    if not data.isascii():  # Digits are ASCII, so this is binary data.
        return [data]
    for line in lines:
        if ROW_OF_WORDS.fullmatch(line):
            raise HexError("the dump shows words of several bytes, not single bytes; print it with xxd or hexdump -C")
    return [_digits("\n".join(lines))]


def _digits(text: str) -> bytes:
    for number, line in enumerate(text.splitlines(), 1):
        digits = BETWEEN.sub("", line)
        if strange := re.search(r"[^0-9a-f]", digits, re.IGNORECASE):
            raise HexError(f"line {number}: {strange[0]!r} is not a hexadecimal digit")
    digits = BETWEEN.sub("", text)
    if len(digits) % 2:
        raise HalfByte(f"{len(digits)} hexadecimal digits are not a whole number of bytes")
    return bytes.fromhex(digits)


def _row(line: str) -> tuple[int, bytes, bool] | None:
    """Parse a line of a dump. Return None if the line is not a row of a dump.

    Otherwise, return the offset and the bytes of the row, and a bool. The bool is True if the line is certainly a row.
    There are two signs of such a row: a colon after the offset (`00000000: 0000 002b`), or an explanation after the
    bytes (`size = 43`). A line without these signs, for example `0000 00 2b`, can also be plain hexadecimal digits.
    """
    found = ROW.fullmatch(line)
    has_colon = found is not None
    found = found or ROW_WITHOUT_COLON.fullmatch(line)
    if found is None:
        return None
    content = found[2] if has_colon else ASCII_COLUMN.sub("", found[2])
    if content == found[2]:  # The row has no |text| column: two spaces separate the bytes from other text.
        content = re.split(r"\s{2,}", content, maxsplit=1)[0]
    digits = re.sub(r"\s", "", content)
    if len(digits) % 2 or re.search(r"[^0-9a-f]", digits, re.IGNORECASE):
        return None
    return int(found[1], 16), bytes.fromhex(digits), has_colon or EXPLANATION.search(found[2]) is not None


def _pieces(lines: list[str]) -> Iterator[bytes]:
    """Yield each block of bytes in a hex dump. Skip lines that belong to no block. Raises HexError."""
    piece, base, row, is_repeated = bytearray(), 0, b"", False
    for number, line in enumerate(lines, 1):
        if line.strip() == "*":
            is_repeated = True
            continue
        found = _row(line)
        if found is None and not (piece and OFFSET_ALONE.fullmatch(line)):
            continue
        offset, data = (found[0], found[1]) if found else (int(line, 16), b"")
        if is_repeated:
            _repeat(piece, row, base, offset, number)
        elif offset == 0 and piece:
            yield bytes(piece)
            piece, base = bytearray(), 0
        if not piece:
            base = offset
        if offset - base != len(piece) and data:
            raise HexError(f"line {number}: offset {offset:x} follows {base + len(piece):x}: rows are missing")
        piece, row, is_repeated = piece + data, data or row, False
    yield bytes(piece)


def _repeat(piece: bytearray, row: bytes, base: int, offset: int, number: int) -> None:
    """Append `row` to the piece again and again until the piece ends at `offset`. The piece begins at `base`.

    In a dump, one line `*` stands for all following rows that are equal to the row before it.
    """
    end = offset - base
    if not row or not len(piece) <= end <= MAX_REPEATED:
        raise HexError(f"line {number}: the line `*` cannot stand for rows up to offset {offset:x}")
    while len(piece) < end:
        piece += row[: end - len(piece)]


# Packets of TCP


class _Segment(NamedTuple):
    flow: tuple[bytes, bytes]  # the bytes of the IP addresses, and the bytes of the ports
    sequence: int
    payload: bytes


def _tcp_streams(pieces: list[bytes]) -> list[bytes]:
    """Join the contents of TCP packets, and return one block of bytes for each direction of a connection.

    One direction is from the client to the broker, and the other is from the broker to the client. If a packet is
    missing, a new block begins after the gap. If `pieces` contains no TCP packet, return `pieces` unchanged.
    """
    segments = [_segment(piece) for piece in pieces]
    if not any(segments):
        return pieces
    streams: dict[tuple[bytes, bytes], list[bytes]] = {}
    expected: dict[tuple[bytes, bytes], int] = {}
    for segment in segments:
        if segment is None or not segment.payload:
            continue
        flow, sequence, payload = segment
        ahead = (expected.get(flow, sequence) - sequence) % 2**32
        if 0 < ahead < 2**31:  # The segment begins with bytes that an earlier segment already contained.
            payload, sequence = payload[ahead:], sequence + ahead
        elif ahead:
            streams[flow].append(b"")  # A packet is missing. The bytes after it begin a new piece.
        pieces_of_flow = streams.setdefault(flow, [b""])
        pieces_of_flow[-1] += payload
        expected[flow] = (sequence + len(payload)) % 2**32
    return [piece for flow in streams.values() for piece in flow if piece]


def _segment(packet: bytes) -> _Segment | None:
    """Return the TCP segment of a packet. Return None if the packet contains no TCP segment.

    The packet may begin with an Ethernet header.
    """
    if packet[12:14] in (b"\x08\x00", b"\x86\xdd") and packet[14:15] and packet[14] >> 4 in (4, 6):
        packet = packet[14:]
    try:
        if packet[0] >> 4 == 4 and packet[9] == TCP:
            start, addresses = (packet[0] & 15) * 4, packet[12:20]
            end = struct.unpack_from(">H", packet, 2)[0] or len(packet)
        elif packet[0] >> 4 == 6 and packet[6] == TCP:
            start, addresses = 40, packet[8:40]
            end = start + struct.unpack_from(">H", packet, 4)[0]
        else:
            return None
        sequence = struct.unpack_from(">I", packet, start + 4)[0]
        data = start + (packet[start + 12] >> 4) * 4
    except (IndexError, struct.error):
        return None
    return _Segment((addresses, packet[start : start + 4]), sequence, packet[data:end])
