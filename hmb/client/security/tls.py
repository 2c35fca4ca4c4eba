"""TLS on the client's side: the context of a client, and the socket of an encrypted connection."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from hmb.security.stores import MINIMUM, TlsSettings

WOULD_BLOCK = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TlsClientSocket(ssl.SSLSocket):
    """An encrypted socket that a caller can use like a plain non-blocking socket.

    If `recv`, `recv_into` or `send` would have to wait, it raises BlockingIOError, as a plain socket does.
    `SSLSocket` would raise an error of the module `ssl` instead.

    `shutdown` only shuts the connection down. `SSLSocket.shutdown` would also switch the encryption off, although
    another thread may still use the socket.
    """

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        try:
            return super().recv(buflen, flags)
        except WOULD_BLOCK as error:
            raise BlockingIOError(str(error)) from None

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        try:
            return super().recv_into(buffer, nbytes, flags)
        except WOULD_BLOCK as error:
            raise BlockingIOError(str(error)) from None

    def send(self, data: Any, flags: int = 0) -> int:
        try:
            return super().send(data, flags)
        except WOULD_BLOCK as error:
            raise BlockingIOError(str(error)) from None

    def shutdown(self, how: int) -> None:
        socket.socket.shutdown(self, how)


def new_context(settings: TlsSettings, *, checks_host: bool) -> ssl.SSLContext:
    """Return a TLS context for connections to brokers. Raises TlsSettingError.

    If the settings contain no trust store, the client trusts the same certificate authorities (CAs) as the
    operating system. If `checks_host` is true, the client accepts a broker's certificate only if the certificate
    names the host that the client connects to.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = MINIMUM
    context.check_hostname = checks_host
    context.sslsocket_class = TlsClientSocket
    if not settings.has_trust:
        context.load_default_certs()
    settings.apply(context)
    return context


def encrypted(plain: socket.socket, context: ssl.SSLContext, host: str) -> socket.socket:
    """Make the TLS handshake on a connected socket, and return the encrypted socket. Raises OSError."""
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def failure(error: OSError) -> str:
    """Return the reason why a handshake has failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's certificate is not accepted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "the TLS handshake took too long; does the listener use TLS?"
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError) or getattr(error, "reason", "") in NOT_TLS:
        return "the TLS handshake failed, as if the listener had no TLS; try another port, or use PLAINTEXT"
    return f"the TLS handshake failed: {getattr(error, 'reason', None) or error.strerror or error}"


NOT_TLS = ("WRONG_VERSION_NUMBER", "UNEXPECTED_EOF_WHILE_READING", "RECORD_LAYER_FAILURE")
