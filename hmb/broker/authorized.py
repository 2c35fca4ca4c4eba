"""Numbers whose bits show what a client may do with a topic, a group or the cluster (KIP-430).

A response can contain a number that shows the client's permitted operations. For example, a Metadata response contains
one number for each topic. Each bit of the number stands for one operation, and is 1 if the client may perform this
operation.

In TOPIC_OPERATIONS, GROUP_OPERATIONS and CLUSTER_OPERATIONS, the bit of every possible operation is 1
(permitted). A handler writes one of these numbers into its response, without checking any ACLs.

If the broker has an authorizer, a *guard* (a function, see security/acls/guards.py) checks the ACLs, and sets
the bit of each forbidden operation to 0. Otherwise, all bits stay 1.
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
