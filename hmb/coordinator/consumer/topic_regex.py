"""Regular expressions: a member of a KIP-848 group can subscribe to all topics whose names match an expression.

A client chooses the expression, and the broker matches it with the name of every topic, so a match must be fast.
Python's module `re` can be very slow: for the expression `(a+)+b`, each further `a` in a name doubles the time. This
module therefore uses the library RE2, which reads each character of a name only once.

Kafka requires the syntax of RE2 for regular expressions, so that no expression of a client can slow a broker down.
Kafka uses RE2/J, a version of RE2 in Java. This module uses Google's RE2 (the package google-re2). Both libraries
accept the same syntax, but their error messages differ. `KAFKAS_REASONS` translates the messages.

A member's regular expression must match the whole name of a topic. For example, `orders-.*` matches "orders-eu" but not
"my-orders-eu".

Limits: one compiled regular expression uses at most `MAX_MEMORY` bytes.

To start faster, the broker imports the library RE2 only when a client sends the first regular expression.

Source: KIP-848; Kafka's `SubscribedTopicRegex`; RE2's syntax.
"""

from __future__ import annotations

from hmb.coordinator.known_names import cached_by_name
from hmb.protocol.errors import ErrorCode, KafkaError

MAX_MEMORY = 1 << 20  # bytes that one compiled expression can use

# Maps the reason in an error message of RE2 to the reason that RE2/J reports for the same error.
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
        self.reason = reason
        super().__init__(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}.",
        )


class TopicRegex:
    """One compiled regular expression."""

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
            re2.purge()  # Empty the cache of the package re2, because `topic_regex` has its own cache.

    def matches(self, name: str) -> bool:
        """Return whether the expression matches the whole name."""
        return self._compiled.fullmatch(name) is not None


def _reason(error: Exception) -> str:
    """Return the reason why RE2 rejects an expression, in the words of Kafka.

    Kafka uses a different library, RE2/J, and some of its messages are different. The part of RE2's message before
    the first colon is the reason. If `KAFKAS_REASONS` contains this reason, return Kafka's text for it. Otherwise,
    return the whole message of RE2.
    """
    message = error.args[0]
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    return KAFKAS_REASONS.get(text.partition(":")[0], text)


@cached_by_name(32)
def topic_regex(regex: str) -> TopicRegex:
    """Return the compiled form of `regex`. A cache stores the results for short expressions. Raises InvalidRegex."""
    return TopicRegex(regex)
