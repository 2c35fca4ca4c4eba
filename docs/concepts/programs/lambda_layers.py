from collections import Counter
from typing import Literal

import hmb

PIZZAS = "margherita funghi margherita napoli funghi margherita napoli funghi margherita margherita"


def count(address: str, start: int, until: int | Literal["end"]) -> Counter[str]:
    """Count the orders at offsets from `start` to `until` - 1, or up to the end of the log if `until` is "end"."""
    with hmb.Consumer(address, "orders", offset=start, until=until) as consumer:
        return Counter(record.value.decode() for record in consumer)


with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
    producer.send_many("orders", [pizza.encode() for pizza in PIZZAS.split()]).result()
    batch_view = count(broker.bootstrap_servers, 0, 6)
    speed_view = count(broker.bootstrap_servers, 6, "end")
    print("batch layer:  ", dict(batch_view))
    print("speed layer:  ", dict(speed_view))
    print("serving layer:", dict(batch_view + speed_view))
