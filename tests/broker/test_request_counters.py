"""Tests of the counters of requests: quantiles of their times, and the error codes in responses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hmb.broker.counting import has_error
from hmb.broker.request_counters import RequestCounters
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages.metadata import MetadataResponse
from hmb.protocol.messages.produce import ProduceResponse

Topic = ProduceResponse.TopicProduceResponse
Partition = Topic.PartitionProduceResponse


@given(st.lists(st.floats(min_value=2e-6, max_value=50), min_size=1))
def test_a_quantile_is_at_most_ten_percent_wrong(times: list[float]) -> None:
    counters = RequestCounters()
    for seconds in times:
        counters.of(ApiKey.FETCH).add(seconds, False, 0)
    counted = counters.copy()[ApiKey.FETCH]
    for share, index in ((0.5, (len(times) + 1) // 2 - 1), (1.0, len(times) - 1)):
        exact = sorted(times)[index]
        assert abs(counted.quantile(share) / exact - 1) < 0.1


def test_times_outside_of_the_buckets_are_counted() -> None:
    counters = RequestCounters()
    for seconds in (0.0, 1e-7, 3600.0):
        counters.of(ApiKey.FETCH).add(seconds, False, 0)
    assert sum(counters.copy()[ApiKey.FETCH].buckets) == 3


def test_the_example_in_the_docstring() -> None:
    counters = RequestCounters()
    for seconds in [0.0011] * 98 + [0.0085] * 2:
        counters.of(ApiKey.FETCH).add(seconds, False, 0)
    assert round(counters.copy()[ApiKey.FETCH].quantile(0.99) * 1000, 1) == 8.9


def test_an_error_is_found_at_any_depth() -> None:
    good, bad = Partition(), Partition(error_code=3)
    assert not has_error(ProduceResponse(responses=[Topic(partition_responses=[good])]))
    assert has_error(ProduceResponse(responses=[Topic(), Topic(partition_responses=[good, bad])]))
    assert has_error(MetadataResponse(topics=[MetadataResponse.MetadataResponseTopic(error_code=5)]))
    assert not has_error(MetadataResponse())
