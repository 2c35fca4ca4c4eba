"""The reasons for every difference between the responses of HMB and Kafka.

Each `Explanation` consists of a reason and four patterns: for the name of the comparison, for the field, for HMB's
value and for Kafka's value. A difference has this reason if all four patterns match.

The test fails if an explanation matches no difference. This failure shows that the explanation is outdated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Fields whose values differ between any two brokers.
MASKED = frozenset({"throttle_time_ms", "cluster_id", "host", "port"})

# The tested APIs that HMB does not serve. No API may be added to this list.
NOT_SERVED: frozenset[str] = frozenset()

ANY = "*"
CLOSED, SILENT, ABSENT = "connection closed", "no answer", "(absent)"


@dataclass(frozen=True)
class Explanation:
    """A reason for differences, and the shell patterns (with `*` and `?`) that select these differences."""

    why: str
    comparisons: str
    field: str
    ours: str
    kafka: str

    def covers(self, comparison: str, field: str, ours: str, kafka: str) -> bool:
        pairs = ((comparison, self.comparisons), (field, self.field), (ours, self.ours), (kafka, self.kafka))
        return all(fnmatchcase(value, pattern) for value, pattern in pairs)


def because(why: str, *differences: tuple[str, str, str, str]) -> Iterator[Explanation]:
    """Yield one explanation for each item of `differences`. All these explanations have the same reason.

    Each item contains four patterns: for the comparison, for the field, for HMB's value and for Kafka's value.
    """
    for comparisons, field, ours, kafka in differences:
        yield Explanation(why, comparisons, field, ours, kafka)


OFFERS = [
    *because(
        "HMB supports versions that Kafka 4 has dropped, for clients from Kafka 0.8.2 on",
        ("ApiVersions/*", "api_keys.*.min_version", "0", "[1-4]"),
        ("*/*, which Kafka has dropped/*", "", ANY, CLOSED),
    ),
    *because(
        "HMB has no changes of a quorum, and offers telemetry only if a setting enables it",
        ("ApiVersions/*", "api_keys.*", ABSENT, ANY),
    ),
    *because(
        "a single broker has only the feature that clients check, because it has no other broker to agree with",
        ("ApiVersions/*", "supported_features*", ANY, ANY),
        ("ApiVersions/*", "finalized_features.*", ABSENT, ANY),
        ("ApiVersions/*", "finalized_features_epoch", "0", ANY),
    ),
]
PROTOCOL = [
    *because(
        "HMB responds to ApiVersions in any unknown version; Kafka closes the connection unless the layout is flexible",
        ("ApiVersions/unknown version 99, empty body/*", "", "*UNSUPPORTED_VERSION*", CLOSED),
        ("ApiVersions/unknown version, then a known one/*", "1", "*UNSUPPORTED_VERSION*", CLOSED),
        ("ApiVersions/unknown version, then a known one/*", "2", "*NONE*", CLOSED),
    ),
    *because(
        "HMB closes the connection after all malformed bytes; Kafka ignores some of them",
        ("ApiVersions/same tag twice/*", "", CLOSED, "*NONE*"),
        ("Metadata/list of -2/*", "", CLOSED, "*brokers*"),
    ),
]
KAFKA_FAILS = [
    *because(
        "Kafka fails with an internal exception; HMB responds to the request",
        ("Metadata/by id, zero/*", "*", ANY, ANY),
        ("ListOffsets/isolation level *", "*", ANY, ANY),
        ("Fetch/isolation level *", "*", ANY, ANY),
        ("Fetch/*max bytes -*", "*", ANY, ANY),
        ("IncrementalAlterConfigs/operation *", "*.error_code", "INVALID_REQUEST", "UNKNOWN_SERVER_ERROR"),
        ("CreatePartitions/count 10*", "*.error_code", "POLICY_VIOLATION", "UNKNOWN_SERVER_ERROR"),
        ("DescribeTopicPartitions/empty name/*", "*", ANY, ANY),
        ("Produce/batch codec ?/*", "*.error_code", "UNSUPPORTED_COMPRESSION_TYPE", "UNKNOWN_SERVER_ERROR"),
        ("Produce/batch codec ?/*", "*.log_start_offset", "-1", "0"),
    ),
    *because(
        "Kafka fails with an internal exception and never responds; HMB responds",
        ("Produce/good and null partition/*", "", ANY, SILENT),
        ("Produce/batch null/*", "1", ANY, SILENT),
        ("Produce/batch null/*", "2", ANY, CLOSED),
        ("AlterConfigs/twice the same topic/*", "", ANY, SILENT),
        ("AddPartitionsToTxn/no transactions/*", "2", ANY, SILENT),
        ("AddPartitionsToTxn/no transactions/*", "3", ANY, CLOSED),
    ),
    *because(
        "Kafka stores partitions in a table by name, so it loses one of two equal ones, and a topic without partitions",
        ("Metadata/one by name, one by id/*", "topics.three", ANY, ABSENT),
        ("Produce/no partitions/*", "responses", ANY, "[[]]"),
        ("Produce/same topic twice/*", "responses.*", ANY, ANY),
        ("Produce/same partition twice/*", "responses.*~2", ANY, ABSENT),
    ),
]
AT_ONCE = [
    *because(
        "HMB creates a topic immediately and names its leader in the same response; Kafka's clients have to ask again",
        ("Metadata/unknown, may be created/*", "*", ANY, ANY),
        ("Metadata/ACLs: *, new topic/*", "*", ANY, ANY),
    ),
    *because(
        "HMB completes these requests immediately, so no timeout is too short",
        ("*/*timeout *", "*.error_code", "*", "REQUEST_TIMED_OUT"),
        ("*/*timeout *", "error_code", "NONE", "REQUEST_TIMED_OUT"),
        ("*Topics/timeout *", "*.topic_id", ANY, "00000000-*"),
        ("CreateTopics/timeout *", "*.num_partitions", "1", "-1"),
        ("CreateTopics/timeout *", "*.replication_factor", "1", "-1"),
    ),
]
TOPICS = [
    *because(
        "if a request names a topic by name and by id, HMB's response contains only the name",
        ("DeleteTopics/same by name and by id/*", "*.topic_id", "00000000-*", ANY),
    ),
    *because(
        "HMB creates the topics of a request one after the other, and notices that two of them collide",
        ("CreateTopics/collision within a request/*", "*", ANY, ANY),
    ),
    *because(
        "HMB allows segments below Kafka's minimum of 1 MiB, so that a few records fill several segments in tests",
        ("CreateTopics/config segment.bytes 1 MiB less 1/*", "*", ANY, ANY),
    ),
    *because(
        "HMB allows 10,000 partitions in a topic; Kafka allows 10,000 new partitions in a request",
        ("CreatePartitions/count 10002/*", "*.error_code", "POLICY_VIOLATION", "NONE"),
    ),
    *because(
        "Kafka sets min.insync.replicas for the whole cluster when its storage is formatted (KIP-966)",
        ("*Topics/settings in the answer/*", "*.min.insync.replicas.config_source", "5", "3"),
        ("CreateTopics/ACLs: */*", "*.min.insync.replicas.config_source", "5", "3"),
        ("DescribeConfigs/*", "*.min.insync.replicas.config_source", "5", "3"),
        ("DescribeConfigs/*", "*.min.insync.replicas.synonyms.*", ANY, ANY),
    ),
]
RECORDS = [
    *because(
        "HMB checks a batch's header and CRC, but not its records, which the consumers check",
        ("Produce/batch says gzip, is not/*", "*", ANY, ANY),
        ("Produce/batch record's *", "*", ANY, ANY),
    ),
    *because(
        "Kafka searches the records for their greatest timestamp; HMB uses the timestamp in the header",
        ("Produce/batch base timestamp -1/*", "*.records", ANY, ANY),
        ("Produce/batch max timestamp *", "*.records", ANY, ANY),
        ("Produce/batch negative time/*", "*.records", ANY, ANY),
    ),
    *because(
        "HMB refuses records that claim to have the broker's timestamp; Kafka changes them to the client's",
        ("Produce/batch log append time/*", "*", ANY, ANY),
    ),
    *because(
        "HMB refuses bytes after a batch; Kafka drops them silently",
        ("Produce/batch byte more/*", "*", ANY, ANY),
        ("Produce/batch length one less/*", "*.error_code", "INVALID_RECORD", "CORRUPT_MESSAGE"),
        ("Produce/batch 16 bytes/*", "*.error_code", "INVALID_RECORD", "CORRUPT_MESSAGE"),
    ),
    *because(
        "HMB checks that a transaction starts at sequence number 0 before it asks the log",
        ("Produce/in a transaction, a gap at its beginning/*", "*.log_start_offset", "-1", "0"),
    ),
    *because(
        "Kafka's response to a duplicate contains the time of its last record; HMB does not store that time",
        ("Produce/idempotent duplicate*", "*.log_append_time_ms", "-1", ANY),
        ("Produce/log append time, duplicate/*", "*.log_append_time_ms", "-1", ANY),
    ),
]
REPLICAS = [
    *because(
        "a single broker has no followers, and serves every Fetch alike",
        ("Fetch/replica *", "*", ANY, ANY),
    ),
]
CONTROLLERS = [
    *because(
        "HMB has no metadata log: its metadata is in files, and its offsets and its epoch are 0",
        ("DescribeQuorum/quorum: metadata/*", "topics.*.leader_epoch", "0", ANY),
        ("DescribeQuorum/quorum: metadata/*", "topics.*.high_watermark", "0", ANY),
        ("DescribeQuorum/quorum: metadata/*", "topics.*.log_end_offset", "0", ANY),
    ),
    *because(
        "HMB's controller is the broker, so a client reaches the controller through the broker's listener",
        ("DescribeQuorum/quorum: metadata/*", "nodes.0.listeners.*", ANY, ANY),
    ),
]
QUOTAS = [
    *because(
        "HMB refuses a quota that is not a number; Kafka stores it, and it then limits nothing",
        ("AlterClientQuotas/values: not a number/*", "1.entries.*.error_code", "INVALID_REQUEST", "NONE"),
        ("AlterClientQuotas/values: not a number/*", "2.entries*", ANY, ANY),
    ),
]
GROUPS = [
    *because(
        "HMB finds the topics of a regular expression immediately; Kafka finds them one heartbeat later",
        ("ConsumerGroupHeartbeat/regular expression*", "member_epoch", "2", "1"),
        ("ConsumerGroupHeartbeat/regular expression*", "assignment.topic_partitions*", ANY, ANY),
        ("ConsumerGroupHeartbeat/ACLs: *, regular expression/*", "1.assignment.topic_partitions*", ANY, ANY),
    ),
    *because(
        "a JoinGroup response with an error contains the member id of the request, also in a consumer group",
        ("JoinGroup/migration: malformed subscription/*", "5.member_id", "<member>", ""),
        ("JoinGroup/migration: static, unknown/*", "5.member_id", "nobody", ""),
    ),
]
WORDS = [
    *because(
        "Kafka's error message for a success is the word NONE",
        ("FindCoordinator/*", "error_message", "", "NONE"),
        ("UpdateFeatures/*", "results.*.error_message", "None", "NONE"),
    ),
    *because(
        "HMB's error message for a success is null; Kafka's is an empty text",
        ("AlterPartitionReassignments/none/*", "error_message", "None", ""),
        ("*Acls/ACLs: allowed/*", "*error_message", "None", ""),
        ("DescribeUserScramCredentials/ACLs: allowed/*", "error_message", "None", ""),
    ),
]
BROKER = [
    *because(
        "these settings depend on the broker: addresses, directories, limits, and the settings of Kafka's controller",
        *(
            ("DescribeConfigs/all of a broker/*", f"*.configs.{name}.*", ANY, ANY)
            for name in (
                "*listener*",
                "controller.*",
                "log.dir*",
                "max.connections",
                "num.partitions",
            )
        ),
        ("DescribeConfigs/all brokers/*", "*.configs", "[[]]", "*min.insync.replicas*"),
    ),
    *because(
        "HMB appends to the lists of client metrics, too; Kafka does not regard them as lists",
        ("IncrementalAlterConfigs/client metrics, append/*", "*", ANY, ANY),
        ("ListConfigResources/list client metrics/*", "*.IncrementalAlterConfigs-client-metrics-append-*", ANY, ABSENT),
    ),
    *because(
        "a setting of a feature that HMB does not have",
        ("DescribeConfigs/all of a broker/*", "*.configs.*", ABSENT, ANY),
    ),
    *because(
        "HMB limits the memory of all requests by default, because each connection is a thread; Kafka does not",
        ("DescribeConfigs/all of a broker/*", "*.configs.queued.max.request.bytes.value", "16777216", "-1"),
        ("DescribeConfigs/all of a broker/*", "*.configs.queued.max.request.bytes.config_source", "4", "5"),
    ),
    *because(
        "HMB reads its settings of security only at the start, and recognizes the type of a store from the file",
        ("DescribeConfigs/all of a broker/*", "*.configs.sasl.*.read_only", "True", "False"),
        ("DescribeConfigs/all of a broker/*", "*.configs.ssl.*.read_only", "True", "False"),
        ("DescribeConfigs/all of a broker/*", "*.configs.ssl.*store.type.value", "None", "JKS"),
    ),
    *because(
        "a setting that only HMB has",
        ("DescribeConfigs/all of a broker/*", "*.configs.max.decompressed.message.bytes", ANY, ABSENT),
        ("DescribeConfigs/all of a broker/*", "*.configs.log.flush.acks.all.*", ANY, ANY),
        ("DescribeConfigs/all of a broker/*", "*.configs.threading", ANY, ABSENT),
        ("DescribeConfigs/all of a broker/*", "*.configs.allow.unauthenticated", ANY, ABSENT),
        ("DescribeConfigs/all of a broker/*", "*.configs.client.telemetry.enable", ANY, ABSENT),
        ("DescribeConfigs/all of a broker/*", "*.configs.sasl.plain.users", ANY, ABSENT),
        ("DescribeConfigs/all of a broker/*", "*.configs.min.incremental.fetch.session.eviction.ms", ANY, ABSENT),
    ),
]
SHARE_GROUPS = [
    *because(
        "HMB reports that the share group or the topic does not exist; Kafka reports that it has no offsets",
        ("DescribeShareGroupOffsets/unknown group*/*", "*", ANY, ANY),
        ("DescribeShareGroupOffsets/classic group/*", "*", ANY, ANY),
        ("DescribeShareGroupOffsets/ACLs: */*", "groups.*.error_code", "GROUP_ID_NOT_FOUND", "NONE"),
        ("DescribeShareGroupOffsets/ACLs: allowed/*", "groups.*.topics", "[[]]", "*topic_name*"),
        ("DescribeShareGroupOffsets/ACLs: only open/*", "groups.open.topics.open", ABSENT, "*"),
        ("DescribeShareGroupOffsets/ACLs: allowed, existing group/*", "*", "UNKNOWN_TOPIC_OR_PARTITION", "NONE"),
        ("DescribeShareGroupOffsets/unknown topic/*", "*", "UNKNOWN_TOPIC_OR_PARTITION", "NONE"),
    ),
    *because(
        "Kafka fails with an internal error",
        ("DescribeShareGroupOffsets/empty group id/*", "*.error_code", "GROUP_ID_NOT_FOUND", "UNKNOWN_SERVER_ERROR"),
        ("ShareFetch/unknown topic id/*", "*", ANY, ANY),
    ),
    *because(
        "HMB refuses a ShareFetch request with an empty group id",
        ("ShareFetch/empty group id/*", "*", ANY, ANY),
    ),
    *because(
        "HMB reports the partitions that the group does not read yet; Kafka leaves them out of the response",
        ("ShareFetch/member id of a few letters/*", "responses*", ANY, ANY),
    ),
]
PERMISSIONS = [
    *because(
        "Kafka offers telemetry only if it has a plugin, and HMB only if a setting enables it",
        ("ApiVersions/ACLs: */*", "api_keys.7[12]", ANY, ABSENT),
    ),
    *because(
        "HMB refuses a request in which any topic or group is forbidden, before it looks for the group or the session",
        ("OffsetDelete/ACLs: */*", "*", ANY, ANY),
        ("DeleteShareGroupOffsets/ACLs: */*", "*", ANY, ANY),
        ("ShareAcknowledge/ACLs: */*", "*", ANY, ANY),
        ("ShareFetch/ACLs: */*", "acquisition_lock_timeout_ms", "0", "30000"),
    ),
    *because(
        "HMB checks the transactional id of each Produce request; Kafka only if the records are transactional",
        ("Produce/ACLs: *, transactional id/*", "responses*", ANY, ANY),
    ),
    *because(
        "Kafka checks the transactional id before the topics; HMB checks the topics first if the request has no id",
        (
            "Produce/ACLs: *, transactional records without id/*",
            "*.error_code",
            ANY,
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        ),
    ),
    *because(
        "HMB does not reveal whether a forbidden topic id exists; Kafka does",
        ("Metadata/ACLs: *, ids/*", "*.error_code", "UNKNOWN_TOPIC_ID", "TOPIC_AUTHORIZATION_FAILED"),
    ),
    *because(
        "Kafka's response to a refused AlterShareGroupOffsets request contains the ids of topics; HMB's does not",
        ("AlterShareGroupOffsets/ACLs: */*", "*.topic_id", "00000000-*", ANY),
    ),
    *because(
        "in a refusal without details, the brokers fill other fields with empty lists and nulls",
        ("JoinGroup/ACLs: */*", "protocol_name", "", "None"),
        ("DescribeLogDirs/ACLs: */*", "results", ANY, "[[]]"),
        ("ListPartitionReassignments/ACLs: */*", "topics", "[[]]", ANY),
        ("DescribeClientQuotas/ACLs: */*", "entries", "[[]]", "None"),
        ("DescribeUserScramCredentials/ACLs: */*", "results", "[[]]", ANY),
    ),
]
EXPLAINED: list[Explanation] = [
    *PERMISSIONS,
    *SHARE_GROUPS,
    *OFFERS,
    *PROTOCOL,
    *KAFKA_FAILS,
    *AT_ONCE,
    *TOPICS,
    *RECORDS,
    *REPLICAS,
    *CONTROLLERS,
    *QUOTAS,
    *GROUPS,
    *WORDS,
    *BROKER,
]
