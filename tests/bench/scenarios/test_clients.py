"""Clients side by side: what each is told, that its run counts only when all has arrived, and what is made of it."""

from __future__ import annotations

import os

import pytest

import hmb
from hmb.bench import peers
from hmb.bench.peers import topics
from hmb.bench.peers.targets import Target
from hmb.bench.report.samples import Sample
from hmb.bench.scenarios import clients
from hmb.bench.scenarios.clients import CONSUMERS, GOALS, PRODUCERS, Contestant, Settings

SETTINGS = Settings(acks=1, linger_ms=5, batch_size=16_384)
COUNT = 30_000


def runs(what: str, name: str, *rates: float) -> list[Sample]:
    return [
        Sample(f"clients {what}", "HMB", name, turn, {}, {clients.RATE: rate, clients.CPU: 1e6 / rate})
        for turn, rate in enumerate(rates)
    ]


def test_goals_are_judged_by_the_median_of_the_turns() -> None:
    fast, slow = runs("produce", "hmb send", 300.0, 100.0, 300.0), runs("produce", "aiokafka", 100.0, 100.0, 160.0)
    rates, goals = clients.tables([*slow, *fast])
    assert [row[1] for row in rates.rows] == ["client", "hmb send", "aiokafka"]
    ratio = "1.88 (1.00 .. 3.00)"
    assert goals.rows[1:] == [["produce", "hmb send, at least 2 x aiokafka", "MISSED", ratio, ratio]]
    _, goals = clients.tables(runs("consume", "hmb consume", 400_000.0))
    told = "400,000 (400,000 .. 400,000)"
    assert goals.rows[1:] == [["consume", "hmb consume, at least 300,000 records/s", "met", told, "400,000"]]


def test_goals_are_about_clients_that_there_are() -> None:
    known = {(each.what, each.name) for each in (*PRODUCERS, *CONSUMERS)}
    assert {(goal.what, name) for goal in GOALS for name in (goal.client, goal.over) if name} <= known


@pytest.mark.external
def test_every_client_does_what_it_is_told() -> None:
    with hmb.Broker(config={"log.flush.acks.all": "false"}) as broker:
        target = Target("embedded", broker.bootstrap_servers, os.getpid())
        for each in PRODUCERS:
            assert clients.produce(target, Contestant(each.name, "produce", COUNT), SETTINGS)["records_per_second"] > 0
        clients.fill(target, COUNT)
        for each in CONSUMERS:
            figures = clients.run_one(target, Contestant(each.name, "consume", COUNT), clients.FILLED, SETTINGS)
            assert figures["records_per_second"] > 0 < figures["client_max_bytes"]


@pytest.mark.external
def test_a_consumer_that_does_not_find_all_is_no_result() -> None:
    with hmb.Broker(config={"log.flush.acks.all": "false"}) as broker:
        topics.create(broker.bootstrap_servers, "t")
        with hmb.Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"1").result()
        target = Target("embedded", broker.bootstrap_servers)
        with pytest.raises(peers.PeerFailed, match=r"1 records with .* bytes, 1 at first; 5 should come"):
            clients.run_one(target, Contestant("hmb consume", "consume", 5), "t", SETTINGS)
