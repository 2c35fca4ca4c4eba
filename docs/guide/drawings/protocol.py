"""The drawings of the chapter on the protocol: a frame, the choice of a version, and the handling of one request."""

from __future__ import annotations

from drawing import Drawing, Tone
from sequence import Lane, Sequence
from tracing import Watched, add_calls, traced

from hmb.broker.dispatch import Dispatcher
from hmb.broker.handlers import HANDLERS, metadata
from hmb.broker.lifecycle import BrokerServer
from hmb.broker.network.sending import send
from hmb.client import Connection
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.connection import ClientConnection, ServerConnection
from hmb.protocol.messages import request_class
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.testing.versions import kafka_versions

RELEASES = ("0.10.0", "2.8", "4.3")
API = ApiKey.FETCH
THREAD = "connection's thread"


def frame() -> Drawing:
    """Draw the bytes of a real Metadata request, field by field."""
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="tea")])
    parts = ClientConnection("app").request(request, 1)
    data = b"".join(bytes(part) for part in parts)
    fields: list[tuple[str, int, Tone]] = [
        ("length", 4, "plain"),
        ("API key", 2, "violet"),
        ("version", 2, "violet"),
        ("correlation id", 4, "violet"),
        ("client id", 2 + len("app"), "violet"),
        ("topics", len(data) - 17, "blue"),
    ]
    assert sum(size for _, size, _ in fields) == len(data)
    words = ", ".join(f"{name} {size} bytes" for name, size, _ in fields)
    drawing = Drawing(492, 290, f"A Metadata request of {len(data)} bytes, field by field: {words}.")
    position, y = 0, 34
    for number, (name, size, tone) in enumerate(fields):
        x = 8 + 242 * (number % 2)
        top = y + 88 * (number // 2)
        words = data[position : position + size].hex(" ")
        drawing.text(x, top, name, anchor="start", strong=True)
        drawing.box(x, top + 10, 234, 34, words, tone=tone)
        drawing.text(x, top + 62, f"bytes {position} to {position + size - 1}", anchor="start", size=13)
        position += size
    return drawing


def versions() -> Drawing:
    """Draw the versions of Fetch in several releases of Kafka and in HMB, and the version that a client chooses."""
    ours = request_class(API).versions
    rows = [(f"Kafka {release}", kafka_versions(release)[API]) for release in RELEASES]
    chosen = {name: min(theirs[-1], ours[-1]) for name, theirs in rows}
    words = "; ".join(f"a client of {name} uses version {version}" for name, version in chosen.items())
    drawing = Drawing(492, 70 + 46 * (len(rows) + 1), f"Versions of Fetch. {words}.")
    left, wide = 102, 20
    for version in ours:
        drawing.text(left + wide * version + wide / 2 - 1, 24, str(version), size=13)
    for number, (name, theirs) in enumerate([*rows, ("HMB", ours)]):
        y = 36 + 46 * number
        drawing.text(8, y + 22, name, anchor="start", size=13)
        for version in theirs:
            is_chosen = chosen.get(name) == version
            tone: Tone = "violet" if is_chosen else "amber" if name == "HMB" else "green"
            drawing.box(left + wide * version, y, wide - 3, 32, tone=tone)
    drawing.text(
        left, 46 * (len(rows) + 1) + 54, "violet: the version that the client chooses", anchor="start", size=13
    )
    return drawing


WATCHED = [
    Watched(Dispatcher.begin, "dispatcher", "begin(frame)", caller=THREAD, reply="frame of the response"),
    Watched(ServerConnection.receive, "codec", "receive(frame)", reply="header, request"),
    Watched(metadata.handle, "handler", "handle(request)", reply="response", tone="blue"),
    Watched(ServerConnection.respond, "codec", "respond(response)", reply="frame"),
    Watched(send, THREAD, "write to the socket"),
]


def dispatch() -> Drawing:
    """Draw how a broker handles one Metadata request.

    The function runs a broker and records its calls. The drawing shows the recorded calls.
    """
    assert HANDLERS[ApiKey.METADATA] is metadata.handle
    with traced(WATCHED) as events, BrokerServer() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with Connection(host, int(port), "app") as client:
            client.send(MetadataRequest(topics=[]))
            events.clear()
            client.send(MetadataRequest(topics=[]))
    sequence = Sequence(*(Lane(name, "amber") for name in (THREAD, "dispatcher", "codec", "handler")), gap=182)
    sequence.note(THREAD, "a frame has arrived")
    add_calls(sequence, events)
    return sequence.drawing("The way of one Metadata request through the broker.")
