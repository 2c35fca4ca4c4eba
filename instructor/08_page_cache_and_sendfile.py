"""One correct answer to the second exercise of lab 8: a response that never waits."""

import os


class Response:
    def __init__(self, descriptor, parts):
        self.descriptor = descriptor
        self.parts = [part for part in parts if (len(part) if isinstance(part, bytes) else part[1])]

    def write(self, connection):
        while self.parts:
            try:
                rest = self._send(connection, self.parts[0])
            except BlockingIOError:
                return False
            self.parts[:1] = [rest] if rest else []
        return True

    def _send(self, connection, part):
        """Send the beginning of a part, and return its rest, or None if nothing remains."""
        if isinstance(part, bytes):
            return part[connection.send(part) :]
        offset, count = part
        sent = os.sendfile(connection.fileno(), self.descriptor, offset, count)
        if sent == 0:
            raise EOFError(f"the file ends at {offset}, and {count} bytes are missing")
        return (offset + sent, count - sent) if sent < count else None
