"""The error codes of Kafka, and the exceptions that stand for errors of the protocol.

A broker distinguishes three kinds of failure by the type of the exception:
- `KafkaError`: an error with a code, which the broker sends in its response. The code is an int16. 0 means success, and
  -1 means an unexpected failure. A code has the same meaning in all APIs.
- `ProtocolError`: the client sent bytes that no version of the protocol allows. The broker cannot respond, so it closes
  the connection.
- Every other exception is an internal error of HMB.

An error is *retriable* if the same request can succeed later. For example, a request fails because a partition has no
leader yet. Kafka's clients repeat a request after a retriable error, and report every other error to the application.
So a broker must send the right code. After a wrong code, a client can give up too early, or repeat a request that can
never succeed.

Source: org.apache.kafka.common.protocol.Errors of Kafka 4.3 (codes, names, retriable). The messages are HMB's own.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self

RETRY = True


class ErrorCode(IntEnum):
    """One of Kafka's error codes, with a name, a number and a message.

    Responses contain the number. If the attribute `retriable` is true (RETRY in the list below), the client may send
    the failed request again.
    """

    message: str
    retriable: bool

    def __new__(cls, code: int, message: str = "", retriable: bool = False) -> Self:
        member = int.__new__(cls, code)
        member._value_ = code
        member.message = message
        member.retriable = retriable
        return member

    UNKNOWN_SERVER_ERROR = -1, "The broker failed in a way it did not expect; its log says more."
    NONE = 0, "No error."
    OFFSET_OUT_OF_RANGE = 1, "The partition's log does not hold this offset (or no longer)."
    CORRUPT_MESSAGE = 2, "The records are damaged: checksum, size or layout is wrong.", RETRY
    UNKNOWN_TOPIC_OR_PARTITION = 3, "This broker has no such topic or partition.", RETRY
    INVALID_FETCH_SIZE = 4, "The fetch size asked for is not valid."
    LEADER_NOT_AVAILABLE = 5, "The partition has no leader at the moment.", RETRY
    NOT_LEADER_OR_FOLLOWER = 6, "This broker does not lead (or does not hold) the partition.", RETRY
    REQUEST_TIMED_OUT = 7, "The request was not completed within its time limit.", RETRY
    BROKER_NOT_AVAILABLE = 8, "The broker is not available."
    REPLICA_NOT_AVAILABLE = 9, "The replica asked for is not available.", RETRY
    MESSAGE_TOO_LARGE = 10, "The record batch is larger than the topic's max.message.bytes."
    STALE_CONTROLLER_EPOCH = 11, "Another controller has taken over."
    OFFSET_METADATA_TOO_LARGE = 12, "The metadata string committed with an offset is too long."
    NETWORK_EXCEPTION = 13, "The connection closed before the answer came.", RETRY
    COORDINATOR_LOAD_IN_PROGRESS = 14, "The coordinator is still loading its state.", RETRY
    COORDINATOR_NOT_AVAILABLE = 15, "The coordinator is not available.", RETRY
    NOT_COORDINATOR = 16, "This broker is not the coordinator of that group or transactional id.", RETRY
    INVALID_TOPIC_EXCEPTION = 17, "The topic's name is not valid, or the topic does not allow this operation."
    RECORD_LIST_TOO_LARGE = 18, "The record batch is larger than a log segment may be."
    NOT_ENOUGH_REPLICAS = 19, "Fewer replicas are in sync than min.insync.replicas; nothing was written.", RETRY
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, "Written, but to fewer replicas in sync than asked for.", RETRY
    INVALID_REQUIRED_ACKS = 21, "acks must be -1, 0 or 1."
    ILLEGAL_GENERATION = 22, "The group is at another generation."
    INCONSISTENT_GROUP_PROTOCOL = 23, "The member's protocol type or protocols do not fit those of the group."
    INVALID_GROUP_ID = 24, "The group id is not valid."
    UNKNOWN_MEMBER_ID = 25, "The coordinator does not know this member id."
    INVALID_SESSION_TIMEOUT = 26, "The session timeout lies outside what the broker allows."
    REBALANCE_IN_PROGRESS = 27, "The group is rebalancing; join it again."
    INVALID_COMMIT_OFFSET_SIZE = 28, "The committed offset is too large to be stored."
    TOPIC_AUTHORIZATION_FAILED = 29, "Not allowed to do this with the topic."
    GROUP_AUTHORIZATION_FAILED = 30, "Not allowed to do this with the group."
    CLUSTER_AUTHORIZATION_FAILED = 31, "Not allowed to do this with the cluster."
    INVALID_TIMESTAMP = 32, "The record's timestamp lies outside what the topic allows."
    UNSUPPORTED_SASL_MECHANISM = 33, "The broker does not offer this SASL mechanism."
    ILLEGAL_SASL_STATE = 34, "The request does not fit the state of the SASL handshake."
    UNSUPPORTED_VERSION = 35, "The broker does not support this version of the API."
    TOPIC_ALREADY_EXISTS = 36, "A topic of this name exists already."
    INVALID_PARTITIONS = 37, "The number of partitions is not valid."
    INVALID_REPLICATION_FACTOR = 38, "The replication factor is below 1 or above the number of brokers."
    INVALID_REPLICA_ASSIGNMENT = 39, "The assignment of replicas to brokers is not valid."
    INVALID_CONFIG = 40, "The configuration is not valid."
    NOT_CONTROLLER = 41, "This broker is not the controller.", RETRY
    INVALID_REQUEST = 42, "The request contradicts itself or its version."
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, "The log's message format is too old for this request."
    POLICY_VIOLATION = 44, "A policy of the cluster forbids these parameters."
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, "The producer's sequence numbers have a gap."
    DUPLICATE_SEQUENCE_NUMBER = 46, "The producer's sequence number was used before."
    INVALID_PRODUCER_EPOCH = 47, "The producer epoch is older than the one the broker knows."
    INVALID_TXN_STATE = 48, "The transaction's state does not allow this operation."
    INVALID_PRODUCER_ID_MAPPING = 49, "The producer id does not belong to this transactional id."
    INVALID_TRANSACTION_TIMEOUT = 50, "The transaction timeout is above transaction.max.timeout.ms."
    CONCURRENT_TRANSACTIONS = 51, "The last operation on this transaction has not completed yet.", RETRY
    TRANSACTION_COORDINATOR_FENCED = 52, "The transaction coordinator that wrote the marker has been replaced."
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, "Not allowed to use this transactional id."
    SECURITY_DISABLED = 54, "Security is not enabled here."
    OPERATION_NOT_ATTEMPTED = 55, "Not tried, because another part of the same request failed."
    KAFKA_STORAGE_ERROR = 56, "The broker could not read or write its disk.", RETRY
    LOG_DIR_NOT_FOUND = 57, "The broker has no such log directory."
    SASL_AUTHENTICATION_FAILED = 58, "The SASL credentials were refused."
    UNKNOWN_PRODUCER_ID = 59, "The broker knows nothing of this producer id (any more)."
    REASSIGNMENT_IN_PROGRESS = 60, "The partition is being reassigned."
    DELEGATION_TOKEN_AUTH_DISABLED = 61, "Delegation tokens are not enabled."
    DELEGATION_TOKEN_NOT_FOUND = 62, "There is no such delegation token."
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, "The delegation token belongs to someone else."
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, "Delegation token requests are not allowed on this kind of connection."
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, "Not allowed to do this with the delegation token."
    DELEGATION_TOKEN_EXPIRED = 66, "The delegation token has expired."
    INVALID_PRINCIPAL_TYPE = 67, "This type of principal is not supported."
    NON_EMPTY_GROUP = 68, "The group still has members."
    GROUP_ID_NOT_FOUND = 69, "There is no group of this id."
    FETCH_SESSION_ID_NOT_FOUND = 70, "The broker has no fetch session of this id.", RETRY
    INVALID_FETCH_SESSION_EPOCH = 71, "The fetch session is at another epoch.", RETRY
    LISTENER_NOT_FOUND = 72, "The leader has no listener of the kind this request came through.", RETRY
    TOPIC_DELETION_DISABLED = 73, "delete.topic.enable is false."
    FENCED_LEADER_EPOCH = 74, "The request's leader epoch is older than the broker's.", RETRY
    UNKNOWN_LEADER_EPOCH = 75, "The request's leader epoch is newer than the broker's.", RETRY
    UNSUPPORTED_COMPRESSION_TYPE = 76, "The client's version cannot read this compression codec."
    STALE_BROKER_EPOCH = 77, "The broker's epoch has changed."
    OFFSET_NOT_AVAILABLE = 78, "The new leader's high watermark has not caught up yet.", RETRY
    MEMBER_ID_REQUIRED = 79, "Join again with the member id of this answer."
    PREFERRED_LEADER_NOT_AVAILABLE = 80, "The preferred leader is not available.", RETRY
    GROUP_MAX_SIZE_REACHED = 81, "The group is full."
    FENCED_INSTANCE_ID = 82, "Another member has registered with the same group instance id."
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, "None of the eligible leaders is available.", RETRY
    ELECTION_NOT_NEEDED = 84, "The partition needs no election.", RETRY
    NO_REASSIGNMENT_IN_PROGRESS = 85, "The partition is not being reassigned."
    GROUP_SUBSCRIBED_TO_TOPIC = 86, "The group still subscribes to the topic."
    INVALID_RECORD = 87, "The broker refuses the record, e.g. one without a key on a compacted topic."
    UNSTABLE_OFFSET_COMMIT = 88, "A transaction still holds offsets of this group.", RETRY
    THROTTLING_QUOTA_EXCEEDED = 89, "The quota is used up.", RETRY
    PRODUCER_FENCED = 90, "A newer producer of the same transactional id has taken over."
    RESOURCE_NOT_FOUND = 91, "There is no such resource."
    DUPLICATE_RESOURCE = 92, "The request names the same resource twice."
    UNACCEPTABLE_CREDENTIAL = 93, "The credential does not meet the requirements."
    INCONSISTENT_VOTER_SET = 94, "Sender or receiver is not one of the voters expected."
    INVALID_UPDATE_VERSION = 95, "The update's version is not valid."
    FEATURE_UPDATE_FAILED = 96, "The finalized features could not be updated."
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, "The principal of a forwarded request could not be read."
    SNAPSHOT_NOT_FOUND = 98, "There is no such snapshot."
    POSITION_OUT_OF_RANGE = 99, "The position lies outside the snapshot."
    UNKNOWN_TOPIC_ID = 100, "This broker has no topic of this id.", RETRY
    DUPLICATE_BROKER_REGISTRATION = 101, "This broker id is in use."
    BROKER_ID_NOT_REGISTERED = 102, "This broker id is not registered."
    INCONSISTENT_TOPIC_ID = 103, "The log belongs to another topic id than the request names.", RETRY
    INCONSISTENT_CLUSTER_ID = 104, "The request is meant for another cluster."
    TRANSACTIONAL_ID_NOT_FOUND = 105, "There is no such transactional id."
    FETCH_SESSION_TOPIC_ID_ERROR = 106, "The fetch session mixes topic names and topic ids.", RETRY
    INELIGIBLE_REPLICA = 107, "The new in-sync set names a replica that may not be in it."
    NEW_LEADER_ELECTED = 108, "The partition was changed, and its leader with it."
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, "The offset has moved to tiered storage."
    FENCED_MEMBER_EPOCH = 110, "The member's epoch is fenced: give up all partitions and join again."
    UNRELEASED_INSTANCE_ID = 111, "Another member still holds this instance id."
    UNSUPPORTED_ASSIGNOR = 112, "The group does not support this assignor."
    STALE_MEMBER_EPOCH = 113, "The member's epoch is old: heartbeat first, then try again."
    MISMATCHED_ENDPOINT_TYPE = 114, "The request was sent to the wrong type of endpoint."
    UNSUPPORTED_ENDPOINT_TYPE = 115, "This type of endpoint is not supported."
    UNKNOWN_CONTROLLER_ID = 116, "There is no controller of this id."
    UNKNOWN_SUBSCRIPTION_ID = 117, "The telemetry subscription is not known or no longer valid."
    TELEMETRY_TOO_LARGE = 118, "The telemetry is larger than the broker accepts."
    INVALID_REGISTRATION = 119, "The controller holds the broker's registration for invalid."
    TRANSACTION_ABORTABLE = 120, "The transaction cannot go on; abort it, and the producer can be used again."
    INVALID_RECORD_STATE = 121, "The record's delivery state does not allow this acknowledgement."
    SHARE_SESSION_NOT_FOUND = 122, "There is no such share session.", RETRY
    INVALID_SHARE_SESSION_EPOCH = 123, "The share session is at another epoch.", RETRY
    FENCED_STATE_EPOCH = 124, "The share group's state is at another epoch."
    INVALID_VOTER_KEY = 125, "The voter key is not the one of the replica that received it."
    DUPLICATE_VOTER = 126, "The voter is one of the voters already."
    VOTER_NOT_FOUND = 127, "The replica is not one of the voters."
    INVALID_REGULAR_EXPRESSION = 128, "The regular expression is not valid."
    REBOOTSTRAP_REQUIRED = 129, "The client's metadata is too old: begin again from the bootstrap servers."
    STREAMS_INVALID_TOPOLOGY = 130, "The streams topology is not valid."
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, "The streams topology's epoch is not valid."
    STREAMS_TOPOLOGY_FENCED = 132, "The streams topology's epoch is old."
    SHARE_SESSION_LIMIT_REACHED = 133, "The broker has no room for another share session.", RETRY


FETCH_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    }
)
"""The errors with which a broker responds to an incremental fetch if it cannot continue the session (KIP-227)."""
LONGEST_MESSAGE = 1000  # characters


class HmbError(Exception):
    """The base class of all exceptions that HMB raises in an application (see `hmb.client.errors`)."""


class KafkaError(HmbError):
    """An error with one of Kafka's error codes.

    The broker sends the code, and the client then raises a KafkaError with this code.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        """Store the code and the message. If `message` is None, the error has the standard message of its code.

        If `message` has more than LONGEST_MESSAGE characters, the error keeps only its start and its end. A message
        can quote a long name from the request, but a string in a response has at most 32,767 bytes.
        """
        self.code = code
        self.message = code.message if message is None else _shortened(message)
        super().__init__(f"{code.name} ({code.value}): {self.message}")


def corrupt_message(why: str) -> KafkaError:
    """Return the error for bytes that are not a whole, undamaged batch or message."""
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)


def invalid_record(why: str) -> KafkaError:
    """Return the error for an undamaged record that breaks a rule of Kafka's format or of the broker."""
    return KafkaError(ErrorCode.INVALID_RECORD, why)


def _shortened(message: str) -> str:
    if len(message) <= LONGEST_MESSAGE:
        return message
    half = LONGEST_MESSAGE // 2
    return f"{message[:half]} ... {message[-half:]}"


class ProtocolError(Exception):
    """The error for malformed bytes from the other end of the connection.

    The message contains the problem and its position.
    """
