"""What a topic may be called: 1 to 249 letters, digits, '.', '_' and '-', but not '.' or '..'.

A partition's directory is the topic's name, '-' and a number, and file systems take 255 bytes: hence 249. Clients
check by the same rule as brokers. An empty name is worse than illegal on the wire: since topics have ids (KIP-516),
a request with an empty name asks for the topic with the id 0.

Source: org.apache.kafka.common.internals.Topic (Kafka 4.3).
"""

import re

from hmb.protocol.errors import ErrorCode, KafkaError

LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
SHOWN = 300  # characters of a name that is not one


def check_topic_name(name: str) -> None:
    """KafkaError (INVALID_TOPIC_EXCEPTION) for what is no name of a topic; TypeError for what is no text."""
    if not isinstance(name, str):
        raise TypeError(f"a topic's name is a str, not {name!r}")
    if name in (".", "..") or not LEGAL_NAME.fullmatch(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name[:SHOWN]!r} is no topic name: 1 to 249 letters, digits, '.', '_' or '-', and not '.' or '..'",
        )
