"""Counts the records, batches and requests that a producer has sent, and measures how long responses took."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProducerMetrics:
    """Counts and times since the producer was created. All times are in seconds.

    If the producer sends a batch again, `batches_sent` counts this batch only once. But if the producer splits a
    batch, it encodes both halves as new batches. `batches_sent` then counts three batches: the original batch and
    its halves.
    """

    records_delivered: int
    records_failed: int
    batches_sent: int
    record_bytes_sent: int  # bytes before compression
    batch_bytes_sent: int  # bytes after compression
    requests_sent: int
    batches_retried: int
    batches_split: int
    records_sent: int
    request_latency_avg: float
    request_latency_max: float
    buffer_bytes_used: int  # the bytes of all records that are in the buffer now
    buffer_wait: float  # the total time (seconds) for which threads have waited for memory

    @property
    def records_per_batch(self) -> float:
        return self.records_sent / self.batches_sent if self.batches_sent else 0.0

    @property
    def compression_ratio(self) -> float:
        """The size of the sent batches divided by the size of their records before compression."""
        return self.batch_bytes_sent / self.record_bytes_sent if self.record_bytes_sent else 1.0


class Counters:
    """The counters of a producer. `snapshot` returns their values as `ProducerMetrics`.

    Each of the other methods counts one kind of event. The producer's threads call these methods.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields below; a thread that holds it takes no other lock
        self._delivered = self._failed = self._records = self._batches = self._raw_bytes = self._bytes = 0
        self._requests = self._responses = self._retried = self._split = 0
        self._latency = self._slowest = self._waited = 0.0

    def encoded(self, records: int, raw_bytes: int, size: int) -> None:
        """Count one encoded batch and its records.

        `raw_bytes` is the size of the batch before compression, and `size` is its size after compression.
        """
        with self._lock:
            self._batches += 1
            self._records += records
            self._raw_bytes += raw_bytes
            self._bytes += size

    def posted(self, requests: int) -> None:
        """Count requests that were sent."""
        with self._lock:
            self._requests += requests

    def response_received(self, seconds: float) -> None:
        """Count one response, which arrived `seconds` after its request."""
        with self._lock:
            self._responses += 1
            self._latency += seconds
            self._slowest = max(self._slowest, seconds)

    def delivered(self, records: int) -> None:
        with self._lock:
            self._delivered += records

    def failed(self, records: int) -> None:
        with self._lock:
            self._failed += records

    def retried(self) -> None:
        with self._lock:
            self._retried += 1

    def split(self) -> None:
        with self._lock:
            self._split += 1

    def waited(self, seconds: float) -> None:
        """Add the time (seconds) for which a thread has waited for memory."""
        with self._lock:
            self._waited += seconds

    def snapshot(self, buffer_bytes_used: int) -> ProducerMetrics:
        with self._lock:
            return ProducerMetrics(
                records_delivered=self._delivered,
                records_failed=self._failed,
                batches_sent=self._batches,
                record_bytes_sent=self._raw_bytes,
                batch_bytes_sent=self._bytes,
                requests_sent=self._requests,
                batches_retried=self._retried,
                batches_split=self._split,
                records_sent=self._records,
                request_latency_avg=self._latency / self._responses if self._responses else 0.0,
                request_latency_max=self._slowest,
                buffer_bytes_used=buffer_bytes_used,
                buffer_wait=self._waited,
            )
