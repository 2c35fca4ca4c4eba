"""Creates the first user of a broker, in its data directory, before the broker starts for the first time.

If a broker requires a login, a client must log in as an existing user to create other users. But a new broker
has no user yet. `hmb users create NAME --data-dir DIR` therefore writes the first user directly into the data
directory, as `kafka-storage format --add-scram` does in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hmb.broker.security import users
from hmb.broker.security.store import SecurityStore
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.security import scram
from hmb.security.scram import SCRAM_MECHANISMS
from hmb.storage.state.identity import DataDirectoryError, lock
from hmb.storage.state.manifest import Manifest


def create_user(directory: Path, name: str, password: str, mechanisms: Iterable[str], iterations: int) -> None:
    """Store a new user in a data directory. If the directory does not exist, create it.

    Raises DataDirectoryError, for example if a broker uses the directory. Raises KafkaError if the user exists.
    """
    held = lock(directory)
    try:
        store = SecurityStore(directory, Manifest(directory))
        if name in users.credentials_by_user(store):
            raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, f"the user {name!r} exists already")
        records = []
        for mechanism in [SCRAM_MECHANISMS[each] for each in mechanisms]:
            salt = scram.new_salt()
            salted = scram.salted_password(mechanism, password, salt, iterations)
            records.append(users.upserted(name, mechanism, iterations, salt, salted))
        users.alter(store, [], records)
    except OSError as error:
        raise DataDirectoryError(f"cannot write to the data directory {directory}: {error.strerror}") from error
    finally:
        held.release()
