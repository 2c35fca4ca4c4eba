"""The classes `RateWindow` and `TokenBucket` compute how long clients wait after they exceed a quota.

Both classes are pure state machines: the caller passes the present time in ms. This module contains no lock, no thread
and no clock.

*The sliding window.* A quota of 1,000 bytes/s limits a client's average rate. The broker counts bytes in
*samples* of one second (`quota.window.size.seconds`), and computes the average of the last 11 samples
(`quota.window.num`). A new client can therefore send 5,000 bytes in one second without a delay.

The *throttle time* is the time for which a client must wait:
    throttle time = sum of the samples / quota - time that the samples cover
The samples cover at least 10 s. For example, they cover 10.5 s and contain 15,000 bytes, and the quota is 1,000
bytes/s. At this rate, 15,000 bytes take 15 s. The client must wait for 15 s - 10.5 s = 4.5 s.

*The bucket of tokens.* A bucket of tokens limits the creation and the deletion of partitions (KIP-599). Each
created or deleted partition takes one token, and the bucket gets new tokens at the rate of the quota. A client may
take more tokens than the bucket contains. The client then has to wait until the number of tokens is no longer
negative. So on average, the client cannot exceed its quota.

A sliding window is not suitable for partitions. For example, the quota is 10 partitions/s, and a client creates a
topic with 1,000 partitions. At this quota, 1,000 partitions take 100 s. But a sliding window of 11 s would forget
the request after 11 s, and the client could then create 1,000 more partitions.

Source: KIP-13, KIP-124, KIP-599; the arithmetic of Kafka's classes `Rate`, `SampledStat` and `TokenBucket`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hmb.broker.config.limits import LimitsConfig


class WindowSize(NamedTuple):
    """The number of samples (`quota.window.num`), and the length of a sample (`quota.window.size.seconds`)."""

    samples: int
    sample_ms: int

    @property
    def total_ms(self) -> int:
        return self.samples * self.sample_ms


DEFAULT_SIZE = WindowSize(
    LimitsConfig.declared["quota_samples"].default, LimitsConfig.declared["quota_sample_seconds"].default * 1000
)


@dataclass(slots=True)
class QuotaSample:
    """The sum of the values that were recorded within one second (the default of `quota.window.size.seconds`)."""

    start_ms: int
    last_ms: int  # the time of the last value
    total: float = 0.0


@dataclass(slots=True)
class RateWindow:
    """A sliding window: it counts what a client has used in the last seconds.

    The window adds up all values of one second in a *sample*, and keeps the last 11 samples (by default). The
    client has to wait for the *throttle time*:

        throttle time = sum of all samples / quota - covered time

    If the result is negative, the throttle time is 0.

    The window consists of 11 seconds, and starts when its oldest sample begins. The *covered time* is the time
    since this start, plus 1 s for each of the 11 seconds that has not begun yet.

    In this example, the quota is 1,000 bytes/s, and a client sends three requests:

        time     bytes   sum of bytes   sum / quota   covered time   throttle time
         0.0 s   8,000          8,000           8 s         10.0 s   0
         0.5 s   7,000         15,000          15 s         10.5 s   4.5 s
        12.0 s   1,000          1,000           1 s         10.0 s   0

    At 0.5 s, ten of the 11 seconds have not begun yet. The covered time is therefore 0.5 s + 10 * 1 s = 10.5 s.

    At 12.0 s, the window has forgotten the first sample, because the last value of this sample (at 0.5 s) is more
    than 11 s old.

    Invariant: the list `samples` is sorted by the start of the samples, and the samples do not overlap.
    """

    size: WindowSize
    samples: list[QuotaSample] = field(default_factory=list)

    def record(self, value: float, now_ms: int) -> None:
        """Add a value to the newest sample. If this sample is too old, begin a new sample.

        To take back a value, the caller adds the negative value. Both values must be in the same sample.
        """
        if not self.samples or now_ms - self.samples[-1].start_ms >= self.size.sample_ms:
            self._forget(now_ms)
            self.samples.append(QuotaSample(now_ms, now_ms))
        self.samples[-1].total += value
        self.samples[-1].last_ms = now_ms

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """Return the time in ms that a client has to wait, or 0. `quota` is in units per second."""
        self._forget(now_ms)
        if not self.samples:
            return 0
        time_at_quota = sum(sample.total for sample in self.samples) / quota * 1000
        return max(0, round(time_at_quota - self._covered_ms(now_ms)))

    def _covered_ms(self, now_ms: int) -> int:
        """Return the covered time (ms), which `RateWindow` defines.

        The covered time includes the future seconds of the window: ten of 11 seconds at a client's first request. With
        a quota of 1,000 bytes/s, the client can therefore send 10,000 bytes without a delay.
        """
        elapsed = now_ms - self.samples[0].start_ms
        missing = self.size.samples - 1 - elapsed // self.size.sample_ms
        return max(1, elapsed + max(0, missing) * self.size.sample_ms)

    def _forget(self, now_ms: int) -> None:
        """Remove the samples whose last value is too old."""
        while self.samples and now_ms - self.samples[0].last_ms >= self.size.total_ms:
            del self.samples[0]


@dataclass(slots=True)
class TokenBucket:
    """A bucket of tokens, which limits how many partitions a client creates and deletes.

    Each partition takes one token. New tokens arrive at the rate of the quota. If the number of tokens is negative,
    the client has to wait until the number is 0. At the beginning, the bucket is full: by default, it contains the
    tokens that arrive in 11 s.

    In this example, the quota is 2 partitions/s. The full bucket has 11 * 2 = 22 tokens:

        time     partitions   tokens before   tokens after   throttle time
         0.0 s           20              22              2   0
         0.0 s           10               2             -8   8 / 2 = 4 s
         1.0 s     refused, because the bucket has -6 tokens, and 6 / 2 = 3 s are left
         5.0 s            1               2              1   0
    """

    size: WindowSize
    tokens: float | None = None  # the number of tokens in the bucket; None for a new bucket, which is full
    last_ms: int = 0  # the moment (ms) at which `tokens` was computed

    def take(self, count: float, quota: float, now_ms: int) -> None:
        """Take `count` tokens, even if the bucket contains fewer. `quota` is in tokens per second."""
        self.tokens = self._available(quota, now_ms) - count
        self.last_ms = now_ms

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """Return the time in ms until the bucket has at least 0 tokens.

        The number of tokens is negative after a client has taken more tokens than the bucket contained. The bucket gets
        `quota` new tokens per second.
        """
        return max(0, round(-self._available(quota, now_ms) / quota * 1000))

    def _available(self, quota: float, now_ms: int) -> float:
        if self.tokens is None:
            return self._most(quota)
        return min(self._most(quota), self.tokens + quota * (now_ms - self.last_ms) / 1000)

    def _most(self, quota: float) -> float:
        return quota * self.size.total_ms / 1000
