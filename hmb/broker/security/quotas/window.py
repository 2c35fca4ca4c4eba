"""The two state machines of quotas: a sliding window, and a bucket of tokens.

`RateWindow` and `TokenBucket` are pure state machines: the caller passes the present time in ms. This module contains
no lock, no thread and no clock.

*The sliding window.* A quota of 1,000 bytes/s does not mean that each single second has at most 1,000 bytes. The broker
counts bytes in *samples* of one second (`quota.window.size.seconds`), and keeps the last 11 samples
(`quota.window.num`). A client can therefore send a short burst without a delay.

The sliding window computes how long the counted bytes would take at the rate of the quota. The window compares this
time with the time that the samples cover, which is at least 10 s. If the bytes would take longer than the samples
cover, the client has to wait for the difference, which is the *throttle time*:
    throttle time = sum of the samples / quota - time that the samples cover

*The bucket of tokens.* One request can create a topic with 1,000 partitions. Most quotas are much smaller, but the
broker must accept this request. A sliding window would forget the request after 11 s. The client could then exceed its
quota again and again. A bucket of tokens forgets nothing: the client has to wait as long as all these partitions take
at the rate of the quota. Therefore a bucket of tokens limits the creation and the deletion of partitions (KIP-599).

A bucket contains tokens, and each created or deleted partition takes one token. A client may take more tokens than the
bucket contains. The client then has to wait until the number of tokens is no longer negative. The bucket gets new
tokens at the rate of the quota.

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
    """A sliding window: the values of the last seconds.

    This is an example with 11 samples of 1 s and a quota of 1,000 bytes/s. A client sends three requests. The throttle
    time is the time that the bytes need at the quota, minus the time that the samples cover (the covered time):

        time     bytes   sum of bytes   time at the quota          covered time   throttle time
         0.0 s   8,000          8,000                 8 s                10.0 s   0
         0.5 s   7,000         15,000                15 s                10.5 s   4.5 s
        12.0 s   1,000          1,000                 1 s                10.0 s   0

    At 0.0 s, the first of the 11 samples has just begun. The ten samples that have not begun yet count with their full
    length, so the covered time is 10.0 s.

    At 12.0 s, the last value of the first sample is 11.5 s old. The window has 11 samples of 1 s, so it has forgotten
    this sample.

    Invariant: the samples in `samples` are in the order of their start, and do not overlap.
    """

    size: WindowSize
    samples: list[QuotaSample] = field(default_factory=list)

    def record(self, value: float, now_ms: int) -> None:
        """Add a value. With a negative value, the caller takes back a value that it has added to the same sample."""
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

    def is_empty(self, now_ms: int) -> bool:
        """Return whether the window has forgotten all values."""
        self._forget(now_ms)
        return not self.samples

    def _covered_ms(self, now_ms: int) -> int:
        """Return the time (ms) that the samples cover.

        In a new window, most samples have not begun yet. Each of these samples counts with its full length. The covered
        time is therefore long from the beginning, and a client can send a burst without a delay.
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
    """A bucket of tokens. It is full at the beginning.

    This is an example with 11 samples of 1 s and a quota of 2 partitions/s. The full bucket has 11 * 2 = 22 tokens:

        time     partitions   tokens before   tokens after   throttle time
         0.0 s           20              22              2   0
         0.0 s           10               2             -8   8 / 2 = 4 s
         1.0 s     refused, because the bucket has -6 tokens, and 6 / 2 = 3 s are left
         5.0 s            1               2              1   0
    """

    size: WindowSize
    tokens: float | None = None  # None before the first use: the bucket is full.
    last_ms: int = 0  # the time for which `tokens` is valid

    def take(self, count: float, quota: float, now_ms: int) -> None:
        """Take tokens, even if the bucket contains fewer tokens. `quota` is in tokens per second."""
        self.tokens = self._available(quota, now_ms) - count
        self.last_ms = now_ms

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """Return the time in ms until the number of tokens is at least 0. If it is not negative now, return 0."""
        return max(0, round(-self._available(quota, now_ms) / quota * 1000))

    def is_full(self, quota: float, now_ms: int) -> bool:
        return self._available(quota, now_ms) >= self._most(quota)

    def _available(self, quota: float, now_ms: int) -> float:
        if self.tokens is None:
            return self._most(quota)
        return min(self._most(quota), self.tokens + quota * (now_ms - self.last_ms) / 1000)

    def _most(self, quota: float) -> float:
        return quota * self.size.total_ms / 1000
