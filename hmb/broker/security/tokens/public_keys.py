"""The public keys of an identity provider: a JSON Web Key Set (JWKS) in a file or at an address.

The broker keeps the public keys in memory. It loads them again after a while, because a provider sometimes
replaces its keys. The broker also loads the keys again if a token names an unknown key, but at most once in 30
seconds. Without this limit, a client that sends many tokens with unknown keys could cause many downloads.

Source: RFC 7517.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import jwt

LOGGER = logging.getLogger(__name__)
TIMEOUT = 10.0  # seconds; the maximum time to connect to the identity provider, or to wait for its next bytes
LARGEST = 1 << 20  # the maximum number of bytes that the broker reads from the response with the keys
PAUSE = 30.0  # seconds between two attempts to load an unknown key


class KeysError(ValueError):
    """The public keys of the identity provider cannot be loaded, or do not contain the key of a token."""


class PublicKeys:
    """The public keys of an identity provider, which the broker loads from one address. Thread-safe."""

    def __init__(self, address: str, refresh: float) -> None:
        """Load the keys. After `refresh` seconds, the next login loads them again. Raises KeysError."""
        self._address, self._refresh = address, refresh
        self._lock = threading.Lock()  # held by the thread that loads keys and changes the fields below
        self._keys = self._loaded()
        self._loaded_at = time.monotonic()
        self._tried_at = self._loaded_at - PAUSE

    def find(self, key_id: str | None) -> jwt.PyJWK:
        """Return the public key with the id `key_id`.

        If the keys are old, or if the id is unknown, the method first tries to load the keys again. Raises KeysError if
        the id is still unknown.
        """
        is_old = time.monotonic() - self._loaded_at > self._refresh
        # Another thread can hold `_lock` while it loads new keys. If `_keys` contains `key_id`, use the old key without
        # waiting. If `key_id` is missing, wait, because the new keys can contain it.
        if (key_id not in self._keys or is_old) and self._lock.acquire(blocking=key_id not in self._keys):
            try:
                self._reload_if_due(key_id)
            finally:
                self._lock.release()
        if key_id is None or (found := self._keys.get(key_id)) is None:
            raise KeysError("the identity provider has no key with the id in the token")
        return found

    def _reload_if_due(self, key_id: str | None) -> None:
        """Load the keys again if they are old, or if no key has the id `key_id`. The caller holds the lock.

        In PAUSE seconds, unknown keys cause at most one attempt to load keys. If loading fails, keep the old keys.
        """
        now = time.monotonic()
        if key_id not in self._keys and now - self._tried_at >= PAUSE:
            self._tried_at = now
        elif now - self._loaded_at <= self._refresh:
            return
        try:
            self._keys = self._loaded()
        except KeysError as error:
            LOGGER.warning("cannot load the public keys at %s again: %s", self._address, error)
        self._loaded_at = time.monotonic()

    def _loaded(self) -> dict[str, jwt.PyJWK]:
        try:
            keys = jwt.PyJWKSet.from_dict(json.loads(self._content())).keys
        except (OSError, ValueError, jwt.PyJWTError) as error:
            raise KeysError(str(error)) from None
        return {key.key_id: key for key in keys if key.key_id is not None}

    def _content(self) -> bytes:
        parts = urllib.parse.urlsplit(self._address)
        if parts.scheme == "file":
            return Path(urllib.parse.unquote(parts.path)).read_bytes()
        with urllib.request.urlopen(self._address, timeout=TIMEOUT) as response:
            return bytes(response.read(LARGEST))
