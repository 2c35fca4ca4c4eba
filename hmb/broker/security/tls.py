"""TLS on the broker's side: the context of a listener, and the socket of an encrypted connection.

A TLS connection begins with a *handshake*. The client sends a ClientHello, and the broker answers with its certificate.
Both sides agree on keys, and all later bytes are encrypted. The handshake takes a few milliseconds, and the client can
delay it. Therefore the thread of the connection makes the handshake, and not the thread that accepts connections.

If a client sends plain text to a listener with TLS, the broker recognizes this from the first byte. A TLS connection
begins with the byte 22. A request in plain text begins with its length, whose first byte is 0. The broker logs the
mistake in one line and sends a TLS alert, so that the client can also report the mistake.

When somebody replaces the file of a certificate, the next connection uses the new certificate. For each new connection,
`TlsListener.context` checks whether the modification time or the size of a file has changed.

The broker uses `sendfile` only for listeners without TLS. With `sendfile`, the kernel sends the bytes of a file
unchanged. With TLS, HMB's process must encrypt the bytes before it sends them.
"""

from __future__ import annotations

import io
import logging
import socket
import ssl
import threading
from collections.abc import Sequence
from typing import Any, cast

from hmb.broker.errors import CloseConnection
from hmb.broker.network.sending import MAX_ENCRYPTED_AT_ONCE
from hmb.broker.security.mapping_rules import MappingRule, distinguished_name, principal_name
from hmb.broker.security.principals import ANONYMOUS, USER
from hmb.security.stores import TlsSettingError, TlsSettings

LOGGER = logging.getLogger(__name__)
HANDSHAKE = 22  # the first byte that a TLS client sends; in the TLS protocol, this byte means "handshake"
UNEXPECTED_MESSAGE = bytes((21, 3, 3, 0, 2, 2, 10))  # a TLS alert: fatal, the peer has sent an unexpected message
CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class TlsListener:
    """The TLS context of one listener. The context is replaced when a key file or a certificate file changes."""

    def __init__(
        self, settings: TlsSettings, client_auth: str, rules: Sequence[MappingRule] = (MappingRule(),)
    ) -> None:
        """Load the private key and the certificates. Raises TlsSettingError.

        The list `rules` comes from the setting `ssl.principal.mapping.rules`. The rules convert the name in a client's
        certificate to the client's principal.
        """
        self._settings, self._rules = settings, rules
        self._client_auth = CLIENT_AUTH[client_auth]
        self._lock = threading.Lock()  # guards the two fields below; a thread that holds this lock takes no other lock
        self._stamp = self._files_stamp()
        self._context = self._new_context()

    @property
    def authenticates(self) -> bool:
        """Whether every client must prove its name with a certificate."""
        return self._client_auth == ssl.CERT_REQUIRED

    def encrypted(self, sock: socket.socket) -> TlsSocket:
        """Return an encrypted socket for a client's plain socket. The caller must next call `shake_hands`."""
        context = self.context()
        tls = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=True)
        return cast(TlsSocket, tls)

    def identify(self, sock: socket.socket, timeout: float) -> str:
        """Make the handshake, and return the principal in the client's certificate. Raises CloseConnection.

        `sock` is a socket that `encrypted` has returned.
        """
        assert isinstance(sock, TlsSocket)
        shake_hands(sock, timeout)
        return certified_principal(sock, self._rules)

    def file(self, sock: socket.socket, idle: float) -> TlsFile:
        """Return a stream of a client's decrypted bytes. Each read waits at most `idle` seconds for bytes."""
        assert isinstance(sock, TlsSocket)
        return TlsFile(sock, idle)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context for a new connection.

        If a file with a key or a certificate has changed, the method first loads the files again. If the new files are
        unusable, it logs an error and keeps the old context.
        """
        with self._lock:
            if (stamp := self._files_stamp()) != self._stamp:
                self._stamp = stamp
                try:
                    self._context = self._new_context()
                    LOGGER.info("loaded new keys and certificates from %s", ", ".join(map(str, self._settings.files)))
                except TlsSettingError as error:
                    LOGGER.error("new keys or certificates are unusable, so the old ones stay in use: %s", error)
            return self._context

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sslsocket_class = TlsSocket
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.verify_mode = self._client_auth
        self._settings.apply(context)
        if not self._settings.has_key:
            raise TlsSettingError("ssl.keystore.location", "is missing; a listener with TLS needs a private key")
        if self._client_auth != ssl.CERT_NONE and not self._settings.has_trust:
            raise TlsSettingError("ssl.truststore.location", "is missing; ssl.client.auth needs trusted certificates")
        return context

    def _files_stamp(self) -> list[tuple[int, int]]:
        stamps = []
        for path in self._settings.files:
            try:
                stat = path.stat()
                stamps.append((stat.st_mtime_ns, stat.st_size))
            except OSError:
                stamps.append((0, 0))
        return stamps


class TlsSocket(ssl.SSLSocket):
    """An encrypted socket that `network/sending.py` can use in the same way as a plain socket.

    Only the thread of the connection reads from the socket and writes to it. Other threads can call `shutdown` to
    close the connection. The class has its own method `shutdown`, because the inherited method would also switch
    off the encryption.
    """

    def send(self, data: Any, flags: int = 0) -> int:
        """Encrypt and send bytes from the beginning of `data`. Return how many bytes were sent.

        The method raises BlockingIOError if it cannot send any byte before the timeout, because the client reads too
        slowly. A plain socket with the option SO_SNDTIMEO raises the same error.
        """
        try:
            return super().send(memoryview(data)[:MAX_ENCRYPTED_AT_ONCE])
        except TimeoutError as error:
            raise BlockingIOError(str(error)) from error

    def shutdown(self, how: int) -> None:
        socket.socket.shutdown(self, how)


class TlsFile(io.RawIOBase):
    """A file object that reads and decrypts the bytes of a client. `count` is the number of bytes read so far."""

    def __init__(self, sock: TlsSocket, idle: float) -> None:
        self._socket = sock
        self._idle = idle  # seconds
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        """Wait for bytes, and decrypt them into `buffer`. Return None if no bytes arrive for `idle` seconds."""
        waited = 0.0
        while waited < self._idle:
            try:
                size = self._socket.recv_into(buffer)
            except TimeoutError:
                waited += self._socket.gettimeout() or 0
                continue
            self.count += size
            return size
        return None


def certified_principal(sock: TlsSocket, rules: Sequence[MappingRule]) -> str:
    """Return the principal in the client's certificate, or ANONYMOUS if the client has sent no certificate.

    Raises CloseConnection in two cases: no rule in `rules` matches the name in the certificate, or the principal
    contains a control character, such as a line break.
    """
    certificate = sock.getpeercert()
    if not certificate:
        return ANONYMOUS
    name = distinguished_name(certificate)
    if (mapped := principal_name(name, rules)) is None:
        raise CloseConnection(
            f"no rule in ssl.principal.mapping.rules matches the name {name!r} in the client's certificate"
        )
    if not mapped.isprintable():
        raise CloseConnection(f"the name {name!r} in the client's certificate contains a control character")
    return f"{USER}:{mapped}"


def shake_hands(sock: TlsSocket, timeout: float) -> None:
    """Make the handshake. Raises CloseConnection if the client does not use TLS, or if the handshake fails."""
    stall = sock.gettimeout()
    sock.settimeout(timeout)
    try:
        start = socket.socket.recv(sock, 1, socket.MSG_PEEK)
        if start and start[0] != HANDSHAKE:
            socket.socket.send(sock, UNEXPECTED_MESSAGE)
            # If the broker closed the connection with unread bytes, the operating system would reset the connection.
            # The client could then lose the TLS alert that the broker has just sent.
            socket.socket.recv(sock, MAX_ENCRYPTED_AT_ONCE)
            raise CloseConnection(
                "the client sent plain text to a listener with TLS; use security.protocol=SSL or SASL_SSL in the client"
            )
        sock.do_handshake()
    except TimeoutError:
        raise CloseConnection(f"the client did not finish the TLS handshake within {timeout:g} s") from None
    except ssl.SSLError as error:
        reason = HANDSHAKE_FAILURES.get(error.reason or "", (error.reason or "it ended").lower().replace("_", " "))
        raise CloseConnection(f"the TLS handshake failed: {reason}") from None
    sock.settimeout(stall)


HANDSHAKE_FAILURES = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has no certificate, and ssl.client.auth=required",
    "UNSUPPORTED_PROTOCOL": "the client uses a version of TLS that ssl.enabled.protocols does not allow",
    "NO_SHARED_CIPHER": "client and broker have no cipher suite in common",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not trust the broker's certificate, or it names another host",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client refuses the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the broker's certificate has expired",
    "CERTIFICATE_VERIFY_FAILED": "the broker does not trust the client's certificate, or it has expired",
}
