"""Finds the quota that applies to a client.

Several quotas can match one client, but only the most specific one applies (KIP-55). The *default user*
stands for any user, and the *default client id* stands for any client id. The broker looks for a quota in the
order of this table, and uses the first one that exists. The right column shows which clients share the quota:
    1. the client's user and the client id           clients with the same user and client id
    2. the client's user and the default client id   clients with the same user and client id
    3. the client's user                             clients with the same user
    4. the default user and the client id            clients with the same user and client id
    5. the default user and the default client id    clients with the same user and client id
    6. the default user                              clients with the same user
    7. the client id                                 clients with the same client id
    8. the default client id                         clients with the same client id

For example, the user alice has a quota of 1,000 bytes/s, and the client id `web` has a quota of 500 bytes/s. A
client of alice has the client id `web`, so both quotas match. Only the quota of alice applies, because a quota
for a user comes before a quota for a client id. The client shares the 1,000 bytes/s with all other clients of
alice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from hmb.broker.security.store import Quotas
from hmb.protocol.enums import QuotaEntityType

MAX_CACHED_LIMITS = 10_000  # limit for the stored results of look-ups
USER, CLIENT_ID, IP = QuotaEntityType.USER, QuotaEntityType.CLIENT_ID, QuotaEntityType.IP


class QuotaClient(NamedTuple):
    """The user and the client id of a client. These two names decide which quotas apply to the client."""

    user: str
    client_id: str

    @classmethod
    def of(cls, principal: str, client_id: str | None) -> Self:
        """Create a `QuotaClient` from a principal, such as "User:alice", and from the client id of a request."""
        return cls(principal.partition(":")[2], client_id or "")


class Limit(NamedTuple):
    """A quota in units per second, and the clients that share it: the clients with this user and this client id.

    If `user` is None, the clients of all users share the quota. If `client_id` is None, the clients with all client
    ids share the quota.
    """

    quota: float
    user: str | None = None
    client_id: str | None = None


class Limits:
    """All quotas of the broker. If a quota changes, the broker creates a new `Limits` object.

    The quotas in a `Limits` object never change, so the object can cache look-up results.
    """

    def __init__(self, quotas: Quotas, addresses: Mapping[str, set[str]]) -> None:
        """Prepare the quotas for look-ups. `addresses` maps each host with a quota to its IP addresses.

        If `addresses` does not contain a host, the quota of this host does not apply yet. For example, the broker has
        not found the IP addresses of a new host yet.
        """
        self.quotas = quotas
        self.keys = {key for values in quotas.values() for key in values}
        self._found: dict[tuple[str, QuotaClient], Limit | None] = {}  # the results of earlier look-ups
        self._by_address = {
            address: values
            for entity, values in quotas.items()
            if (host := dict(entity).get(IP)) is not None
            for address in addresses.get(host, ())
        }

    @property
    def hosts(self) -> set[str]:
        """The hosts with a quota, as names or IP addresses."""
        return {host for entity in self.quotas if (host := dict(entity).get(IP)) is not None}

    def of(self, key: str, client: QuotaClient) -> Limit | None:
        """Return the most specific quota with the name `key` that applies to a client, or None."""
        if key not in self.keys:
            return None
        try:
            return self._found[key, client]
        except KeyError:
            if len(self._found) >= MAX_CACHED_LIMITS:
                self._found.clear()
            found = self._found[key, client] = self._most_specific(key, client)
            return found

    def _most_specific(self, key: str, client: QuotaClient) -> Limit | None:
        client_ids = ((CLIENT_ID, client.client_id), (CLIENT_ID, None), None)
        for user_part in ((USER, client.user), (USER, None), None):
            for client_part in client_ids:
                entity = frozenset(part for part in (user_part, client_part) if part is not None)
                quota = self.quotas.get(entity, {}).get(key)
                if quota is not None:
                    return Limit(quota, user_part and client.user, client_part and client.client_id)
        return None

    def of_address(self, key: str, address: str) -> Limit | None:
        """Return the quota of an IP address, or the default of all IP addresses, or None."""
        values = self._by_address.get(address) or self.quotas.get(frozenset({(IP, None)}), {})
        return Limit(values[key]) if key in values else None
