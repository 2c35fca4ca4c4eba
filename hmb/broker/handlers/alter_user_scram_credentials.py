"""AlterUserScramCredentials: add, change and remove the credentials of users for SCRAM.

Versions: 0; in the flexible encoding.
Permissions: ALTER on the cluster.
Behavior: each user has its own error code. The request contains salted passwords. The broker stores only values from
    which nobody can compute a password. The broker sends the response after the credentials are on disk. A new
    credential applies to the next login. Connections that are already authenticated stay open, as in Kafka.
Version notes: none. The API has one version.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import put_error
from hmb.broker.security import users
from hmb.broker.security.metadata_records import UserScramCredentialRecord
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def handle(request: AlterUserScramCredentialsRequest, context: RequestContext) -> AlterUserScramCredentialsResponse:
    errors: dict[str, KafkaError] = {}
    upsertions: list[UserScramCredentialRecord] = []
    for each in request.deletions:
        try:
            users.check_user(each.name, each.mechanism)
        except KafkaError as error:
            errors.setdefault(each.name, error)
    for new in request.upsertions:
        try:
            salt, salted = bytes(new.salt), bytes(new.salted_password)
            upsertions.append(users.upserted(new.name, new.mechanism, new.iterations, salt, salted))
        except KafkaError as error:
            errors.setdefault(new.name, error)
    deletions = [(each.name, each.mechanism) for each in request.deletions if each.name not in errors]
    upsertions = [each for each in upsertions if each.name not in errors]
    names = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    try:
        errors |= users.alter(context.broker.security, deletions, upsertions)
    except OSError as error:
        failure = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        errors |= {name: failure for name in names if name not in errors}
    response = AlterUserScramCredentialsResponse(results=[Result(user=name, error_message=None) for name in names])
    for result in response.results:
        put_error(result, errors.get(result.user))
    return response
