"""The drawings of the tours. Each drawing shows the function calls of a real broker or producer for one request."""

from __future__ import annotations

from drawing import Drawing, Tone
from sequence import Lane, Sequence
from tracing import Event, Watched, add_calls, traced

import hmb
from hmb.broker.dispatch import Dispatcher
from hmb.broker.handlers import fetch as fetch_handler
from hmb.broker.handlers import produce as produce_handler
from hmb.broker.lifecycle import BrokerServer
from hmb.broker.network import sending
from hmb.client.producing.accumulator import Accumulator
from hmb.client.producing.completion import BatchCompletion
from hmb.client.producing.delivery import BatchResult
from hmb.client.producing.producer import Producer
from hmb.client.producing.sender import LeaderRouter, Sender
from hmb.protocol.connection import ServerConnection
from hmb.storage.log import Log
from hmb.storage.offset_index import OffsetIndex
from hmb.storage.segment import Segment

THREAD = "connection"
LARGE = bytes(5_000)  # A value with more bytes than one index interval, so that the index gets an entry.

PRODUCE = [
    Watched(Dispatcher.begin, "dispatcher", "3 begin", caller=THREAD, reply="response"),
    Watched(ServerConnection.receive, "dispatcher", "4 decode"),
    Watched(produce_handler.handle, "handler", "5 handle", reply="base offset"),
    Watched(Log.append, "log", "7 append", reply="base offset", tone="blue"),
    Watched(Segment.append, "segment", "10 write", tone="blue"),
    Watched(OffsetIndex.append, "index", "12 add entry", tone="blue"),
    Watched(sending.send, THREAD, "send", caller=THREAD),
]

FETCH = [
    Watched(fetch_handler.handle, "handler", "1 handle", caller=THREAD, reply="file region"),
    Watched(Log.read, "log", "3 read", reply="file region", tone="green"),
    Watched(Segment.read, "segment", "5 read", reply="file region", tone="green"),
    Watched(OffsetIndex.lookup, "index", "8 look up", reply="position", tone="green"),
    Watched(ServerConnection.respond, THREAD, "9 encode", caller=THREAD),
    Watched(sending.send, THREAD, "11 sendfile", caller=THREAD),
]

SEND = [
    Watched(Producer.send, "program", "1 send"),
    Watched(Accumulator.append, "accumulator", "3 append", tone="blue"),
    Watched(LeaderRouter._route, "router", "4 find the leader"),
    Watched(Sender._encode, "sender", "6 encode", caller="sender"),
    Watched(Sender._post, "socket", "7 write", caller="sender", tone="blue"),
    Watched(Sender._complete, "sender", "8 response", caller="socket"),
    Watched(BatchCompletion.handle_response, "sender", "9 complete"),
    Watched(BatchResult.complete, "program", "10 wake the program", caller="sender", tone="blue"),
]


def produce() -> Drawing:
    """Draw the calls in a broker during one Produce request, from the dispatcher to the offset index and back."""
    with (
        traced(PRODUCE) as events,
        BrokerServer() as broker,
        hmb.Producer(broker.bootstrap_servers, acks=1) as producer,
    ):
        producer.send("weather", LARGE).result()
        events.clear()
        producer.send("weather", LARGE).result()
    lanes = (THREAD, "dispatcher", "handler", "log", "segment", "index")
    return calls("The calls of one Produce request.", events, *lanes)


def fetch() -> Drawing:
    """Draw the calls in a broker during one Fetch request, from the handler to the offset index and back."""
    with traced(FETCH) as events, BrokerServer() as broker:
        with hmb.Producer(broker.bootstrap_servers) as producer:
            for _ in range(3):
                producer.send("weather", LARGE).result()
        consumer = hmb.SimpleConsumer(broker.bootstrap_servers)
        consumer.fetch("weather", 0, offset=0)
        events.clear()
        consumer.fetch("weather", 0, offset=1)
        consumer.close()
    return calls("The calls of one Fetch request.", events, THREAD, "handler", "log", "segment", "index")


def send() -> Drawing:
    """Draw the calls that send one record, from the call of `Producer.send` until the program gets the result.

    The calls run in three threads: the thread of the program, the router and the sender.
    """
    with traced(SEND) as events, BrokerServer() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
        producer.send("weather", b"rain", key=b"Seattle").result()
    return calls("The calls of one Producer.send.", events, "program", "accumulator", "router", "sender", "socket")


def calls(about: str, events: list[Event], *lanes: str) -> Drawing:
    """Draw recorded calls as arrows between vertical lines, one line for each name in `lanes`.

    The drawing also has a description for readers who cannot see images. `about` is the first sentence of this
    description.
    """
    tones: dict[str, Tone] = dict.fromkeys(("program", "accumulator", "router", "sender"), "blue")
    sequence = Sequence(*(Lane(name, tones.get(name, "amber")) for name in lanes), gap=900 / len(lanes))
    add_calls(sequence, events)
    return sequence.drawing(about)
