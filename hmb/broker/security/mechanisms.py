"""The SASL mechanisms that HMB offers, each with a function that begins an exchange."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hmb.broker.security import users
from hmb.broker.security.login import Exchange
from hmb.broker.security.plain import PlainExchange
from hmb.broker.security.scram import ScramExchange
from hmb.broker.security.settings import ListenerSecurity
from hmb.broker.security.store import SecurityStore
from hmb.security.scram import SCRAM_MECHANISMS


def mechanisms_of(security: ListenerSecurity, store: SecurityStore) -> dict[str, Callable[[], Exchange]]:
    """Return, for each mechanism of a listener, a function that begins an exchange."""
    find = partial(users.find, store)
    return {
        name: partial(ScramExchange, SCRAM_MECHANISMS[name], find)
        if name in SCRAM_MECHANISMS
        else partial(PlainExchange, security.plain_users)
        for name in security.mechanisms
    }
