"""Tests of the benchmark `clients`: the client libraries, the goals for their speed, and runs with missing records."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.peers import topics
from hmb.bench.peers.chosen import MeasuredBroker
from hmb.bench.report.samples import Sample
from hmb.bench.scenarios import clients
from hmb.bench.scenarios.clients import CONSUMERS, GOALS, PRODUCERS, ClientSettings, LibraryClient, chosen_clients

SETTINGS = ClientSettings(acks=1, linger_ms=5, batch_size=16_384)
COUNT = 30_000
NO_SYNC = {"log.flush.acks.all": "false"}


def runs(action: str, name: str, *rates: float) -> list[Sample]:
    return [
        Sample(f"clients {action}", "HMB", name, number, {}, {clients.RATE.key: rate, clients.CPU.key: 1e6 / rate})
        for number, rate in enumerate(rates)
    ]


def test_goals_are_judged_by_the_median_of_the_rounds() -> None:
    fast, slow = runs("produce", "hmb send", 300.0, 100.0, 300.0), runs("produce", "aiokafka", 100.0, 100.0, 160.0)
    rates, goals = clients.VIEW.tables([*fast, *slow])
    assert [row[0] for row in rates.rows] == ["", "hmb send", "aiokafka"]
    ratio = "1.88 (1.00 .. 3.00)"
    assert goals.rows[1:] == [["produce", "hmb send, at least 2 x aiokafka", "MISSED", ratio, ratio]]
    _, goals = clients.VIEW.tables(runs("consume", "hmb consume", 400_000.0))
    reached = "400,000 (400,000 .. 400,000)"
    assert goals.rows[1:] == [["consume", "hmb consume, at least 300,000 records/s", "met", reached, "400,000"]]


def test_two_installations_are_compared_client_by_client() -> None:
    samples = [*runs("produce", "hmb send", 110.0), *runs("produce", "hmb send (before)", 100.0)]
    table = clients.VIEW.tables(samples)[0]
    assert table.rows[0][2:4] == ["records/s", "over HMB (before)"]
    assert [row[:2] for row in table.rows[1:]] == [["hmb send", "HMB"], ["", "HMB (before)"]]
    assert table.rows[1][3] == "1.10 (1.10 .. 1.10)"


def test_goals_name_clients_that_exist() -> None:
    known = {(each.action, each.name) for each in (*PRODUCERS, *CONSUMERS)}
    assert {(goal.action, name) for goal in GOALS for name in (goal.client, goal.over) if name} <= known


def test_only_hmbs_clients_have_a_second_installation() -> None:
    other = replace(peers.Installation.own(), name="HMB (before)")
    chosen = chosen_clients("produce", ["send", "confluent"], 0.5, other)
    assert [each.label for each in chosen[:2]] == ["hmb send", "hmb send (before)"]
    assert {each.name.split()[0] for each in chosen} == {"hmb"} and chosen[0].records == 500_000


@pytest.mark.external
def test_every_client_produces_or_consumes_all_records() -> None:
    with hmb.Broker(config=NO_SYNC) as broker:
        target = MeasuredBroker("embedded", broker.bootstrap_servers, os.getpid())
        for each in PRODUCERS:
            figures = clients.produce(target, replace(each, records=COUNT), SETTINGS)
            assert figures["records_per_second"] > 0
        clients.fill(target, COUNT)
        for each in CONSUMERS:
            figures = clients.run_client(target, replace(each, records=COUNT), clients.FILLED, SETTINGS)
            assert figures["records_per_second"] > 0 < figures["client_max_bytes"]


@pytest.mark.external
def test_the_client_of_another_installation_runs_with_its_python() -> None:
    other = peers.Installation.at(Path(sys.executable))
    with hmb.Broker(config=NO_SYNC) as broker:
        client = LibraryClient("hmb send_many", "produce", COUNT, other)
        figures = clients.produce(MeasuredBroker("embedded", broker.bootstrap_servers), client, SETTINGS)
        assert figures["records_per_second"] > 0


@pytest.mark.external
def test_a_consumer_that_does_not_find_all_records_is_not_a_result() -> None:
    with hmb.Broker(config=NO_SYNC) as broker:
        topics.create(broker.bootstrap_servers, "t")
        with hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"1").result()
        target = MeasuredBroker("embedded", broker.bootstrap_servers)
        with pytest.raises(peers.PeerFailed, match=r"read 1 records with .* bytes, 1 in the first batch; expected 5"):
            clients.run_client(target, LibraryClient("hmb consume", "consume", 5), "t", SETTINGS)
