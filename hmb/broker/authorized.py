"""Encodes in one number which operations a client may perform on a topic, a group or the cluster (KIP-430).

Each bit of the number stands for one operation, and is 1 if the client may perform this operation. For example, a
Metadata response can contain such a number for each topic. Without an authorizer, every client may perform every
operation. The handlers therefore use the numbers in this module, in which the bits of all operations are 1. With an
authorizer, a guard replaces the numbers of topics and of the cluster by those of the client (security/acls/guards.py).
"""

from hmb.protocol.enums import AclOperation


def _bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _bits(
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
GROUP_OPERATIONS = _bits(
    AclOperation.READ,
    AclOperation.DELETE,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = _bits(
    AclOperation.CREATE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.IDEMPOTENT_WRITE,
)
