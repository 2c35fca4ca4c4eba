"""CreateDelegationToken: create a token with which other programs can log in under the name of the token's owner.

Versions: 1-3; versions 2 and later use the flexible encoding (KIP-482).
Permissions: none for the client's own token; otherwise CREATE_TOKENS on the owner.
Behavior: a client creates a token for its own user, and gets the token's id and HMAC. A program can log in with
    SCRAM: the id is the user name, and the HMAC (in base64) is the password. The broker stores the token on
    disk before it responds. Two errors concern all requests about tokens:
    - *No key.* The setting `delegation.token.secret.key` is missing: DELEGATION_TOKEN_AUTH_DISABLED (61).
    - *No login.* The client is not authenticated, or has logged in with a delegation token:
      DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64).
Version notes: from version 3 on, a client can create a token for another user. This user is the token's owner.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.tokens.delegation import token_owner
from hmb.broker.security.tokens.requesters import check_requester, put_principals
from hmb.protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse


def handle(request: CreateDelegationTokenRequest, context: RequestContext) -> CreateDelegationTokenResponse:
    requester = context.client.principal
    owner = token_owner(request.owner_principal_type, request.owner_principal_name, requester)
    response = CreateDelegationTokenResponse(issue_timestamp_ms=-1, expiry_timestamp_ms=-1, max_timestamp_ms=-1)
    put_principals(response, owner, requester, context.version)
    with error_code_in(response):
        check_requester(context)
        renewers = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
        token = context.broker.tokens.create(owner, requester, renewers, request.max_lifetime_ms)
        response.issue_timestamp_ms, response.max_timestamp_ms = token.issue_timestamp, token.max_timestamp
        response.expiry_timestamp_ms, response.token_id = token.expiration_timestamp, token.token_id
        response.hmac = context.broker.tokens.hmac_of(token)
    return response
