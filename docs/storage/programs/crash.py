import logging
from pathlib import Path

import hmb

logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
broker = hmb.Broker("data").start()
for number in range(1, 5):
    broker.produce("orders", f"order {number}")
print("before:", [record.value.decode() for record in broker.records("orders")])
broker.kill()  # as kill -9: nothing is synced or closed

path = Path("data", "orders-0", f"{0:020}.log")
with path.open("r+b") as file:
    file.truncate(path.stat().st_size - 10)  # a power cut: the end of the last batch never reached the disk

broker.restart()
print("after: ", [record.value.decode() for record in broker.records("orders")])
print("offset of the next record:", broker.produce("orders", "order 5"))
broker.close()
