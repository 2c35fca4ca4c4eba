"""The beginning of your answer to lab 8: two ways to send bytes from a file to a socket.

Complete `answer.py`, and check it with `hmb lab check 8`.
"""


def send_copy(descriptor, connection, offset, count):
    """Read `count` bytes of a file, starting at `offset`, and send them. Return the number of bytes sent."""
    return 0


def send_zero_copy(descriptor, connection, offset, count):
    """Use `os.sendfile` to send `count` bytes of a file, starting at `offset`. Return the number of bytes sent."""
    return 0


def checksum(descriptor, offset, count):
    """Return the CRC-32 of `count` bytes of a file, starting at `offset`."""
    return 0
