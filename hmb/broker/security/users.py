"""Finds, stores and removes the credentials of the users that authenticate with SCRAM.

For an unknown user, `find` returns a false credential, a *decoy* (decoys.py). A client therefore cannot find out which
users exist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hmb.broker.security.decoys import OWN_SHAPE, decoy
from hmb.broker.security.metadata_records import UserScramCredentialRecord
from hmb.broker.security.store import SecurityState, SecurityStore
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.security import scram
from hmb.security.scram import ScramCredential, ScramMechanism

MECHANISMS = {int(each): each for each in ScramMechanism}
LONGEST_NAME = 255  # characters


def find(store: SecurityStore, mechanism: ScramMechanism, name: str) -> ScramCredential:
    """Return the credential of a user. If the user has no credential, return an invented one, a *decoy*.

    Both cases take the same time. Otherwise, a client could measure the time and find out whether the user exists.
    """
    unknown = decoy(store.decoy_key, mechanism, name, store.state.credential_shapes.get(mechanism, [OWN_SHAPE]))
    found = store.state.credentials.get((mechanism, name)) or unknown
    return ScramCredential(bytes(found.salt), found.iterations, bytes(found.stored_key), bytes(found.server_key))


def upserted(
    name: str, mechanism: int, iterations: int, salt: bytes, salted_password: bytes
) -> UserScramCredentialRecord:
    """Return the record of a new credential.

    Raises UNSUPPORTED_SASL_MECHANISM for an unknown mechanism, and UNACCEPTABLE_CREDENTIAL for any other invalid
    argument.
    """
    check_user(name, mechanism)
    if iterations < scram.MIN_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > scram.MAX_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not salt or not salted_password:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salt and the salted password must not be empty")
    credential = scram.credential_of(MECHANISMS[mechanism], salted_password, salt, iterations)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=iterations,
    )


def check_user(name: str, mechanism: int) -> None:
    """Raise UNACCEPTABLE_CREDENTIAL for an unusable name, and UNSUPPORTED_SASL_MECHANISM for an unknown mechanism."""
    if not name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if len(name) > LONGEST_NAME:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Username must have at most {LONGEST_NAME} characters")
    if mechanism not in MECHANISMS:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


Deletion = tuple[str, int]  # a user and a mechanism


def alter(
    store: SecurityStore, deletions: Sequence[Deletion], upsertions: Sequence[UserScramCredentialRecord]
) -> dict[str, KafkaError]:
    """Delete, add and replace credentials in one step. Return an error for each user who was not changed.

    `upsertions` contains the credentials to add or to replace. If a user occurs twice with the same mechanism, the
    user gets DUPLICATE_RESOURCE. If a credential to delete does not exist, the user gets RESOURCE_NOT_FOUND. Raises
    OSError.
    """
    errors: dict[str, KafkaError] = {}
    keys = [(mechanism, name) for name, mechanism in deletions] + [(each.mechanism, each.name) for each in upsertions]
    for (_, name), times in Counter(keys).items():
        if times > 1:
            errors[name] = KafkaError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )

    def compute(state: SecurityState) -> SecurityState:
        credentials = dict(state.credentials)
        for name, mechanism in deletions:
            if name not in errors and (mechanism, name) not in credentials:
                problem = "Attempt to delete a user credential that does not exist"
                errors[name] = KafkaError(ErrorCode.RESOURCE_NOT_FOUND, problem)
        for name, mechanism in deletions:
            if name not in errors:
                del credentials[mechanism, name]
        credentials |= {(each.mechanism, each.name): each for each in upsertions if each.name not in errors}
        return state if credentials == state.credentials else replace(state, credentials=credentials)

    store.change(compute)
    return errors


def credentials_by_user(store: SecurityStore) -> Mapping[str, list[UserScramCredentialRecord]]:
    """Return the credentials of each user, in the order of the users' names."""
    found: dict[str, list[UserScramCredentialRecord]] = {}
    for (_, name), record in sorted(store.state.credentials.items(), key=lambda item: (item[0][1], item[0][0])):
        found.setdefault(name, []).append(record)
    return found
