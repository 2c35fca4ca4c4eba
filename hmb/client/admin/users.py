"""Contains the methods of `Admin` that list users, set their passwords, and remove them (KIP-554).

The methods of this module manage users of the SCRAM mechanisms. The admin sends a salted password to the broker, and
never the password itself (hmb/security/scram.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from hmb.client.admin.brokers import Brokers
from hmb.client.errors import response_error
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from hmb.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from hmb.security import scram
from hmb.security.scram import SCRAM_MECHANISMS, ScramMechanism

Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def list_users(brokers: Brokers, names: Iterable[str] | None = None) -> dict[str, dict[str, int]]:
    """Return the users with their SCRAM mechanisms: `{"alice": {"SCRAM-SHA-256": 4096}}`. Needs Kafka 2.7.

    In this example, 4096 is the number of iterations with which the user's password is salted. `names=None` means all
    users. If a user does not exist, the result does not contain its name.
    """
    wanted = None if names is None else [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    response = brokers.cluster.send(DescribeUserScramCredentialsRequest(users=wanted))
    if response.error_code:
        raise response_error("users", response.error_code, response.error_message)
    found: dict[str, dict[str, int]] = {}
    for result in response.results:
        if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            raise response_error(f"user {result.user!r}", result.error_code, result.error_message)
        found[result.user] = {ScramMechanism(it.mechanism).sasl_name: it.iterations for it in result.credential_infos}
    return found


def set_password(
    brokers: Brokers,
    name: str,
    password: str,
    mechanisms: Iterable[str] = tuple(SCRAM_MECHANISMS),
    iterations: int = scram.DEFAULT_ITERATIONS,
) -> None:
    """Set a user's password for each SCRAM mechanism in `mechanisms`.

    If the user does not exist, the broker creates the user. Needs Kafka 2.7.
    """
    upsertions = []
    for mechanism in [SCRAM_MECHANISMS[each] for each in mechanisms]:
        salt = scram.new_salt()
        salted = scram.salted_password(mechanism, password, salt, iterations)
        upsertions.append(
            Upsertion(name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=salted)
        )
    _alter(brokers, AlterUserScramCredentialsRequest(upsertions=upsertions))


def delete_user(brokers: Brokers, name: str) -> None:
    """Remove a user: delete the user's credentials for all mechanisms.

    Connections that are already authenticated stay open. Raises KafkaError with RESOURCE_NOT_FOUND if the user does not
    exist. Needs Kafka 2.7.
    """
    mechanisms = list_users(brokers, [name]).get(name)
    if mechanisms is None:
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"there is no user {name!r}")
    deletions = [Deletion(name=name, mechanism=SCRAM_MECHANISMS[each]) for each in mechanisms]
    _alter(brokers, AlterUserScramCredentialsRequest(deletions=deletions))


def _alter(brokers: Brokers, request: AlterUserScramCredentialsRequest) -> None:
    for result in brokers.cluster.send(request).results:
        if result.error_code:
            raise response_error(f"user {result.user!r}", result.error_code, result.error_message)
