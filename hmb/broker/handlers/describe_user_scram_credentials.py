"""DescribeUserScramCredentials: list the users that have credentials for SCRAM.

Versions: 0; in the flexible encoding.
Permissions: DESCRIBE on the cluster.
Behavior: if the request contains null or an empty list instead of users, the response contains all users. An unknown
    user gets RESOURCE_NOT_FOUND (91), and a user who is in the request twice gets DUPLICATE_RESOURCE (92). The response
    contains no secret.
Version notes: none. The API has one version.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from collections import Counter

from hmb.broker.context import RequestContext
from hmb.broker.errors import put_error
from hmb.broker.security import users
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    known = users.credentials_by_user(context.broker.security)
    times = Counter(each.name for each in request.users or ())
    response = DescribeUserScramCredentialsResponse(error_message=None)
    for name in times or known:
        result = Result(user=name, error_message=None)
        if times[name] > 1:
            problem = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            put_error(result, KafkaError(ErrorCode.DUPLICATE_RESOURCE, problem))
        elif name not in known:
            problem = f"Attempt to describe a user credential that does not exist: {name}"
            put_error(result, KafkaError(ErrorCode.RESOURCE_NOT_FOUND, problem))
        else:
            result.credential_infos = [
                Result.CredentialInfo(mechanism=each.mechanism, iterations=each.iterations) for each in known[name]
            ]
        response.results.append(result)
    return response
