"""Regular expressions over names, by which members of KIP-848 groups subscribe to topics.

The broker matches a client's expression with every topic, so a match must not take long. Python's `re` backtracks:
each further `a` in a name doubles the time of `(a+)+b`. Kafka therefore requires the syntax of RE2, whose automaton
reads each character once, and uses the library RE2/J. This module uses Google's RE2 (the package google-re2). The two
libraries accept the same syntax and differ in their error messages, which `KAFKAS_REASONS` translates.

For example, `orders-.*` matches "orders-eu" and does not match "my-orders-eu": an expression matches a whole name.

Limits: one expression uses at most `MAX_MEMORY` bytes. The broker imports RE2 with the first expression, so brokers
without expressions start faster.

Source: KIP-848; Kafka's `SubscribedTopicRegex`; RE2's syntax.
"""

from __future__ import annotations

from hmb.coordinator.known_names import cached_by_name
from hmb.protocol.errors import ErrorCode, KafkaError

MAX_MEMORY = 1 << 20  # bytes of one automaton

# The reasons for which the library RE2 refuses a pattern -> the words of Kafka's library RE2/J for the same reason.
KAFKAS_REASONS = {
    "missing )": "missing closing )",
    "unexpected )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}


class InvalidRegex(KafkaError):
    """The error for a regular expression that RE2 rejects."""

    def __init__(self, regex: str, reason: str) -> None:
        super().__init__(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}.",
        )


class TopicRegex:
    """One compiled expression."""

    def __init__(self, regex: str) -> None:
        """Compile the expression. Raises InvalidRegex."""
        import re2

        options = re2.Options()
        options.log_errors, options.never_capture, options.max_mem = False, True, MAX_MEMORY
        try:
            self._compiled = re2.compile(regex, options)
        except re2.error as error:
            raise InvalidRegex(regex, _reason(error)) from error
        except UnicodeEncodeError as error:
            raise InvalidRegex(regex, "invalid UTF-8") from error
        finally:
            re2.purge()  # The package would keep 128 automata of long expressions, and `topic_regex` has a cache.

    def matches(self, name: str) -> bool:
        """Return whether the expression matches the whole name."""
        return self._compiled.fullmatch(name) is not None


def _reason(error: Exception) -> str:
    """Return the reason of an error in the words of RE2/J, the library that Kafka uses.

    The message of RE2, the library that HMB uses, has a reason, a colon, and the faulty part of the expression.
    """
    message = error.args[0]
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    return KAFKAS_REASONS.get(text.partition(":")[0], text)


@cached_by_name(32)
def topic_regex(regex: str) -> TopicRegex:
    """Return the compiled expression. A cache keeps short expressions. Raises InvalidRegex."""
    return TopicRegex(regex)
