"""A wrong answer to lab 8: `send_copy` ignores that `connection.send` may send fewer bytes than it was given."""

import os
import zlib
from contextlib import suppress

CHUNK = 64 * 1024  # the number of bytes to read at a time


def send_copy(descriptor, connection, offset, count):
    sent = 0
    while sent < count:
        chunk = os.pread(descriptor, min(CHUNK, count - sent), offset + sent)
        if not chunk:
            break  # the end of the file
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.send(chunk)
        connection.setblocking(True)
        sent += len(chunk)
    return sent


def send_zero_copy(descriptor, connection, offset, count):
    sent = 0
    while sent < count:
        done = os.sendfile(connection.fileno(), descriptor, offset + sent, count - sent)
        if done == 0:
            break  # the end of the file
        sent += done
    return sent


def checksum(descriptor, offset, count):
    crc, done = 0, 0
    while done < count:
        chunk = os.pread(descriptor, min(CHUNK, count - done), offset + done)
        if not chunk:
            break
        crc = zlib.crc32(chunk, crc)
        done += len(chunk)
    return crc
