"""The file `security.checkpoint`: credentials, ACLs, quotas and tokens, in the format of Kafka's metadata records.

The file `security.checkpoint` contains record batches, like a segment of a log. Each record is a credential, an ACL, a
quota or a delegation token (metadata_records.py). The broker replaces the whole file in one step. Only the user that
runs the broker can read the file (mode 0600). After a crash, the directory contains either the old file or the complete
new file.

The file `security.decoys` contains 32 random bytes. To hide which users exist, the broker computes false
credentials for unknown users from these bytes (decoys.py).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID

from hmb.broker.security.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    MetadataRecord,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
)
from hmb.protocol.errors import KafkaError, ProtocolError
from hmb.records import Record, encode_batch, iter_batches
from hmb.storage.state.identity import DataDirectoryError
from hmb.storage.state.manifest import DamagedStateFile, Manifest

if TYPE_CHECKING:
    from hmb.broker.security.decoys import CredentialShape

CHECKPOINT, DECOYS = "security.checkpoint", "security.decoys"
RECORDS_OF_BATCH = 1000
Credentials: TypeAlias = Mapping[tuple[int, str], UserScramCredentialRecord]  # by mechanism and user
Acls: TypeAlias = Mapping[UUID, AccessControlEntryRecord]
QuotaEntity: TypeAlias = frozenset[tuple[str, str | None]]
"""The types and names of an entity, for example `{("user", "alice")}`. The name None means the default of its type."""
Quotas: TypeAlias = Mapping[QuotaEntity, Mapping[str, float]]  # by entity, then by key


@dataclass(frozen=True)
class SecurityState:
    """All credentials, ACLs, quotas and delegation tokens at one point in time. A change makes a new state."""

    credentials: Credentials = field(default_factory=dict)
    acls: Acls = field(default_factory=dict)
    quotas: Quotas = field(default_factory=dict)
    tokens: Mapping[str, DelegationTokenRecord] = field(default_factory=dict)  # delegation tokens by their ids

    @cached_property
    def credential_shapes(self) -> Mapping[int, list[CredentialShape]]:
        """The shapes of the stored credentials, by login mechanism.

        The shape of a credential consists of the number of iterations, and the form and the length of the salt. A
        client sees these three values during a login.

        If a client logs in as an unknown user, the broker invents a credential, called a decoy (decoys.py). The decoy
        has the shape of a stored credential. Otherwise, the client would know that the user does not exist.
        """
        from hmb.broker.security.decoys import shapes_of  # This import loads OpenSSL, which takes 3 ms.

        return shapes_of(self.credentials.values())

    def records(self) -> Iterator[MetadataRecord]:
        yield from self.credentials.values()
        yield from self.acls.values()
        yield from self.tokens.values()
        for entity, values in self.quotas.items():
            parts = [
                ClientQuotaRecord.EntityData(entity_type=type, entity_name=name) for type, name in sorted_parts(entity)
            ]
            for key, value in values.items():
                yield ClientQuotaRecord(entity=parts, key=key, value=value)


def sorted_parts(entity: QuotaEntity) -> list[tuple[str, str | None]]:
    """Return the parts of a quota entity, such as ("client-id", "app") and ("user", "alice"), sorted by type."""
    return sorted(entity, key=lambda part: part[0])


class SecurityStore:
    """The credentials, ACLs, quotas and delegation tokens of a broker, in memory and in a file. Thread-safe.

    `state` is the current state. A change does not modify the state, but replaces it by a new object. Readers therefore
    take no lock.
    """

    def __init__(self, directory: Path | None = None, manifest: Manifest | None = None) -> None:
        """Read the state from the files in `directory`, or keep the state only in memory if `directory` is None.

        Raises DataDirectoryError if the file `security.checkpoint` or the file `security.decoys` cannot be used.
        """
        self._directory, self._manifest = directory, manifest
        self._lock = threading.Lock()  # held while a new state is computed and written
        self._listeners: list[Callable[[SecurityState], None]] = []
        self.state = SecurityState()
        self.decoy_key = os.urandom(32)
        if directory is not None and manifest is not None:
            self._read(directory, manifest)

    def listen(self, listener: Callable[[SecurityState], None]) -> None:
        """Call `listener` with the state: once now, and again after each change."""
        with self._lock:
            self._listeners.append(listener)
            listener(self.state)

    def change(self, compute: Callable[[SecurityState], SecurityState]) -> None:
        """Replace the state by the result of `compute`, and write it to disk. Raises OSError."""
        with self._lock:
            changed = compute(self.state)
            if changed is self.state:
                return
            if self._directory is not None and self._manifest is not None:
                self._manifest.replace_file(self._directory / CHECKPOINT, _encoded(changed))
            self.state = changed
            for listener in self._listeners:
                listener(changed)

    def _read(self, directory: Path, manifest: Manifest) -> None:
        path = directory / CHECKPOINT
        try:
            manifest.check(path)
            if path.exists():
                self.state = _decoded(path.read_bytes())
            decoys = directory / DECOYS
            manifest.check(decoys)
            if decoys.exists():
                self.decoy_key = decoys.read_bytes()
            else:
                manifest.replace_file(decoys, self.decoy_key)
        except (DamagedStateFile, OSError, ProtocolError, KafkaError, ValueError) as error:
            raise DataDirectoryError(
                f"cannot use the users, ACLs and quotas in {path}: {error}. Restore the file from a copy. If you have "
                f"no copy, move the files {path}, {directory / DECOYS} and {manifest.path} to another directory. The "
                "broker then starts without users, ACLs and quotas"
            ) from error


def _encoded(state: SecurityState) -> bytes:
    values = [Record(timestamp=0, value=encode_record(record)) for record in state.records()]
    batches = [values[start : start + RECORDS_OF_BATCH] for start in range(0, len(values), RECORDS_OF_BATCH)]
    return b"".join(
        encode_batch(batch, base_offset=number * RECORDS_OF_BATCH) for number, batch in enumerate(batches)
    )


def _decoded(content: bytes) -> SecurityState:
    credentials: dict[tuple[int, str], UserScramCredentialRecord] = {}
    acls: dict[UUID, AccessControlEntryRecord] = {}
    quotas: dict[QuotaEntity, dict[str, float]] = {}
    tokens: dict[str, DelegationTokenRecord] = {}
    for batch in iter_batches(content):
        batch.check()
        for record in batch.records():
            stored = decode_record(bytes(record.value or b""))
            if isinstance(stored, UserScramCredentialRecord):
                credentials[stored.mechanism, stored.name] = stored
            elif isinstance(stored, AccessControlEntryRecord):
                acls[stored.id] = stored
            elif isinstance(stored, ClientQuotaRecord):
                entity = frozenset((part.entity_type, part.entity_name) for part in stored.entity)
                quotas.setdefault(entity, {})[stored.key] = stored.value
            elif isinstance(stored, DelegationTokenRecord):
                tokens[stored.token_id] = stored
    return SecurityState(credentials, acls, quotas, tokens)
