"""The beginning of your answer to lab 8: two ways from a file to a socket.

Complete `answer.py`, and check it with `hmb lab check 8`.
"""


def send_copy(descriptor, connection, offset, count):
    """Read `count` bytes of a file from `offset` on, and send them. Return the number of bytes sent."""
    return 0


def send_zero_copy(descriptor, connection, offset, count):
    """Send `count` bytes of a file from `offset` on with `os.sendfile`. Return the number of bytes sent."""
    return 0


def checksum(descriptor, offset, count):
    """Return the CRC-32 of `count` bytes of a file, from `offset` on."""
    return 0
