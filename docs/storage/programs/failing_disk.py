import errno
import os

import hmb

fdatasync = os.fdatasync


def fail(file: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


with hmb.Broker("data", config={"log.flush.acks.all": True}) as broker:
    producer = hmb.Producer(broker.bootstrap_servers, acks="all", delivery_timeout=1)

    def send(when: str) -> None:
        try:
            print(f"{when}: offset", producer.send("orders", b"an order").result().offset)
        except hmb.KafkaError as error:
            print(f"{when}: {error.code.name}")

    send("the disk works")
    os.fdatasync = fail
    send("the disk fails")
    os.fdatasync = fdatasync
    send("the disk works again")
    broker.restart()
    send("after a restart")
