"""The permissions that each API needs, and the users with which the comparisons test these permissions.

The test sends the same request as several users, which have different ACLs. For example, an OffsetCommit request needs
the permissions READ on the group and READ on each topic. The test sends this request as seven users:
- a user without ACLs
- a user with both permissions
- two users that each have only one of the two permissions
- a user with all permissions on groups and topics, but an ACL denies READ on groups
- a user with all permissions on groups and topics, but an ACL denies READ on topics
- a user with both permissions, but only on resources whose names begin with `open`

The function `users_of` creates the users for the test of one API. It needs a list of the permissions that the API
requires. For most APIs, this list is in the module `hmb/broker/security/acls/rules.py`. For the other APIs, the list is
in the dictionary `OF_SPECIAL`. If an API has no list, the tests stop with a KeyError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hmb.broker.handlers import HANDLERS
from hmb.broker.security.acls.rules import OPEN, RULES, ApiRule
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import CLUSTER_NAME, AclPatternType, AclPermission, AclResourceType
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.messages import api_name
from hmb.protocol.messages.create_acls import CreateAclsRequest

TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
TRANSACTIONAL_ID = AclResourceType.TRANSACTIONAL_ID
EVERYTHING, EVERYWHERE = "*", "*"
OPEN_PREFIX = "open"
STRANGER = "stranger"  # the user without ACLs


class Need(NamedTuple):
    """An operation on a kind of resource."""

    operation: Op
    kind: AclResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.kind.name}"


OF_SPECIAL: Mapping[ApiKey, list[Need]] = {
    ApiKey.METADATA: [Need(Op.DESCRIBE, TOPIC), Need(Op.CREATE, TOPIC), Need(Op.CREATE, CLUSTER)],
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: [Need(Op.DESCRIBE, TOPIC)],
    ApiKey.DESCRIBE_CLUSTER: [Need(Op.DESCRIBE, CLUSTER)],
    ApiKey.CREATE_TOPICS: [Need(Op.CREATE, TOPIC), Need(Op.CREATE, CLUSTER), Need(Op.DESCRIBE_CONFIGS, TOPIC)],
    ApiKey.FIND_COORDINATOR: [
        Need(Op.DESCRIBE, GROUP),
        Need(Op.DESCRIBE, TRANSACTIONAL_ID),
        Need(Op.CLUSTER_ACTION, CLUSTER),
    ],
    ApiKey.OFFSET_FETCH: [Need(Op.DESCRIBE, GROUP), Need(Op.DESCRIBE, TOPIC)],
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: [Need(Op.DESCRIBE, GROUP), Need(Op.DESCRIBE, TOPIC)],
    ApiKey.LIST_GROUPS: [Need(Op.DESCRIBE, GROUP), Need(Op.DESCRIBE, CLUSTER)],
    ApiKey.LIST_TRANSACTIONS: [Need(Op.DESCRIBE, TRANSACTIONAL_ID)],
    ApiKey.INIT_PRODUCER_ID: [
        Need(Op.WRITE, TRANSACTIONAL_ID),
        Need(Op.IDEMPOTENT_WRITE, CLUSTER),
        Need(Op.WRITE, TOPIC),
    ],
    ApiKey.ADD_PARTITIONS_TO_TXN: [
        Need(Op.WRITE, TRANSACTIONAL_ID),
        Need(Op.WRITE, TOPIC),
        Need(Op.CLUSTER_ACTION, CLUSTER),
    ],
    ApiKey.WRITE_TXN_MARKERS: [Need(Op.CLUSTER_ACTION, CLUSTER), Need(Op.ALTER, CLUSTER)],
    ApiKey.DELETE_TOPICS: [Need(Op.DELETE, TOPIC)],
    ApiKey.CONSUMER_GROUP_HEARTBEAT: [Need(Op.READ, GROUP), Need(Op.DESCRIBE, TOPIC)],
    ApiKey.STREAMS_GROUP_HEARTBEAT: [Need(Op.READ, GROUP), Need(Op.DESCRIBE, TOPIC), Need(Op.CREATE, TOPIC)],
    ApiKey.STREAMS_GROUP_DESCRIBE: [Need(Op.DESCRIBE, GROUP), Need(Op.DESCRIBE, TOPIC)],
    ApiKey.SHARE_GROUP_HEARTBEAT: [Need(Op.READ, GROUP), Need(Op.DESCRIBE, TOPIC)],
    ApiKey.DESCRIBE_CONFIGS: [Need(Op.DESCRIBE_CONFIGS, kind) for kind in (TOPIC, GROUP, CLUSTER)],
    ApiKey.ALTER_CONFIGS: [Need(Op.ALTER_CONFIGS, kind) for kind in (TOPIC, GROUP, CLUSTER)],
    ApiKey.INCREMENTAL_ALTER_CONFIGS: [Need(Op.ALTER_CONFIGS, kind) for kind in (TOPIC, GROUP, CLUSTER)],
    ApiKey.CREATE_DELEGATION_TOKEN: [Need(Op.CREATE_TOKENS, AclResourceType.USER)],
    ApiKey.DESCRIBE_DELEGATION_TOKEN: [
        Need(Op.DESCRIBE, AclResourceType.DELEGATION_TOKEN),
        Need(Op.DESCRIBE_TOKENS, AclResourceType.USER),
    ],
}


def needs(api: ApiKey) -> list[Need]:
    """Return the operations that an API needs. Raises KeyError if the API is in no table."""
    if api in OPEN:
        return []
    return list(_of_rule(RULES[api])) if api in RULES else OF_SPECIAL[api]


def _of_rule(rule: ApiRule) -> Iterator[Need]:
    kinds = {CLUSTER: rule.cluster, TRANSACTIONAL_ID: rule.transactional_id, GROUP: rule.group, TOPIC: rule.topics}
    yield from (Need(operation, kind) for kind, operation in kinds.items() if operation is not None)
    if rule.items is not None:
        yield Need(rule.items.operation, rule.items.resource_type)


@dataclass(frozen=True)
class User:
    """A user with the ACLs for a test of one API. `situation` describes these ACLs."""

    api: ApiKey
    situation: str
    allowed: tuple[Need, ...] = ()
    denied: tuple[Need, ...] = ()
    only_open: bool = False  # whether the permissions are only for resources whose names begin with OPEN_PREFIX

    @property
    def name(self) -> str:
        if not self.allowed:
            return STRANGER
        return re.sub(r"\W+", "-", f"{api_name(self.api)}-{self.situation}")

    def acls(self) -> Iterator[CreateAclsRequest.AclCreation]:
        """Yield the user's ACLs."""
        for need in self.allowed:
            prefix = OPEN_PREFIX if self.only_open and need.kind is not CLUSTER else None
            yield self._acl(need, AclPermission.ALLOW, prefix)
        for need in self.denied:
            yield self._acl(need, AclPermission.DENY)

    def _acl(
        self, need: Need, permission: AclPermission, prefix: str | None = None
    ) -> CreateAclsRequest.AclCreation:
        return CreateAclsRequest.AclCreation(
            resource_type=need.kind,
            resource_name=prefix or (CLUSTER_NAME if need.kind is CLUSTER else EVERYTHING),
            resource_pattern_type=AclPatternType.PREFIXED if prefix else AclPatternType.LITERAL,
            principal=f"User:{self.name}",
            host=EVERYWHERE,
            operation=need.operation,
            permission_type=permission,
        )


def users_of(api: ApiKey) -> Iterator[User]:
    """Yield the users for the test of one API. Each user has different ACLs. The module's docstring has an example."""
    needed = needs(api)
    yield User(api, "no ACL")
    if not needed:
        return
    everything = [Need(Op.ALL, kind) for kind in dict.fromkeys(need.kind for need in needed)]
    for need in needed:
        if len(needed) > 1:
            yield User(api, f"without {need}", tuple(other for other in needed if other != need))
        yield User(api, f"denied {need}", tuple(everything), (need,))
    if any(need.kind is not CLUSTER for need in needed):
        yield User(api, "only open", tuple(needed), only_open=True)
    yield User(api, "allowed", tuple(needed))


USERS: list[User] = [user for api in sorted(HANDLERS) for user in users_of(api)]
