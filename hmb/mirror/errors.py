"""Defines the errors of a mirror, and decides whether the mirror tries again after an error."""

from __future__ import annotations

from hmb.client.connection import ConnectionFailed
from hmb.mirror.source import is_missing
from hmb.protocol.errors import ErrorCode, HmbError, KafkaError

HINTS = {
    ErrorCode.MESSAGE_TOO_LARGE: "raise max.message.bytes of the topic at the target",
    ErrorCode.INVALID_TIMESTAMP: "raise message.timestamp.before.max.ms and message.timestamp.after.max.ms there",
    ErrorCode.KAFKA_STORAGE_ERROR: "its disk may be full; the mirror continues when it is started again",
    ErrorCode.PRODUCER_FENCED: "another mirror with the same group has taken over",
    ErrorCode.INVALID_PRODUCER_EPOCH: "another mirror with the same group has taken over",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the user of the mirror needs more ACLs",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the user of the mirror needs more ACLs",
}
FATAL_FOR_MIRROR = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.KAFKA_STORAGE_ERROR}
SEQUENCES = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.TRANSACTION_ABORTABLE}


class MirrorError(HmbError):
    """The error with which a mirror ends. The message is one line: what is wrong, where, and what to do."""


class MirrorInterrupted(MirrorError):
    """An error that ends the current session of a mirror, but not the mirror. The mirror then begins a new session.

    At the beginning of a session, the mirror determines its position in each partition.
    """


def can_retry(error: KafkaError | ConnectionFailed | MirrorInterrupted) -> bool:
    """Return whether a mirror can open new connections after this error, and continue at the committed positions."""
    if isinstance(error, ConnectionFailed | MirrorInterrupted):
        return True
    if error.code in FATAL_FOR_MIRROR or is_missing(error):
        return False
    return error.code.retriable or error.code in SEQUENCES


def explained(side: str, error: KafkaError) -> MirrorError:
    """Return a MirrorError that explains a cluster's error in one line. `side` is the cluster: "source" or "target"."""
    hint = f"; {HINTS[error.code]}" if error.code in HINTS else ""
    return MirrorError(f"{side}: {error.message} ({error.code.name}){hint}")
