"""Tests of the command `hmb bench security`: its goals, and each of its runs with HMB's broker."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from hmb.bench.load.workload import Workload
from hmb.bench.peers import Hmb, PeerFailed
from hmb.bench.peers.chosen import BrokerKind
from hmb.bench.report.samples import Sample
from hmb.bench.security import brokers, logins
from hmb.bench.security.acls import ACLS, acls
from hmb.bench.security.brokers import USER, SecuredBroker, start_brokers
from hmb.bench.security.command import ACL, GOALS, LOGIN, TLS, VIEW
from hmb.bench.security.logins import STRANGER, login_cpu_ms
from hmb.bench.security.tls import RdkafkaClient, consume, fill, produce


def samples(turn: int, rate: float, rate_of_kafka: float, login_ms: float, lost_percent: float) -> list[Sample]:
    """Return the samples of one round of the benchmark."""
    cost = {"lost_percent": lost_percent, "cpu_percent": 1.0}
    tls = {"HMB": rate, "Kafka 4.3.0": rate_of_kafka}
    tasks = [name for name in GOALS if ", " in name]
    return [
        *(
            Sample(TLS, broker, "any", turn, {"task": task, "records": 10}, {"records_per_second": each})
            for broker, each in tls.items()
            for task in tasks
        ),
        Sample(LOGIN, "HMB", "HMB", turn, {"task": "known user"}, {"broker_cpu_ms": login_ms}),
        Sample(LOGIN, "Kafka 4.3.0", "HMB", turn, {"task": "known user"}, {"broker_cpu_ms": 9.0}),
        Sample(ACL, "HMB", "HMB", turn, {"task": "1,000 ACLs"}, {"records_per_second": rate} | cost),
    ]


def test_the_goals_compare_runs_of_one_round() -> None:
    """A goal compares only runs of the same round, because the machine can be slower in other rounds.

    With TLS, HMB's rates in three rounds are 300, 30 and 30 records/s. Kafka's rates are 200, 40 and 20 records/s. The
    ratios of the rounds are therefore 1.5, 0.75 and 1.5, and their median is 1.5. The ratio of the median rates, 30 and
    40 records/s, would be only 0.75.
    """
    taken = [*samples(0, 300.0, 200.0, 1.5, 2.0), *samples(1, 30.0, 40.0, 1.0, 4.0), *samples(2, 30.0, 20.0, 2.5, 5.0)]
    rows = {row[0]: row[1:] for row in VIEW.tables(taken)[-1].rows}
    assert rows["TLS, produce, Kafka 4.3.0: over Kafka"] == ["1.50", "0.75 .. 1.50", "at least 1", "yes"]
    assert rows["login, known user, broker CPU, ms"] == ["1.50", "1.00 .. 2.50", "at most 2", "yes"]
    assert rows["lost throughput with 1,000 ACLs, %"] == ["4.0", "2.0 .. 5.0", "at most 3", "no"]
    assert "login, unknown user, broker CPU, ms" not in rows  # No sample measures the login of an unknown user.


def test_the_acls_are_different() -> None:
    assert len(set(acls())) == ACLS


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredBroker]:
    if shutil.which("openssl") is None:
        pytest.skip("the program openssl is not installed")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setattr(brokers, "broker_kinds", lambda: [BrokerKind(Hmb.name, Hmb)])
        (started,) = start_brokers(stack)
        yield started


def test_librdkafka_sends_and_reads_records_over_tls(secured: SecuredBroker) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    workload = Workload(100, 16_384, 30_000)  # more records than librdkafka returns from one call
    fill(secured, workload)
    produced, consumed = (run(secured, RdkafkaClient(), workload) for run in (produce, consume))
    assert produced["records_per_second"] > 0 and consumed["records_per_second"] > 0


def test_logins_count_only_if_the_broker_decides_correctly(
    secured: SecuredBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in (USER, STRANGER):
        assert login_cpu_ms(secured, user, 4) >= 0
    monkeypatch.setattr(logins, "PASSWORD", "wrong")
    with pytest.raises(PeerFailed, match="accepted 0 of 4 logins of the user alice"):
        login_cpu_ms(secured, USER, 4)
