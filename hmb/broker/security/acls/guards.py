"""Guards: functions that check a client's permissions before the handler of its request runs.

The function `guarded` puts a guard before the handler of each API. A guard refuses the parts of a request for which
the client has no permission. There are three kinds of guards:
- Most guards apply a rule from the table RULES (rules.py). Their code is in rule_guards.py.
- For some APIs, no rule can describe which permissions a request needs. Each of these APIs has a guard of its own
  (special_guards.py).
- Every client may use the APIs in OPEN (rules.py). Their guard refuses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hmb.broker.context import RequestContext
from hmb.broker.security.acls.authorizer import Access, Authorizer
from hmb.broker.security.acls.rule_guards import Answer, Guard, Handle, guard_by_rule, guard_produce
from hmb.broker.security.acls.rules import OPEN, RULES
from hmb.broker.security.acls.special_guards import GUARDS
from hmb.protocol.api_keys import ApiKey


def guarded(handlers: Mapping[ApiKey, Handle], authorizer: Authorizer) -> Mapping[ApiKey, Handle]:
    """Return handlers that refuse the forbidden parts of requests, and pass the other parts to `handlers`."""

    def handler(api: ApiKey, guard: Guard) -> Handle:
        def handle(request: Any, context: RequestContext) -> Answer:
            access = Access(authorizer, context.client.principal, context.client.host)
            return guard(request, context, access, handlers[api])

        return handle

    return {api: handler(api, guard_of(api)) for api in handlers}


def guard_of(api: ApiKey) -> Guard:
    """Return the guard of an API. Raises KeyError if the API has no guard, so that no API is open by mistake."""
    if api in OPEN:
        return _open
    if api == ApiKey.PRODUCE:
        return guard_produce
    return GUARDS[api] if api in GUARDS else partial(guard_by_rule, RULES[api])


def _open(request: Any, context: RequestContext, access: Access, handle: Handle) -> Answer:
    return handle(request, context)
