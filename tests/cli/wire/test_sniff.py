"""Tests of `hmb sniff` between real clients and brokers."""

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import kafka
import pytest

import hmb
from hmb.cli.wire.frame_streams import SeenFrame
from hmb.cli.wire.frames import brief
from hmb.cli.wire.proxy import Link, Observer, Proxy
from hmb.cli.wire.readdressing import Address
from hmb.protocol.connection import ClientConnection, ServerConnection
from hmb.protocol.framing import read_frame
from hmb.protocol.headers import RequestHeader
from hmb.protocol.messages.api_versions import ApiVersionsResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.security.certificates import make
from tests.cli.conftest import Hmb, start
from tests.cli.wire.test_frame_streams import wire

MetadataBroker = MetadataResponse.MetadataResponseBroker


@contextmanager
def sniffing(servers: str, *options: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Run `hmb sniff` in a process. Yield the address on which it listens, and the process."""
    process = start("sniff", "--listen", "127.0.0.1:0", "--to", servers, *options)
    assert process.stderr is not None and process.stdout is not None
    first = (process.stdout if "--json" in options else process.stderr).readline().decode()
    try:
        yield first.split("listening on ")[1].split()[0], process
    finally:
        process.kill()
        process.communicate()


def stopped(process: "subprocess.Popen[bytes]") -> str:
    """Stop `hmb sniff` with Ctrl-C. Return its output."""
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    return output.decode()


def test_hmb_s_clients(servers: str) -> None:
    with sniffing(servers) as (address, process):
        with hmb.Producer(address) as producer:
            producer.send("sniffed-hmb", b"value", partition=0)
        records = [record.value for record in hmb.Consumer(address, "sniffed-hmb", until="end")]
        output = stopped(process)
    assert records == [b"value"]
    for text in ("-> ApiVersions v", "-> Produce v", "<- Produce v", "<- Fetch v", f"[{servers} becomes {address}]"):
        assert text in output


def test_confluent_kafka_in_a_group(servers: str) -> None:
    with sniffing(servers, "--hex", "--api", "produce", "--api", "FindCoordinator") as (address, process):
        producer = confluent_kafka.Producer({"bootstrap.servers": address})
        producer.produce("sniffed-confluent", b"some value")
        assert producer.flush(20) == 0
        settings = {"bootstrap.servers": address, "group.id": "sniffed", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(settings)
        consumer.subscribe(["sniffed-confluent"])
        record = consumer.poll(30)
        consumer.close()
        output = stopped(process)
    assert record is not None and record.value() == b"some value"
    assert "value: bytes = b'some value'" in output
    assert {line.split()[3] for line in output.splitlines() if line[:1].isdigit()} == {"Produce", "FindCoordinator"}


def test_decode_reads_the_hex_output_of_sniff(run: Hmb, servers: str) -> None:
    # The test reads the output at the end. The response to ApiVersions alone would fill the pipe, so it is left out.
    with sniffing(servers, "--hex", "--api", "Metadata", "--api", "Produce") as (address, process):
        with hmb.Producer(address) as producer:
            producer.send("sniffed-decoded", "wért".encode(), partition=0)
        output = stopped(process)
    decoded = run("decode", stdin=output.encode()).stdout
    assert "Produce request v" in decoded and "Produce response v" in decoded
    rows = [line.strip() for line in output.splitlines() if line.startswith("    ")]
    assert [line for line in decoded.splitlines() if line[:1] == "0"] == [row for row in rows if row[:1] == "0"]


def test_kafka_python_without_acks(servers: str) -> None:
    with sniffing(servers, "--json", "-v") as (address, process):
        producer = kafka.KafkaProducer(bootstrap_servers=address, acks=0)
        producer.send("sniffed-kafka-python", b"value").get(20)
        producer.close()
        consumer = kafka.KafkaConsumer(
            "sniffed-kafka-python", bootstrap_servers=address, auto_offset_reset="earliest", consumer_timeout_ms=20_000
        )
        assert next(consumer).value == b"value"
        consumer.close()
        documents = [json.loads(line) for line in stopped(process).splitlines()]
    produced = [document for document in documents if document.get("api") == "Produce"]
    assert [(each["type"], each["note"]) for each in produced] == [("request", "no response requested")]
    (batch,) = produced[0]["body"]["topic_data"][0]["partition_data"][0]["records"]
    assert [record["value"] for record in batch["records"]] == ["value"]
    answers = [document for document in documents if document["type"] == "response"]
    assert answers and all(document["elapsed_ms"] >= 0 for document in answers)


def test_a_reader_that_closes_the_pipe(servers: str) -> None:
    with sniffing(servers) as (_, process):
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(20) == 0
        assert b"Traceback" not in process.stderr.read()


def test_errors_are_reported_first(run: Hmb, servers: str) -> None:
    with sniffing(servers) as (address, process):
        run("topics", "describe", "nosuch", "-b", address, exit_code=3)
        output = stopped(process)
    assert any(" UNKNOWN_TOPIC_OR_PARTITION " in line and "brokers=[" in line for line in output.splitlines())


def test_an_api_key_of_0_is_named() -> None:
    """The output names an API even if its key is 0, which is the key of Produce.

    Before a bug was fixed, this key was not printed, because 0 is also the field's default.
    """
    versions = ApiVersionsResponse.ApiVersion
    response = ApiVersionsResponse(api_keys=[versions(api_key=0, max_version=13), versions(api_key=1, max_version=18)])
    assert brief(response) == "api_keys=[{api_key=0, max_version=13}, {api_key=1, max_version=18}]"
    partition = MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(replica_nodes=[0])
    assert brief(partition) == "partition_index=0, leader_id=0, replica_nodes=[0]"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["--listen", "nowhere"], 2, "write host:port, for example 127.0.0.1:9093"),
        (["--to", "somewhere:x"], 2, "is not an address"),
        (["--api", "Prodcue"], 2, "did you mean Produce?"),
    ],
)
def test_mistakes(run: Hmb, arguments: list[str], exit_code: int, message: str) -> None:
    assert message in run("sniff", *arguments, exit_code=exit_code).stderr


def test_a_port_that_is_taken(run: Hmb, servers: str) -> None:
    mistake = run("sniff", "--listen", servers, exit_code=1).stderr
    assert f"cannot listen on {servers}: " in mistake
    assert "name another address with --listen" in mistake


# The proxy alone


class Far:
    """The server behind a tested proxy. It also collects the proxy's reports: the frames, and notes in plain text."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self.listener.getsockname())
        self.notes: list[str] = []
        self.seen: list[SeenFrame] = []
        self.closed = threading.Event()

    def note(self, link: Link | None, text: str) -> None:
        self.notes.append(text)
        if text == "closed" or text.startswith("cannot connect"):
            self.closed.set()

    def frame(self, link: Link, seen: SeenFrame) -> None:
        self.seen.append(seen)


@pytest.fixture
def far() -> Iterator[Far]:
    far = Far()
    yield far
    far.listener.close()


@pytest.fixture
def proxy(far: Far) -> Iterator[Proxy]:
    proxy = Proxy(Address("127.0.0.1", 0), [far.address], Observer(far.frame, far.note))
    yield proxy
    proxy.close()


def connected(far: Far, proxy: Proxy) -> tuple[socket.socket, socket.socket]:
    client = socket.create_connection(proxy.address, 20)
    broker, _ = far.listener.accept()
    broker.settimeout(20)
    return client, broker


def received(connection: socket.socket, size: int) -> bytes:
    """Return the next `size` bytes of a connection, or fewer bytes if the other side closes the connection early."""
    with connection.makefile("rb", buffering=0) as stream:
        data = b""
        while len(data) < size and (more := stream.read(size - len(data))):
            data += more
        return data


def test_each_direction_of_a_connection_closes_separately(far: Far, proxy: Proxy) -> None:
    client, broker = connected(far, proxy)
    with client, broker:
        client.sendall(b"not kafka's")
        client.shutdown(socket.SHUT_WR)
        assert received(broker, 100) == b"not kafka's"
        broker.sendall(b"\0\0\0\1what it says")
        broker.close()
        assert received(client, 100) == b"\0\0\0\1what it says"
    assert far.closed.wait(20)


def test_a_broker_that_does_not_exist(far: Far, proxy: Proxy) -> None:
    far.listener.close()
    with socket.create_connection(proxy.address, 20) as client:
        assert received(client, 1) == b""
    assert far.closed.wait(20)
    assert far.notes[-1].startswith(f"cannot connect to {far.address}: ")


def test_the_rest_of_a_frame_that_never_ends_is_passed_on(far: Far, proxy: Proxy) -> None:
    client, broker = connected(far, proxy)
    with client, broker:
        request = wire(ClientConnection("me").request(MetadataRequest(topics=[]), 1))
        client.sendall(request)
        received(broker, len(request))
        broker.sendall(b"\0\0\0\x10\0\0\0\0half")
        broker.close()
        assert received(client, 100) == b"\0\0\0\x10\0\0\0\0half"


def test_a_client_that_does_not_read_stops_the_broker(far: Far, proxy: Proxy) -> None:
    client, broker = connected(far, proxy)
    with client, broker:
        broker.settimeout(0.5)
        sent = 0
        chunk = (1 << 27).to_bytes(4, "big") + bytes(1 << 20)
        with pytest.raises(TimeoutError):
            while sent < 1 << 27:
                sent += broker.send(chunk if sent == 0 else chunk[4:])
        # The client reads again, so the broker can continue to send.
        assert len(received(client, sent // 2)) == sent // 2
        broker.settimeout(20)
        assert broker.send(b"more")


def test_each_broker_gets_a_listener_of_its_own(far: Far, proxy: Proxy) -> None:
    others = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    brokers = [MetadataBroker(host="127.0.0.1", port=other.getsockname()[1]) for other in others]
    client, broker = connected(far, proxy)
    with client, broker:
        for _ in range(2):  # The second response opens no further listener.
            asking = ClientConnection("me")
            client.sendall(wire(asking.request(MetadataRequest(topics=[]), 1)))
            with broker.makefile("rb") as stream:
                assert read_frame(stream, 1000)
            broker.sendall(wire(ServerConnection().respond(RequestHeader(), MetadataResponse(brokers=brokers), 1)))
            with client.makefile("rb") as stream:
                frame = read_frame(stream, 1000)
            assert frame is not None
            _, answer = asking.receive(frame)
            assert isinstance(answer, MetadataResponse)
        ports = [each.port for each in answer.brokers]
    assert len({*ports, proxy.address.port}) == 3
    assert sum(note.startswith("listening on") for note in far.notes) == 3
    for port, other in zip(ports, others, strict=True):
        with socket.create_connection(("127.0.0.1", port), 20), other.accept()[0]:
            other.close()


def test_an_exception_of_the_observer_ends_the_proxy() -> None:
    def on_frame(link: Link, seen: SeenFrame) -> None:
        raise BrokenPipeError

    with hmb.Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        proxy = Proxy(Address("127.0.0.1", 0), [Address(host, int(port))], Observer(on_frame, lambda *_: None))
        with socket.create_connection(proxy.address, 20) as client:
            client.sendall(wire(ClientConnection("me").request(MetadataRequest(topics=[]), 1)))
            with pytest.raises(BrokenPipeError):
                proxy.wait(20)
        proxy.close()


def test_the_error_of_a_used_port_contains_no_python_exception(run: Hmb, servers: str) -> None:
    failed = run("sniff", "--listen", servers, exit_code=1).stderr
    assert "name another address with --listen" in failed and "while attempting" not in failed


def test_encrypted_messages_are_shown_with_the_broker_s_key(tmp_path: Path) -> None:
    made = make(tmp_path / "certificates")
    config = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(made.broker),
        "ssl.truststore.location": str(made.authority),
    }
    security = {"security.protocol": "SSL", "ssl.truststore.location": str(made.authority)}
    options = "--tls-key", str(made.broker), "-X", f"ssl.truststore.location={made.authority}"
    with hmb.Broker(config=config) as broker:
        broker.create_topic("t")
        for given in ((), options):
            with sniffing(broker.bootstrap_servers, "--json", *given) as (address, process):
                with hmb.Producer(address, security=security) as producer:
                    producer.send("t", b"value").result(timeout=30)
                process.send_signal(signal.SIGINT)
                output = process.communicate(timeout=20)[0].decode()
            assert ("are encrypted (TLS)" in output) == (not given)
            assert ('"Produce"' in output) == bool(given)
