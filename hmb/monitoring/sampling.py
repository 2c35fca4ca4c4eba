"""Samples a broker's counters, for rates over a minute and a history of group lags over five minutes.

A counter, such as a partition's log end offset, shows only a total. To compute a rate, such as records per
second, HMB compares the counter with an older value. So a thread stores a sample of all counters every
INTERVAL seconds.

A broker samples its counters only if it offers its state or a web page over HTTP. For a web page,
`hmb ui -b ADDRESS` samples the counters of the broker at ADDRESS.

For example, a sample from 60 s ago contains the log end offset 1,000, and the log end offset is 4,000 now. The rate
over the last minute is 50 records per second.

Cost: for each sample, the broker reads the log end offset of each partition, and the offsets up to which each
group has read. For 1,000 partitions, this takes about 1 ms.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from hmb.broker.context import BrokerContext
from hmb.broker.lifecycle import BrokerServer
from hmb.monitoring.positions import positions_of
from hmb.monitoring.state import BrokerState
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import KafkaError
from hmb.protocol.topics import TopicPartition

INTERVAL = 10.0  # seconds between two samples
MINUTE = 60.0
KEPT = 31  # the number of samples: 31 samples, one every 10 s, cover five minutes
SHORTEST = 0.5  # seconds; a rate that is computed over a shorter time would be inaccurate
EXACT = 10.0  # seconds; a time of 10 seconds or more is rounded to whole seconds


class StateSample(NamedTuple):
    """The counters of a broker at one moment. A rate is the growth of a counter between two samples, per second."""

    at: float  # when the sample was taken (time.monotonic)
    time: int  # the broker's time, in ms since 1970
    ends: dict[TopicPartition, int]  # log end offsets
    requests: dict[ApiKey, int]
    lags: dict[str, int]  # the sum of the lags of a group's partitions


@dataclass(frozen=True, slots=True)
class SampleRates:
    """Computes how fast counters grow, from older values in `sample`. If `sample` is None, all rates are None."""

    sample: StateSample | None = None
    seconds: float = 0.0  # the time since the sample was taken

    def records_per_s(self, partition: TopicPartition, end: int) -> float | None:
        """Return how many records per second a partition has received since the sample was taken, or None.

        `end` is the present log end offset. The result is None if no sample exists, or if `end` is smaller than in the
        sample (somebody has created the topic again).
        """
        return None if self.sample is None else self._growth(self.sample.ends.get(partition, 0), end)

    def requests_per_s(self, api: ApiKey, count: int) -> float | None:
        return None if self.sample is None else self._growth(self.sample.requests.get(api, 0), count)

    def _growth(self, before: int, now: int) -> float | None:
        return None if now < before else round((now - before) / self.seconds, 2)


class Sampler:
    """Stores a broker's counters and the lags of its groups every INTERVAL seconds."""

    def __init__(self, sample: Callable[[], StateSample]) -> None:
        """Take the first sample. The method `start` starts the thread that takes the later samples.

        `sample` is a function that takes a sample. It raises RuntimeError if the broker is not running.
        """
        self._sample = sample
        self._samples: deque[StateSample] = deque([sample()], maxlen=KEPT)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="state-sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()  # The thread ends after its current sample, because `_stop` is set.

    def rates(self) -> SampleRates:
        """Return the rates since the oldest sample of the last minute.

        A rate is the growth of a counter since this sample, divided by the sample's age in seconds. All rates are None
        if the sample is missing or younger than 0.5 s (SHORTEST).

        Ages of 10 s (EXACT) or more are rounded to whole seconds. For example, a growth of 60 gives the rate 3 (60/20)
        at any age from 19.6 to 20.4 s. So the rate changes less often, and the broker sends it to the page less often.
        """
        now = time.monotonic()
        sample = next((each for each in self._samples.copy() if each.at >= now - MINUTE), None)
        if sample is None or now - sample.at < SHORTEST:
            return SampleRates()
        seconds = now - sample.at
        return SampleRates(sample, seconds if seconds < EXACT else round(seconds))

    def lags(self, group: str) -> list[list[int]]:
        """Return `[time, lag]` for each sample that contains the group. The oldest sample comes first."""
        return [[sample.time, sample.lags[group]] for sample in self._samples.copy() if group in sample.lags]

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL):
            with contextlib.suppress(RuntimeError):  # The broker does not run now.
                self._samples.append(self._sample())


def sample_of(server: BrokerServer) -> StateSample:
    """Take a sample of a started broker in this process. Raises RuntimeError if the broker is not started."""
    broker = server.context
    return StateSample(
        at=time.monotonic(),
        time=broker.clock.now_ms(),
        ends={name: log.log_end_offset for name, log in server.logs.items()},
        requests={api: count.count for api, count in broker.requests.copy().items()},
        lags=_lags(broker),
    )


def _lags(broker: BrokerContext) -> dict[str, int]:
    groups, topics = broker.groups, broker.topics
    lags: dict[str, int] = {}
    with contextlib.suppress(KafkaError):  # The broker still loads its groups, so it cannot list them.
        for listed in groups.list_groups([], []):
            with contextlib.suppress(KafkaError):  # Somebody has deleted the group since the call above.
                lag = 0
                for name, offset in positions_of(broker, listed).items():
                    topic = topics.get(name.topic)
                    log = None if topic is None else topic.partitions.get(name.partition)
                    lag += 0 if log is None else max(0, log.high_watermark - offset)
                lags[listed.group_id] = lag
    return lags


def sample_of_state(state: BrokerState) -> StateSample:
    """Make a sample from a state that was read through the APIs of the brokers."""
    return StateSample(
        at=time.monotonic(),
        time=state.time,
        ends={
            TopicPartition(topic.name, each.partition): each.log_end_offset
            for topic in state.topics
            for each in topic.partitions
        },
        requests={},
        lags={group.group_id: sum(each.lag or 0 for each in group.positions) for group in state.groups},
    )
