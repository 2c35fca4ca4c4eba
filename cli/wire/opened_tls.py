"""Lets `hmb sniff` read connections with TLS: it decrypts the bytes of one side, and encrypts them for the other side.

The proxy of `hmb sniff` takes the place of the broker, so it needs the broker's private key and certificate:
    client  <--TLS with the broker's key-->  proxy  <--TLS, the proxy is a client-->  broker

Two threads of the proxy use each connection at the same time: one reads, and the other writes. Two threads must
not use a TLS socket of Python's module `ssl` at the same time. `OpenedTls` therefore uses an ordinary socket
for the encrypted bytes. It uses `ssl` only to encrypt and decrypt bytes in memory. A lock lets only one thread
encrypt or decrypt at a time.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from typing import NamedTuple

CHUNK = 1 << 16  # the maximum number of bytes that one recv() returns
TIMEOUT = 10.0  # seconds until a handshake must be complete


class OpenedTls:
    """A connection with TLS. The proxy calls its methods `recv`, `sendall` and `shutdown`, as for a socket."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, server_name: str | None) -> None:
        """Make the TLS handshake as a client or as a server. Raises OSError if the handshake fails.

        If `server_name` is None, this side is the server. Otherwise this side is the client, and the other side must be
        the server `server_name`.
        """
        self._plain = plain
        self._lock = threading.Lock()  # guards the fields below; its holder takes no other lock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        self._order = threading.Lock()  # held while bytes are sent, so that they stay in order; taken before `_lock`
        self._shake_hands()

    def _shake_hands(self) -> None:
        self._plain.settimeout(TIMEOUT)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._flush()
                self._read_more()
            except ssl.SSLError:
                self._flush()  # Send the TLS alert. It contains the reason why the handshake failed.
                raise
        self._flush()
        self._plain.settimeout(None)

    def recv(self, size: int) -> bytes:
        """Wait for bytes, decrypt them, and return them. Return empty bytes if the other side sends no more."""
        while True:
            with self._lock:
                try:
                    return self._tls.read(size)
                except ssl.SSLWantReadError:
                    pass
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    return b""
            self._read_more()

    def sendall(self, data: bytes) -> None:
        with self._order:
            with self._lock:
                if data:  # OpenSSL cannot encrypt an empty message.
                    self._tls.write(data)
                encrypted = self._outgoing.read()
            self._plain.sendall(encrypted)

    def shutdown(self, how: int) -> None:
        """Stop sending, receiving or both, as the method `shutdown` of a socket does.

        If `how` is SHUT_WR (stop sending), first send the TLS message which means that no more data
        follows.
        """
        if how == socket.SHUT_WR:
            with self._order:
                with self._lock:
                    with contextlib.suppress(ssl.SSLError):
                        self._tls.unwrap()
                    mark = self._outgoing.read()
                self._plain.sendall(mark)
        self._plain.shutdown(how)

    def _read_more(self) -> None:
        data = self._plain.recv(CHUNK)
        with self._lock:
            if data:
                self._incoming.write(data)
            else:
                self._incoming.write_eof()

    def _flush(self) -> None:
        self._plain.sendall(self._outgoing.read())


class TlsContexts(NamedTuple):
    """The TLS contexts of the proxy: one for its clients, and one for its connections to brokers."""

    for_clients: ssl.SSLContext
    for_brokers: ssl.SSLContext
