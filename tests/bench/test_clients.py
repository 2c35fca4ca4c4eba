"""Clients side by side: what each is told, that its run counts only when all has arrived, and what is made of it."""

from __future__ import annotations

import os

import pytest

import hmb
from hmb.bench import clients, peers, topics
from hmb.bench.clients import CONSUMERS, GOALS, PRODUCERS, Contestant, Outcome, Settings, judge
from hmb.bench.targets import Target
from hmb.bench.turns import Spread

SETTINGS = Settings(acks=1, linger_ms=5, batch_size=16_384)
COUNT = 30_000


def outcome(what: str, name: str, *rates: float) -> Outcome:
    return Outcome(Contestant(name, what, COUNT), Spread(rates), Spread(tuple(1e6 / rate for rate in rates)))


def test_goals_are_judged_by_the_median_of_the_turns() -> None:
    fast, slow = (
        outcome("produce", "hmb send", 300.0, 100.0, 300.0),
        outcome("produce", "aiokafka", 100.0, 100.0, 160.0),
    )
    (told,) = judge([fast, slow])
    assert told.strip() == "MISSED hmb send: 1.88 (1.00 .. 3.00), by CPU 1.88 (1.00 .. 3.00); at least 2 x aiokafka"
    (told,) = judge([outcome("consume", "hmb consume", 400_000.0)])
    assert told.strip() == "met    hmb consume: 400,000/s, by CPU 400,000/s; at least 300,000/s"


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
