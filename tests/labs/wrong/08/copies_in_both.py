"""A wrong answer to lab 8: `send_zero_copy` reads the bytes into the memory of the program."""

import os
import zlib

CHUNK = 64 * 1024  # the number of bytes to read at a time


def send_copy(descriptor, connection, offset, count):
    sent = 0
    while sent < count:
        chunk = os.pread(descriptor, min(CHUNK, count - sent), offset + sent)
        if not chunk:
            break  # the end of the file
        connection.sendall(chunk)
        sent += len(chunk)
    return sent


def send_zero_copy(descriptor, connection, offset, count):
    sent = 0
    while sent < count:
        chunk = os.pread(descriptor, min(CHUNK, count - sent), offset + sent)
        if not chunk:
            break
        connection.sendall(chunk)
        sent += len(chunk)
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
