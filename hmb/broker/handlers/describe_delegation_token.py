"""DescribeDelegationToken: list delegation tokens.

Versions: 1-3; versions 2 and later use the flexible encoding (KIP-482).
Permissions: none for own tokens; otherwise DESCRIBE on the token, or DESCRIBE_TOKENS on the token's owner.
Behavior: the broker answers by these rules:
    - *Owners.* The field `owners` of the request is a list of principals. A token matches the request if one of
      these principals owns it, has created it or may renew it. If the list is null, all tokens match.
    - *Visibility.* Without an authorizer, every authenticated client gets all tokens that match. With an
      authorizer, a client gets the matching tokens that it owns, has created or may renew. For other tokens,
      the client needs an ACL: DESCRIBE on the token, or DESCRIBE_TOKENS on the owner of the token.
    - *Errors.* The errors DELEGATION_TOKEN_AUTH_DISABLED (61) and DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64)
      have the same causes as in CreateDelegationToken.
Version notes: from version 3 on, the response contains the principal that has created the token.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.metadata_records import DelegationTokenRecord
from hmb.broker.security.tokens.delegation import may_renew_or_describe
from hmb.broker.security.tokens.requesters import check_requester
from hmb.protocol.messages.describe_delegation_token import (
    FIRST_VERSION_OF_REQUESTERS,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

Described = DescribeDelegationTokenResponse.DescribedDelegationToken


def handle(request: DescribeDelegationTokenRequest, context: RequestContext) -> DescribeDelegationTokenResponse:
    response = DescribeDelegationTokenResponse()
    with error_code_in(response):
        check_requester(context)
        tokens = context.broker.tokens.all()
        if request.owners is not None:
            owners = [f"{each.principal_type}:{each.principal_name}" for each in request.owners]
            tokens = [it for it in tokens if any(may_renew_or_describe(it, owner) for owner in owners)]
        response.tokens = [_described(token, context) for token in tokens]
    return response


def _described(token: DelegationTokenRecord, context: RequestContext) -> Described:
    described = Described(
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=context.broker.tokens.hmac_of(token),
    )
    described.principal_type, _, described.principal_name = token.owner.partition(":")
    if context.version >= FIRST_VERSION_OF_REQUESTERS:
        type_and_name = token.requester.partition(":")
        described.token_requester_principal_type, _, described.token_requester_principal_name = type_and_name
    for renewer in token.renewers:
        kind, _, name = renewer.partition(":")
        described.renewers.append(Described.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name))
    return described
