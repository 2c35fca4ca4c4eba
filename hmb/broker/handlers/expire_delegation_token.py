"""ExpireDelegationToken: make a delegation token expire, now or after a time.

Versions: 1-2; version 2 uses the flexible encoding (KIP-482).
Permissions: none; every client may send this request.
Behavior: the request contains the HMAC of a token, which identifies the token, and a period in ms. The token
    expires when the period has passed, or at its max time if the max time is earlier. If the period is
    negative, the broker removes the token at once. As in Kafka, a client that has already logged in with the
    token stays connected until its session ends. The error codes are the same as in RenewDelegationToken.
Version notes: none. Both versions have the same behavior.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.security.tokens.requesters import check_requester
from hmb.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def handle(request: ExpireDelegationTokenRequest, context: RequestContext) -> ExpireDelegationTokenResponse:
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=-1)
    with error_code_in(response):
        check_requester(context)
        tokens, principal = context.broker.tokens, context.client.principal
        response.expiry_timestamp_ms = tokens.expire(bytes(request.hmac), principal, request.expiry_time_period_ms)
    return response
