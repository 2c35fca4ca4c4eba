"""Tests of the counters of requests: the quantiles of the request times, and the error codes in responses."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmb
from hmb.broker.counting import _measured_fetch, has_error
from hmb.broker.request_counters import RequestCounters
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.metadata import MetadataResponse
from hmb.protocol.messages.produce import ProduceResponse
from hmb.storage.files.virtual import DurableFile, FileRegion

Topic = ProduceResponse.TopicProduceResponse
Partition = Topic.PartitionProduceResponse


@given(st.lists(st.floats(min_value=2e-6, max_value=50), min_size=1))
def test_a_quantile_is_at_most_nine_percent_wrong(times: list[float]) -> None:
    counters = RequestCounters()
    for seconds in times:
        counters.of(ApiKey.FETCH).add(seconds, False, 0)
    counted = counters.copy()[ApiKey.FETCH]
    for share, index in ((0.5, (len(times) + 1) // 2 - 1), (1.0, len(times) - 1)):
        exact = sorted(times)[index]
        assert abs(counted.quantile(share) / exact - 1) < 0.0906


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


@pytest.mark.parametrize(
    ("records", "size"),
    [(memoryview(b"abc"), 3), (FileRegion(DurableFile(Path("never-opened"), exists=False), 0, 7), 7), (None, 0)],
)
def test_the_bytes_of_records_are_counted_in_each_form(records: object, size: int) -> None:
    """The broker counts the bytes of the records in a Fetch response.

    The field `records` contains bytes in memory, a region of a file, or None if the response has no records.
    """
    partition = FetchResponse.FetchableTopicResponse.PartitionData(records=records)
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])])
    assert _measured_fetch(FetchRequest(), response) == (False, size)


def test_records_for_an_old_client_are_counted() -> None:
    with hmb.Broker() as broker:
        broker.create_topic("t")
        broker.produce("t", b"x")
        host, port = broker.bootstrap_servers.split(":")
        client = ClientConnection("old")
        topic = FetchRequest.FetchTopic(topic="t", partitions=[FetchRequest.FetchTopic.FetchPartition()])
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic])
        with socket.create_connection((host, int(port))) as connection:
            for part in client.request(request, 2):
                connection.sendall(part)  # type: ignore[arg-type]
            assert connection.recv(4)
        (fetch,) = (api for api in broker.state().requests if api.api == "Fetch")
        assert (fetch.count, fetch.errors, fetch.record_bytes > 0) == (1, 0, True)
