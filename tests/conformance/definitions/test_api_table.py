"""Compares the table of API versions in the documentation with the response of a real Kafka 4.3.0 to ApiVersions."""

from __future__ import annotations

import json

import pytest

from hmb.bench import peers
from hmb.client.admin import Admin
from hmb.protocol.api_keys import ApiKey
from hmb.testing.versions import TABLE

# Kafka offers these two APIs only if an administrator has switched the telemetry of clients on (KIP-714).
TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
# Kafka 4 claims to support Produce 0, because old versions of librdkafka need this version.
OLDEST_CLAIMED = {ApiKey.PRODUCE: 0}


@pytest.mark.external
def test_the_table_names_the_apis_and_versions_that_kafka_offers() -> None:
    try:
        with peers.Kafka43() as broker, Admin(f"127.0.0.1:{broker.port}") as admin:
            (versions,) = admin.describe_versions().values()
    except peers.PeerUnavailable as missing:
        pytest.skip(str(missing))
    table = json.loads(TABLE.read_text(encoding="utf-8"))["4.3"]
    expected = {ApiKey[name]: (first, last) for name, (first, last) in table.items()}
    expected = {key: (OLDEST_CLAIMED.get(key, first), last) for key, (first, last) in expected.items()}
    offered = {ApiKey(key): (its[0], its[-1]) for key, its in versions.apis.items()}
    assert offered == {key: its for key, its in expected.items() if key not in TELEMETRY}
