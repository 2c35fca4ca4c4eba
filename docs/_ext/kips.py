"""Makes the web address of each Kafka Improvement Proposal (KIP) that HMB cites.

In Kafka's wiki, the address of a KIP's page usually contains the number and the title of the KIP. To make links, this
module stores the titles. The addresses of five KIPs contain a page number instead, for example 65868090 for KIP-79.
The module stores these page numbers, too.
"""

from __future__ import annotations

from urllib.parse import quote_plus

WIKI = "https://cwiki.apache.org/confluence/"
ALL_KIPS = WIKI + "display/KAFKA/Kafka+Improvement+Proposals"
TITLES = {  # number of a KIP -> the rest of its page's name, exactly as in the wiki
    4: " - Command line and centralized administrative operations",
    11: " - Authorization Interface",
    13: " - Quotas",
    31: " - Move to relative offsets in compressed message sets",
    32: " - Add timestamps to Kafka message",
    33: " - Add a time based log index",
    35: " - Retrieving protocol version",
    43: ": Kafka SASL enhancements",
    48: " Delegation token support for Kafka",
    54: " - Sticky Partition Assignment Strategy",
    55: ": Secure Quotas for Authenticated Users",
    57: " - Interoperable LZ4 Framing",
    58: " - Make Log Compaction Point Configurable",
    62: ": Allow consumer to send heartbeats from a background thread",
    74: ": Add Fetch Response Size Limit in Bytes",
    82: " - Add Record Headers",
    84: ": Support SASL SCRAM mechanisms",
    98: " - Exactly Once Delivery and Transactional Messaging",
    101: " - Alter Replication Protocol to use Leader Epoch rather than High Watermark for Truncation",
    107: ": Add deleteRecordsBefore() API in AdminClient",
    110: ": Add Codec for ZStandard Compression",
    113: ": Support replicas movement between log directories",
    124: " - Request rate quotas",
    133: ": Describe and Alter Configs Admin APIs",
    134: ": Delay initial consumer group rebalance",
    140: ": Add administrative RPCs for adding, deleting, and listing ACLs",
    144: ": Exponential backoff for broker reconnect attempts",
    152: " - Improve diagnostics for SASL authentication failures",
    195: ": AdminClient.createPartitions",
    211: ": Revise Expiration Semantics of Consumer Group Offsets",
    219: " - Improve quota communication",
    226: " - Dynamic Broker Configuration",
    227: ": Introduce Incremental FetchRequests to Increase Partition Scalability",
    229: ": DeleteGroups API",
    279: ": Fix log divergence between leader and follower after fast leader fail over",
    290: ": Support for Prefixed ACLs",
    320: ": Allow fetchers to detect and handle log truncation",
    339: ": Create a new IncrementalAlterConfigs API",
    341: ": Update Sticky Assignor's User Data Protocol",
    345: ": Introduce static membership protocol to reduce consumer rebalances",
    354: ": Add a Maximum Log Compaction Lag",
    368: ": Allow SASL Connections to Periodically Re-Authenticate",
    371: ": Add a configuration to build custom SSL principal name",
    373: ": Allow users to create delegation tokens for other users",
    382: ": MirrorMaker 2.0",
    392: ": Allow consumers to fetch from closest replica",
    394: ": Require member.id for initial join group request",
    402: ": Improve fairness in SocketServer processors",
    405: ": Kafka Tiered Storage",
    412: ": Extend Admin API to support dynamic application log levels",
    429: ": Kafka Consumer Incremental Rebalance Protocol",
    430: " - Return Authorized Operations in Describe Responses",
    447: ": Producer scalability for exactly once semantics",
    455: ": Create an Administrative API for Replica Reassignment",
    460: ": Admin Leader Election RPC",
    467: ": Augment ProduceResponse error messaging for specific culprit records",
    480: ": Sticky Partitioner",
    482: ": The Kafka Protocol should Support Optional Tagged Fields",
    496: ": Administrative API to delete consumer offsets",
    511: ": Collect and Expose Client's Name and Version in the Brokers",
    516: ": Topic Identifiers",
    518: ": Allow listing consumer groups per state",
    525: " - Return topic metadata and configs in CreateTopics response",
    534: ": Retain tombstones and transaction markers for approximately delete.retention.ms milliseconds",
    546: ": Add Client Quota APIs to the Admin Client",
    554: ": Add Broker-side SCRAM Config API",
    559: ": Make the Kafka Protocol Friendlier with L7 Proxies",
    569: ": DescribeConfigsResponse - Update the schema to include additional metadata information of the field",
    580: ": Exponential Backoff for Kafka Clients",
    584: ": Versioning scheme for features",
    595: ": A Raft Protocol for the Metadata Quorum",
    599: ": Throttle Create Topic, Create Partition and Delete Topic Operations",
    612: ": Ability to Limit Connection Creation Rate on Brokers",
    618: ": Exactly-Once Support for Source Connectors",
    631: ": The Quorum-based Kafka Controller",
    651: " - Support PEM format for SSL certificates and private key",
    664: ": Provide tooling to detect and abort hanging transactions",
    679: ": Producer will enable the strongest delivery guarantee by default",
    684: " - Support mutual TLS authentication on SASL_SSL listeners",
    699: ": Update FindCoordinator to resolve multiple Coordinators at a time",
    700: ": Add Describe Cluster API",
    714: ": Client metrics and observability",
    734: ": Improve AdminClient.listOffsets to return timestamp and offset for the record with the largest timestamp",
    794: ": Strictly Uniform Sticky Partitioner",
    800: ": Add reason to JoinGroupRequest and LeaveGroupRequest",
    801: ": Implement an Authorizer that stores metadata in __cluster_metadata",
    814: ": Static membership protocol should let the leader skip assignment",
    827: ": Expose logdirs total and usable space via Kafka API",
    836: ": Expose replication information of the cluster metadata",
    848: ": The Next Generation of the Consumer Rebalance Protocol",
    853: ": KRaft Controller Membership Changes",
    881: ": Rack-aware Partition Assignment for Kafka Consumers",
    890: ": Transactions Server-Side Defense",
    896: ": Remove old client protocol API versions in Kafka 4.0",
    900: ": KRaft kafka-storage.sh API additions to support SCRAM for Kafka Brokers",
    903: ": Replicas with stale broker epoch should not be allowed to join the ISR",
    915: ": Txn and Group Coordinator Downgrade Foundation",
    919: ": Allow AdminClient to Talk Directly with the KRaft Controller Quorum and add Controller Registration",
    932: ": Queues for Kafka",
    937: ": Improve Message Timestamp Validation",
    939: ": Support Participation in 2PC",
    951: ": Leader discovery optimisations for the client",
    966: ": Eligible Leader Replicas",
    994: ": Minor Enhancements to ListTransactions and DescribeTransactions APIs",
    1000: ": List Client Metrics Configuration Resources",
    1005: ": Expose EarliestLocalOffset and TieredOffset",
    1043: ": Administration of groups",
    1066: ": Mechanism to cordon brokers and log directories",
    1071: ": Streams Rebalance Protocol",
    1073: ": Return fenced brokers in DescribeCluster response",
    1082: ": Require Client-Generated IDs over the ConsumerGroupHeartbeat RPC",
    1101: ": Trigger rebalance on rack topology changes",
    1142: ": Allow to list non-existent group which has dynamic config",
    1152: ": Add transactional ID pattern filter to ListTransactions API",
    1206: ": Strict max fetch records in share fetch",
    1222: ": Acquisition lock timeout renewal in share consumer explicit mode",
    1226: ": Introducing Share Partition Lag Persistence and Retrieval",
    1228: ": Add Transaction Version to WriteTxnMarkersRequest",
    1251: ": Assignment epochs for consumer groups",
}
NUMBERED_PAGES = {  # number of a KIP -> (number of its page in the wiki, title)
    79: (65868090, "ListOffsetRequest/ListOffsetResponse v1 and add timestamp search methods to the new consumer"),
    360: (89068820, "Improve reliability of idempotent/transactional producer"),
    464: (113708722, "Defaults for AdminClient#createTopic"),
    709: (173084258, "Extend OffsetFetch requests to accept multiple group ids"),
    792: (191336614, 'Add "generation" field into consumer protocol'),
}


def all_numbers() -> list[int]:
    """Return the numbers of all KIPs that have an entry in this module, in ascending order."""
    return sorted((*TITLES, *NUMBERED_PAGES))


def address_of(number: int) -> str:
    """Return the address of a KIP's page.

    If this module has no entry for the KIP, return the address of the list of all KIPs.
    """
    if number in NUMBERED_PAGES:
        return f"{WIKI}pages/viewpage.action?pageId={NUMBERED_PAGES[number][0]}"
    if number in TITLES:
        return f"{WIKI}display/KAFKA/" + quote_plus(f"KIP-{number}{TITLES[number]}")
    return ALL_KIPS


def title_of(number: int) -> str:
    """Return a title such as "KIP-98: Exactly Once Delivery ...".

    If this module has no entry for the KIP, the title is only "KIP-98".
    """
    if number in NUMBERED_PAGES:
        return f"KIP-{number}: {NUMBERED_PAGES[number][1]}"
    return f"KIP-{number}" + TITLES.get(number, "").replace(" - ", ": ", 1)
