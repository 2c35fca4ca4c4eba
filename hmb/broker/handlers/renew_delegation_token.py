"""RenewDelegationToken: renew a delegation token, so that it expires later.

Versions: 1-2; version 2 uses the flexible encoding (KIP-482).
Permissions: none; every client may send this request.
Behavior: the request contains a period in ms, and the HMAC of a token. The HMAC identifies the token.
    - *Time.* The new expiry time is the time of the request plus the period. It is never later than the token's
      max time, which was fixed when the token was created. If the period is below 1 or greater than the setting
      `delegation.token.expiry.time.ms`, the broker uses the setting as the period.
    - *Errors.* If no token has this HMAC, the error is DELEGATION_TOKEN_NOT_FOUND (62). If the token has
      expired, the error is DELEGATION_TOKEN_EXPIRED (66). If the client is neither the owner nor a renewer of
      the token, the error is DELEGATION_TOKEN_OWNER_MISMATCH (63). DELEGATION_TOKEN_AUTH_DISABLED (61) and
      DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64) have the same causes as in CreateDelegationToken.
Version notes: none. Both versions have the same behavior.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.tokens.requesters import check_requester
from hmb.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(request: RenewDelegationTokenRequest, context: RequestContext) -> RenewDelegationTokenResponse:
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=-1)
    with error_code_in(response):
        check_requester(context)
        tokens, principal = context.broker.tokens, context.client.principal
        response.expiry_timestamp_ms = tokens.renew(bytes(request.hmac), principal, request.renew_period_ms)
    return response
