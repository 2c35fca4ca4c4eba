"""A wrong answer to lab 8: the position of the open file changes, because the code uses `lseek` and `read`."""

import os
import zlib

CHUNK = 64 * 1024  # the number of bytes to read at a time


def send_copy(descriptor, connection, offset, count):
    sent = 0
    while sent < count:
        os.lseek(descriptor, offset + sent, os.SEEK_SET)
        chunk = os.read(descriptor, min(CHUNK, count - sent))
        if not chunk:
            break  # the end of the file
        connection.sendall(chunk)
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
