"""Tests of the rules of quotas, without a network: how rates are measured, and which quota applies to a client."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hmb.broker.security.metadata_records import ClientQuotaRecord, decode_record, encode_record
from hmb.broker.security.quotas import measuring
from hmb.broker.security.quotas.limits import Limit, Limits, QuotaClient
from hmb.broker.security.quotas.measuring import ClientQuotas
from hmb.broker.security.quotas.window import DEFAULT_SIZE, RateWindow, TokenBucket
from hmb.broker.security.store import QuotaEntity, SecurityState
from hmb.protocol.enums import QuotaKey
from tests.broker.security.conftest import entity

ALICE_WEB = QuotaClient("alice", "web")


def test_the_example_of_the_sliding_window() -> None:
    window, found = RateWindow(DEFAULT_SIZE), []
    for now, size in ((0, 8000), (500, 7000), (12_000, 1000)):
        window.record(size, now)
        found.append((sum(sample.total for sample in window.samples), window.throttle_ms(1000, now)))
    assert found == [(8000, 0), (15_000, 4500), (1000, 0)]


def test_the_example_of_the_tokens() -> None:
    bucket = TokenBucket(DEFAULT_SIZE)
    bucket.take(20, 2, 0)
    assert (bucket.tokens, bucket.throttle_ms(2, 0)) == (2, 0)
    bucket.take(10, 2, 0)
    assert (bucket.tokens, bucket.throttle_ms(2, 0)) == (-8, 4000)
    assert bucket.throttle_ms(2, 1000) == 3000
    bucket.take(1, 2, 5000)
    assert (bucket.tokens, bucket.throttle_ms(2, 5000)) == (1, 0)
    bucket.take(1, 2, 60_000)
    assert bucket.tokens == 21


def test_a_client_that_waits_as_told_keeps_its_rate() -> None:
    window, now, sent = RateWindow(DEFAULT_SIZE), 0, 0
    while now < 600_000:
        window.record(500, now)
        sent += 500
        now += 10 + window.throttle_ms(1000, now)
    assert 0.85 < sent / 600 / 1000 < 1.02


def test_a_window_has_a_bounded_number_of_samples() -> None:
    window = RateWindow(DEFAULT_SIZE)
    for now in range(0, 100_000, 7):
        window.record(1, now)
    assert len(window.samples) <= DEFAULT_SIZE.samples + 1
    assert window.throttle_ms(1, 200_000) == 0 and not window.samples


def test_the_most_specific_quota_applies() -> None:
    """If several quotas match a client, the most specific one applies.

    The list `order` begins with the most specific quota, and has the same order as in Kafka. At each step, the test
    removes the quota that applied at the previous step.
    """
    order: list[tuple[QuotaEntity, tuple[str | None, str | None]]] = [
        (entity(user="alice", client_id="web"), ("alice", "web")),
        (entity(user="alice", client_id=None), ("alice", "web")),
        (entity(user="alice"), ("alice", None)),
        (entity(user=None, client_id="web"), ("alice", "web")),
        (entity(user=None, client_id=None), ("alice", "web")),
        (entity(user=None), ("alice", None)),
        (entity(client_id="web"), (None, "web")),
        (entity(client_id=None), (None, "web")),
    ]
    others = {entity(user="bob"): {"producer_byte_rate": 99.0}, entity(user="alice"): {"request_percentage": 1.0}}
    for start in range(len(order) + 1):
        rest = {each: {"producer_byte_rate": float(rank)} for rank, (each, _) in enumerate(order[start:], start)}
        found = Limits(others | rest, {}).of(QuotaKey.PRODUCER_BYTE_RATE, ALICE_WEB)
        assert found == (Limit(float(start), *order[start][1]) if start < len(order) else None)


def test_the_quota_of_an_address() -> None:
    key = QuotaKey.CONNECTION_CREATION_RATE
    hosts = {"192.0.2.1": 5.0, None: 7.0, "localhost": 9.0}
    quotas = quotas_with({entity(ip=host): {key: quota} for host, quota in hosts.items()})
    quotas.resolve_hosts()
    found = [quotas.limits.of_address(key, address) for address in ("192.0.2.1", "192.0.2.2", "127.0.0.1")]
    assert [each and each.quota for each in found] == [5.0, 7.0, 9.0]


def quotas_with(changes: dict[QuotaEntity, dict[str, float]], clock: Callable[[], int] = lambda: 0) -> ClientQuotas:
    quotas = ClientQuotas(clock_ms=clock)
    quotas.load(SecurityState(quotas=changes))
    return quotas


def test_clients_of_one_user_share_its_quota() -> None:
    key = QuotaKey.PRODUCER_BYTE_RATE
    quotas = quotas_with({entity(user="alice"): {key: 100.0}, entity(client_id=None): {key: 100.0}})
    assert quotas.record(key, ALICE_WEB, 900) == 0
    assert quotas.record(key, QuotaClient("alice", "other"), 300) == 2000
    assert quotas.record(key, QuotaClient("bob", "web"), 900) == 0
    assert quotas.record(key, QuotaClient("bob", "other"), 900) == 0
    assert quotas.record(key, QuotaClient("carol", "other"), 300) == 2000


def test_a_client_that_changes_its_client_id_uses_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MAX_METERS", 100)
    key = QuotaKey.PRODUCER_BYTE_RATE
    quotas = quotas_with({entity(client_id=None): {key: 1.0}})
    for number in range(200):
        quotas.record(key, QuotaClient("alice", str(number)), 1)
        assert quotas.record(key, QuotaClient("alice", "busy"), 1000) > 0
    assert len(quotas._windows) == 100


def test_the_record_of_a_quota_has_the_bytes_of_kafka() -> None:
    part = ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)
    record = ClientQuotaRecord(entity=[part], key="request_percentage", value=1.0)
    encoded = bytes.fromhex("01 0e 00 02 05") + b"user" + bytes.fromhex("00 00 13") + b"request_percentage"
    encoded += bytes.fromhex("3ff0000000000000 00 00")
    assert encode_record(record) == encoded and decode_record(encoded) == record
