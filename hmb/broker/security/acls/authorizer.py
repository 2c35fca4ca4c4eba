"""The authorizer decides whether ACLs permit an operation.

The authorizer decides in this order:
1. A super user may do everything.
2. If an ACL with DENY matches, the operation is forbidden.
3. If an ACL with ALLOW matches, the operation is permitted.
4. If the resource has no ACL at all, the setting `allow.everyone.if.no.acl.found` decides. If the resource has ACLs,
   but none of them matches, the operation is forbidden.

An ACL matches a resource if the names are equal (LITERAL), if the ACL's name is `*`, or if the resource's name begins
with the ACL's name (PREFIXED). The principal `User:*` and the host `*` match everybody. A permission to READ, WRITE,
DELETE or ALTER includes DESCRIBE, and ALTER_CONFIGS includes DESCRIBE_CONFIGS.

A broker must make the same decisions again and again, for example for each Produce request of a client. The authorizer
therefore stores its decisions until an ACL changes. To repeat a decision, it only looks up the stored decision in a
dict. This takes the same time for any number of ACLs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias
from uuid import UUID

from hmb.broker.security.metadata_records import AccessControlEntryRecord
from hmb.broker.security.principals import USER
from hmb.broker.security.store import SecurityState
from hmb.protocol.enums import CLUSTER_NAME, AclOperation, AclPatternType, AclPermission, AclResourceType
from hmb.security.ip_addresses import normal_address

LOGGER = logging.getLogger(__name__)
MAX_DECISIONS = 10_000  # the authorizer stores at most this number of decisions
EVERYBODY, EVERYTHING, EVERYWHERE = f"{USER}:*", "*", "*"
INCLUDED_IN = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
"""Maps an operation to the operations that include it. For example, a permission to READ includes DESCRIBE."""


Writable: TypeAlias = tuple[str, str, str, UUID]
"""The principal and the host of a client, and the name and the id of a topic to which the client may write."""


class AccessRequest(NamedTuple):
    """An operation on a resource, and the client that wants to perform it: a principal on a host.

    `host` is an IP address in its normal form.
    """

    principal: str
    host: str
    operation: AclOperation
    resource_type: AclResourceType
    name: str

    def __str__(self) -> str:
        resource = f"{self.resource_type.name} {self.name!r}"
        return f"{self.principal} from {self.host}: {self.operation.name} of {resource}"


class AclIndex:
    """An index of ACLs, by the type and the name of their resources. An index never changes."""

    def __init__(self, acls: Iterable[AccessControlEntryRecord]) -> None:
        self._acls: dict[tuple[int, int, str], list[AccessControlEntryRecord]] = {}
        self._lengths = set[int]()  # the lengths (in characters) of all prefixes
        for acl in acls:
            self._acls.setdefault((acl.resource_type, acl.pattern_type, acl.resource_name), []).append(acl)
            if acl.pattern_type == AclPatternType.PREFIXED:
                self._lengths.add(len(acl.resource_name))

    def of(self, resource_type: AclResourceType, name: str) -> Iterator[AccessControlEntryRecord]:
        """Yield the ACLs that match a resource: by its name, by `*`, or by a prefix of its name."""
        for literal in {name, EVERYTHING}:
            yield from self._acls.get((resource_type, AclPatternType.LITERAL, literal), ())
        for length in self._lengths:
            if length <= len(name):
                yield from self._acls.get((resource_type, AclPatternType.PREFIXED, name[:length]), ())

    def of_type(self, resource_type: AclResourceType) -> Iterator[AccessControlEntryRecord]:
        """Yield every ACL whose resources have this type."""
        for (kind, _, _), acls in self._acls.items():
            if kind == resource_type:
                yield from acls


class Authorizer:
    """Decides whether the current ACLs permit an operation. Thread-safe.

    When an ACL changes, `load` replaces the index of the ACLs (`AclIndex`) with a new index. An `AclIndex` itself
    never changes, so several threads can read it at the same time.
    """

    def __init__(self, super_users: Iterable[str], *, allows_without_acl: bool) -> None:
        self.super_users = frozenset(super_users)
        self._allows_without_acl = allows_without_acl
        self._index = AclIndex(())
        self._decisions: dict[AccessRequest, bool] = {}
        self.writable: set[Writable] = set()  # the topics of permitted Produce requests (rule_guards.py: guard_produce)

    def load(self, state: SecurityState) -> None:
        """Use the ACLs in `state` from now on, and forget all stored decisions."""
        self._index, self._decisions = AclIndex(state.acls.values()), {}
        # `load` replaces the set `writable` last. If it replaced `writable` before the ACLs, `guard_produce` could add
        # a decision from the old ACLs to the new set.
        self.writable = set()

    @property
    def may_remember(self) -> bool:
        """Whether the function `guard_produce` may add a client and a topic to the set `writable`.

        `guard_produce` adds them if the client is allowed to write to the topic. For later Produce requests of this
        client to this topic, it skips the check of the ACLs.

        The value is False if `writable` contains MAX_DECISIONS or more items.

        The value is also False at the log level DEBUG. At this level, each check writes a line to the log, so
        `guard_produce` must not skip a check.
        """
        return len(self.writable) < MAX_DECISIONS and not LOGGER.isEnabledFor(logging.DEBUG)

    def allows(self, access_request: AccessRequest) -> bool:
        """Return the decision about a request, and log it: a refusal at INFO, a permission at DEBUG."""
        decision = self.decision(access_request)
        if not decision:
            LOGGER.info("denied: %s", access_request)
        elif LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug("allowed: %s", access_request)
        return decision

    def decision(self, access_request: AccessRequest) -> bool:
        """Return True if the authorizer permits a request. Do not log the decision.

        For example, a handler lists topics, and leaves out each topic that the client must not see. The handler checks
        each topic with this method. The client's request succeeds, so the log must not contain a refusal.
        """
        decisions = self._decisions
        decision = decisions.get(access_request)
        if decision is None:
            decision = self._decide(access_request)
            if len(decisions) < MAX_DECISIONS:
                decisions[access_request] = decision
        return decision

    def _decide(self, access_request: AccessRequest) -> bool:
        if access_request.principal in self.super_users:
            return True
        acls = list(self._index.of(access_request.resource_type, access_request.name))
        if not acls:
            return self._allows_without_acl
        matching = [acl for acl in acls if _matches(acl, access_request)]
        if any(acl.permission_type == AclPermission.DENY for acl in matching):
            return False
        return any(acl.permission_type == AclPermission.ALLOW for acl in matching)

    def allows_any(self, access_request: AccessRequest) -> bool:
        """Return whether a client may perform an operation on at least one resource of a type.

        For a super user, the result is True. For any other client, the ACLs for this client and this operation
        decide, in this order:

        1. If an ACL with DENY has the name `*`, the result is False.
        2. If `allow.everyone.if.no.acl.found` is true, the result is True.
        3. An ACL with DENY cancels each ACL with ALLOW that has the same name and pattern type. The result is True
           if an ACL with ALLOW remains, and False otherwise.

        The method ignores `access_request.name`, so the result is an approximation. For example, a DENY for the
        prefix `ord` does not cancel an ALLOW for the topic `orders`.
        """
        if access_request.principal in self.super_users:
            return True
        acls = [acl for acl in self._index.of_type(access_request.resource_type) if _matches(acl, access_request)]
        denied = {(a.pattern_type, a.resource_name) for a in acls if a.permission_type == AclPermission.DENY}
        if (AclPatternType.LITERAL, EVERYTHING) in denied:
            return False
        allowed = {(a.pattern_type, a.resource_name) for a in acls if a.permission_type == AclPermission.ALLOW}
        return self._allows_without_acl or bool(allowed - denied)


def _matches(acl: AccessControlEntryRecord, access_request: AccessRequest) -> bool:
    """Return whether the principal, the host and the operation of an ACL match the request."""
    if acl.principal not in (access_request.principal, EVERYBODY) or (
        acl.host != EVERYWHERE and normal_address(acl.host) != access_request.host
    ):
        return False
    if acl.operation in (access_request.operation, AclOperation.ALL):
        return True
    is_permission = acl.permission_type == AclPermission.ALLOW
    return is_permission and acl.operation in INCLUDED_IN.get(access_request.operation, ())


class Access(NamedTuple):
    """The principal and the host of one client, with the authorizer that decides about the client's requests."""

    authorizer: Authorizer
    principal: str
    host: str

    def may(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
        return self.authorizer.allows(AccessRequest(self.principal, self.host, operation, resource_type, name))

    def decision(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
        """Return True if the client may perform an operation on a resource. Do not log the decision.

        Handlers call this method for each resource of a list, and leave forbidden resources out of the response. This
        is not a refused request, so no line appears in the log.
        """
        return self.authorizer.decision(AccessRequest(self.principal, self.host, operation, resource_type, name))

    def may_with_cluster(self, operation: AclOperation) -> bool:
        return self.may(operation, AclResourceType.CLUSTER, CLUSTER_NAME)

    def may_with_any_topic(self, operation: AclOperation) -> bool:
        access_request = AccessRequest(self.principal, self.host, operation, AclResourceType.TOPIC, "")
        return self.authorizer.allows_any(access_request)
