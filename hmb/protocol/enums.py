"""Names for the numbers in requests and responses. For example, the isolation level 1 means read_committed.

Error codes and API keys have their own modules (`errors`, `api_keys`). The numbers inside records, for example the
codec of a batch, are declared in `hmb.records`.

Source: Kafka 4.3, `ConfigResource.Type`, `DescribeConfigsResponse`, `AlterConfigOp.OpType`, `IsolationLevel`,
`FindCoordinatorRequest.CoordinatorType`, `AclOperation`, `ListOffsetsRequest`.
"""

from enum import IntEnum, StrEnum

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1  # the greatest numbers of the types int32 and int64
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1  # no sequence number: the producer of the batch is not idempotent
MAX_PRODUCER_EPOCH = 2**15 - 1  # the largest epoch; a transaction coordinator uses it only to fence a producer
NO_LEADER_EPOCH = -1
NO_COORDINATOR_EPOCH = -1
NO_OFFSET = -1  # no offset exists, for example because a group has committed none
# An idempotent producer sends at most five batches to a partition before it waits for a response. In each partition,
# the broker remembers the last five batches of each producer. So the broker can recognize a batch that it receives
# twice.
MAX_IN_FLIGHT = 5
# A ConsumerGroupHeartbeat request (KIP-848) contains the member epoch. With 0, a member joins the group. With -1, a
# member leaves it. With -2, a static member leaves, but will join again. A member that has joined has an epoch above 0.
JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
# A request with the epoch 0 opens a fetch session (KIP-227) or a share session (KIP-932). The epoch -1 closes the
# session. A fetch without a session also has the epoch -1.
INITIAL_SESSION_EPOCH, FINAL_SESSION_EPOCH = 0, -1
NO_SESSION = 0  # the session id of a fetch without a session
NO_GENERATION = -1  # the generation of a consumer that is not a member of the group
CONSUMER_REPLICA_ID = -1  # the replica id in the requests of a consumer


class LabeledEnum(IntEnum):
    """An enum whose members also have a name in Kafka's spelling (`label`), for example "PrepareCommit"."""

    @property
    def label(self) -> str:
        """Kafka's name for this member, for example "PrepareCommit" for PREPARE_COMMIT."""
        return self.name.title().replace("_", "")


ALL_BROKERS = ""
"""The resource name that stands for the settings of all brokers."""

# A ListOffsets request usually asks for the offset of the first record at or after a timestamp. A negative number
# instead of the timestamp asks for a special offset, for example -2 for the log start offset.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3  # the record with the greatest timestamp (KIP-734)
EARLIEST_LOCAL = -4  # the first record on the broker's own disk (KIP-405)
LATEST_TIERED = -5  # the last record that is in tiered storage (KIP-1005)
EARLIEST_PENDING_UPLOAD = -6  # the first record that is not yet in tiered storage (KIP-1023)


class GroupType(StrEnum):
    """The protocol that the members of a group use. Responses contain the name of the protocol in lower case."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


CONSUMER_GROUP_TYPES = (GroupType.CLASSIC, GroupType.CONSUMER)
"""The two protocols between which a consumer chooses with the setting `group.protocol`."""


class StreamsStatus(IntEnum):
    """A reason why a streams application cannot run all its tasks, in a StreamsGroupHeartbeat response (KIP-1071)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class GroupState(StrEnum):
    """The state of a group, for example in a ListGroups response. Each type of group uses only some of these states."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    NOT_READY = "NotReady"
    DEAD = "Dead"


class Acks(IntEnum):
    """The replicas that must store the records before the broker responds: none, the leader or all replicas."""

    NONE = 0
    LEADER = 1
    ALL = -1


class IsolationLevel(IntEnum):
    """Whether a consumer also receives records of transactions that are open or aborted (KIP-98)."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


ISOLATION_LEVELS = {level.name.lower(): level for level in IsolationLevel}
"""The isolation levels. The keys are their names in settings such as `isolation.level`."""


class CoordinatorType(IntEnum):
    """Whether the key in a FindCoordinator request names a group, a transactional id or a share-partition."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class ResourceType(IntEnum):
    """The kinds of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """The place that a setting's value comes from, for example the default or the settings of a topic."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> "ConfigSource":
        """Return UNKNOWN for a number that this enum does not contain. A newer broker can send such a number."""
        return cls.UNKNOWN


class ConfigType(IntEnum):
    """The data type of a setting's value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigOperation(IntEnum):
    """The change that an IncrementalAlterConfigs request makes to a setting (KIP-339).

    SET sets a value, and DELETE restores the default. If the value is a list, APPEND adds items to the list, and
    SUBTRACT removes items from it.
    """

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AclOperation(IntEnum):
    """The operations that a client may be authorized for.

    A response contains the allowed operations as one number, with one bit for each operation (KIP-430). For example,
    bit 3 stands for READ.
    """

    ANY = 1  # only in filters
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AcknowledgeType(IntEnum):
    """The acknowledgement that a member of a share group sends for an acquired record (KIP-932).

    GAP means that the offset contains no record for the application. RENEW extends the time for
    which the broker reserves the record for the member (KIP-1222).
    """

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class ShareAcquireMode(IntEnum):
    """How many records a member of a share group acquires (KIP-1206).

    With BATCH_OPTIMIZED, the broker acquires whole record batches, so a member can get more records than it asked for.
    """

    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class AclResourceType(IntEnum):
    """The kinds of resources that an ACL can protect."""

    ANY = 1  # only in filters
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclPatternType(IntEnum):
    """How an ACL names its resources: by the whole name, or by the beginning of the name (KIP-290)."""

    ANY = 1  # only in filters
    MATCH = 2  # only in filters: all ACLs that apply to a resource with this name
    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    """Whether an ACL forbids or permits an operation."""

    ANY = 1  # only in filters
    DENY = 2
    ALLOW = 3


CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of the type CLUSTER."""


class QuotaEntityType(StrEnum):
    """The types of entities to which a quota can apply (KIP-546)."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


class QuotaKey(StrEnum):
    """The names of quotas. `QUOTA_KEYS` contains the names for each entity type."""

    PRODUCER_BYTE_RATE = "producer_byte_rate"  # bytes of Produce requests in one second
    CONSUMER_BYTE_RATE = "consumer_byte_rate"  # bytes of Fetch responses in one second
    REQUEST_PERCENTAGE = "request_percentage"  # work of the broker's threads; 100 means all the time of one thread
    CONTROLLER_MUTATION_RATE = "controller_mutation_rate"  # partitions that a client creates or deletes in one second
    CONNECTION_CREATION_RATE = "connection_creation_rate"  # new connections in one second


_KEYS_OF_CLIENTS = tuple(key for key in QuotaKey if key is not QuotaKey.CONNECTION_CREATION_RATE)
QUOTA_KEYS = {
    QuotaEntityType.USER: _KEYS_OF_CLIENTS,
    QuotaEntityType.CLIENT_ID: _KEYS_OF_CLIENTS,
    QuotaEntityType.IP: (QuotaKey.CONNECTION_CREATION_RATE,),
}


class QuotaMatch(IntEnum):
    """How a DescribeClientQuotas request selects quotas by their user, client-id or IP address (KIP-546)."""

    EXACT = 0  # the quotas of the entity with the given name
    DEFAULT = 1  # only the default quotas, which apply to all entities without quotas of their own
    SPECIFIED = 2  # the quotas of all entities, and also the default quotas
