"""RenewDelegationToken: renew a delegation token, so that it expires later.

Versions: 1-2; version 2 uses the flexible encoding (KIP-482).
Permissions: none; every client may send this request.
Behavior: the request contains the HMAC of a token, which identifies the token, and a period. The broker answers by
    these rules:
    - *Time.* The token now expires when the period has passed, counted from the time of the request. The setting
      `delegation.token.expiry.time.ms` limits the period. If the period is below 1, the broker uses this setting as the
      period. Each token also has a max time, which is fixed when the token is created. The token expires at its max
      time at the latest.
    - *Errors.* If no token has the HMAC of the request, the error is DELEGATION_TOKEN_NOT_FOUND (62). An expired token
      gets DELEGATION_TOKEN_EXPIRED (66). A principal that is neither the owner nor a renewer of the token gets
      DELEGATION_TOKEN_OWNER_MISMATCH (63). The errors DELEGATION_TOKEN_AUTH_DISABLED (61) and
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
