"""Creates the orders and payments for the experiment in kill.py, and computes the correct results of its Spark jobs.

A shop has two topics, `orders` and `payments`. About 75 % of all orders have a payment. Each record has an event time,
in seconds since 1970. Example:

    orders     {"id": 7, "customer": "c31", "city": "Seattle", "amount": 12, "time": 1000000204}
    payments   {"id": 7, "time": 1000000295}

The event times of a topic are out of order: an order can have an event time that is up to a minute below that of an
earlier order. No query drops this order, because the watermark is ten minutes below the newest event time.

At the end of the experiment, the producer sends late orders, whose event times are in the first window. The queries
with a watermark must drop these orders. Then the producer sends the two *closing records*: one order and one payment.
The event times of the closing records are about ten days after all other event times, so all earlier windows end.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

ORDERS, PAYMENTS = "orders", "payments"
CITIES = ("San Francisco", "Seattle", "Portland", "Eugene", "Sacramento")
CUSTOMERS = 40
WINDOW = 600  # seconds of event time in a window
START = 1_000_000_200  # the lowest event time; a window begins at this time
PAYABLE = 120  # the longest time from an order to its payment, in seconds of event time; a later payment does not count
# When the watermark of a query has reached this event time, the query drops each new order of the first window.
LATE_FROM = START + WINDOW + 100
CLOSING = 10 * 24 * 3600  # seconds of event time between the last order and the closing records

Row = tuple[Any, ...]


class Order(NamedTuple):
    id: int
    customer: str
    city: str
    amount: int
    time: int


class Payment(NamedTuple):
    id: int
    time: int


def encoded(record: Order | Payment) -> bytes:
    return json.dumps(record._asdict()).encode()


def shopping(chance: random.Random) -> Iterator[tuple[Order, Payment | None]]:
    """Yield random orders forever, each with its payment, or with None if the order is not paid."""
    number = 0
    while True:
        order = _order(chance, number, START + max(0, 2 * number - chance.randrange(60)))
        is_paid = chance.random() < 0.75
        yield order, Payment(number, order.time + chance.randrange(2 * PAYABLE)) if is_paid else None
        number += 1


def late_orders(chance: random.Random, first: int, count: int) -> list[Order]:
    """Return `count` orders with event times in the first window. Their ids are `first`, `first + 1`, and so on."""
    return [_order(chance, first + number, START + chance.randrange(WINDOW)) for number in range(count)]


def closing(first: int) -> tuple[Order, Payment]:
    """Return an order and a payment with event times about ten days after all other records.

    When a query reads these records, all earlier windows end. The payment belongs to no order.
    """
    time = START + 2 * first + CLOSING
    return Order(first, "c0", CITIES[0], 1, time), Payment(first + 1, time)


def _order(chance: random.Random, number: int, time: int) -> Order:
    customer = f"c{chance.randrange(CUSTOMERS)}"
    return Order(number, customer, chance.choice(CITIES), chance.randrange(1, 100), time)


class Sent(NamedTuple):
    """The records that the producer has sent, except the last payment.

    The orders in `late` have event times in the first window, but the producer sends them after the orders in `orders`.
    The list `closing` contains only the last order. The event time of this order is about ten days after the event
    times of all other orders, so all earlier windows end.
    """

    orders: list[Order]
    payments: list[Payment]
    late: list[Order]
    closing: list[Order]

    @property
    def all_orders(self) -> list[Order]:
        return [*self.orders, *self.late, *self.closing]


def answers(sent: Sent) -> dict[str, list[Row]]:
    """Return the rows that each job must produce.

    The jobs `windows` and `join` use a watermark, so they produce no rows for late orders. These jobs produce no row
    for the last order either, because no later record moves the watermark past the event time of this order.
    """
    by_city = totals(sent.all_orders)
    return {
        "totals": by_city,
        "windows": windows(sent.orders),
        "join": paid(sent.orders, sent.payments),
        "upsert": newest(sent.all_orders),
        "lambda": by_city,
        "once": [(encoded(order).decode(),) for order in sent.all_orders],
    }


def totals(orders: Iterable[Order]) -> list[Row]:
    """Return `(city, number of orders, sum of amounts)` for each city."""
    amounts: dict[str, list[int]] = defaultdict(list)
    for order in orders:
        amounts[order.city].append(order.amount)
    return [(city, len(each), sum(each)) for city, each in amounts.items()]


def windows(orders: Iterable[Order]) -> list[Row]:
    """Return `(start of the window, city, number of orders, sum of amounts)` for each window and city."""
    by_window: dict[int, list[Order]] = defaultdict(list)
    for order in orders:
        by_window[order.time // WINDOW * WINDOW].append(order)
    return [(start, *row) for start, each in by_window.items() for row in totals(each)]


def paid(orders: Iterable[Order], payments: Iterable[Payment]) -> list[Row]:
    """Return `(id, time of the payment)` for each order. If the payment is missing or too late, the time is None."""
    times = {payment.id: payment.time for payment in payments}
    found = []
    for order in orders:
        time = times.get(order.id)
        found.append((order.id, time if time is not None and time <= order.time + PAYABLE else None))
    return found


def newest(orders: Iterable[Order]) -> list[Row]:
    """Return `(customer, order, amount)` for the newest order of each customer."""
    found = {order.customer: order for order in sorted(orders)}
    return [(order.customer, order.id, order.amount) for order in found.values()]
