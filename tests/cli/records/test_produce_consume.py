"""Tests of `hmb produce` and `hmb consume` together: the output of the consumer equals the input of the producer."""

import base64
import json
import os
import signal
import subprocess
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hmb
from hmb.cli.records.record_json import from_json, to_json
from hmb.cli.shared.parameters import delimiter
from hmb.client import ConsumerRecord, Producer
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.messages.produce import ProduceResponse
from hmb.protocol.schema import Request, Response
from hmb.records import Record, TimestampType, encode_batch
from tests.cli.conftest import Hmb, start
from tests.client.scripted_broker import HangUp, ScriptedBroker

NAMES = (f"topic{number}" for number in count())


@pytest.fixture
def topic() -> str:
    return next(NAMES)


def test_consumed_lines_equal_the_produced_lines(run: Hmb, servers: str, topic: str) -> None:
    lines = b"first\n\n\xff\xfe not text \x00\r\nlast without newline"
    result = run("produce", topic, "-p", "0", "-b", servers, stdin=lines)
    assert result.stdout == ""
    assert result.stderr.startswith(f"4 records sent to {topic} in ")
    assert run("consume", topic, "-e", "-b", servers).stdout_bytes == lines + b"\n"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("acks", ["all", "1"])
def test_codecs_and_acks(run: Hmb, servers: str, topic: str, codec: str, acks: str) -> None:
    lines = "".join(f"line {number}\n" for number in range(1000))
    run("produce", topic, "-p", "1", "-z", codec, "--acks", acks, "-b", servers, stdin=lines)
    assert run("consume", topic, "-e", "-b", servers).stdout == lines


def test_keys(run: Hmb, servers: str, topic: str) -> None:
    run("produce", topic, "-p", "0", "-K", "=>", "-b", servers, stdin="a=>1\nb=>2=>3\nno key\n=>empty key\n")
    assert run("consume", topic, "-e", "-K", ": ", "-b", servers).stdout == "a: 1\nb: 2=>3\n: no key\n: empty key\n"
    records = [json.loads(line) for line in run("consume", topic, "-e", "--json", "-b", servers).stdout.splitlines()]
    assert [record["key"] for record in records] == ["a", "b", None, ""]


@pytest.mark.parametrize(
    ("given", "meant"),
    [(r"\t", b"\t"), (r"\x1F", b"\x1f"), (r"\0\n", b"\0\n"), (r"\\t", b"\\t"), ("::", b"::"), ("\udcff", b"\xff")],
)
def test_delimiters_have_the_escapes_of_kcat(run: Hmb, servers: str, topic: str, given: str, meant: bytes) -> None:
    assert delimiter(given) == meant
    line = b"key" + meant.replace(b"\n", b"") + b"value"
    run("produce", topic, "-K", given.replace(r"\n", ""), "-b", servers, stdin=line)
    assert run("consume", topic, "-e", "-K", given, "-b", servers).stdout_bytes == b"key" + meant + b"value\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-e"], "0123456789"),
        (["-e", "--from-beginning"], "0123456789"),
        (["-c", "3", "--from-beginning"], "012"),
        (["-c", "2", "-o", "4", "-p", "0"], "45"),
        (["-e", "-o", "7", "-p", "0"], "789"),
        (["-e", "-o", "-2"], "89"),
        (["-e", "-o", "earliest", "-p", "0"], "0123456789"),
        (["-e", "-o", "latest"], ""),
        (["-e", "-p", "1", "-p", "2"], ""),
    ],
)
def test_starts_and_ends(run: Hmb, servers: str, options: list[str], expected: str) -> None:
    run("topics", "create", "ten", "--if-not-exists", "--partitions", "3", "-b", servers)
    if not run("consume", "ten", "-e", "-b", servers).stdout:
        run("produce", "ten", "-p", "0", "-b", servers, stdin="".join(f"{number}\n" for number in range(10)))
    assert run("consume", "ten", *options, "-b", servers).stdout.replace("\n", "") == expected


def test_json_is_produced_again_byte_for_byte(run: Hmb, servers: str, topic: str) -> None:
    headers = (("text", b"a\xc3\xa9"), ("binary", b"\xff"), ("null", None), ("text", b""))
    with Producer(servers) as producer:
        producer.send(topic, b"\x80\x00", b"key", 0, headers, timestamp=1234567890123)
        producer.send(topic, None, None, 0)
        producer.send(topic, '{"a": "b\u2028"}\n'.encode(), b"", 0)
    printed = run("consume", topic, "-e", "--json", "-b", servers).stdout
    first = json.loads(printed.splitlines()[0])
    assert first["value_base64"] == base64.b64encode(b"\x80\x00").decode()
    assert first["headers"][1] == {"key": "binary", "value_base64": "/w=="}
    assert (first["timestamp"], first["timestamp_type"]) == (1234567890123, "CreateTime")
    run("produce", f"{topic}-copy", "-p", "0", "--json", "-b", servers, stdin=printed)
    copied = run("consume", f"{topic}-copy", "-e", "--json", "-b", servers).stdout
    assert copied == printed.replace(topic, f"{topic}-copy")


maybe_bytes = st.none() | st.binary(max_size=20) | st.text(max_size=10).map(str.encode)


@given(maybe_bytes, maybe_bytes, st.lists(st.tuples(st.text(max_size=5), maybe_bytes), max_size=3))
def test_a_record_survives_json(key: bytes, value: bytes, headers: list[tuple[str, bytes | None]]) -> None:
    record = ConsumerRecord("t", 0, 1, 2, TimestampType.CREATE_TIME, key, value, tuple(headers))
    line = to_json(record)
    assert "\n" not in line
    assert from_json(line.encode()) == (key, value, tuple(headers), 2, 0)


def test_a_timestamp_that_is_none_is_left_to_the_producer() -> None:
    line = b'{"value": "x", "timestamp": -1, "timestamp_type": "NoTimestampType"}'
    assert from_json(line) == (None, b"x", (), None, None)


def test_json_records_return_to_their_partition(run: Hmb, servers: str, topic: str) -> None:
    with Producer(servers) as producer:
        for number in range(9):
            producer.send(topic, b"%d" % number, b"one key", number % 3)
    printed = [run("consume", topic, "-e", "-p", p, "--json", "-b", servers).stdout for p in "012"]
    run("produce", f"{topic}-copy", "--json", "-b", servers, stdin="".join(printed))
    copied = [run("consume", f"{topic}-copy", "-e", "-p", p, "--json", "-b", servers).stdout for p in "012"]
    assert copied == [part.replace(topic, f"{topic}-copy") for part in printed]
    run("produce", f"{topic}-one", "--json", "-p", "2", "-b", servers, stdin="".join(printed))
    assert run("consume", f"{topic}-one", "-e", "-p", "2", "-b", servers).stdout == "0\n3\n6\n1\n4\n7\n2\n5\n8\n"


def test_consume_follows_until_ctrl_c(run: Hmb, servers: str, topic: str) -> None:
    run("produce", topic, "-b", servers, stdin="first\n")
    process = start("consume", topic, "--from-beginning", "-b", servers)
    assert process.stdout is not None
    assert process.stdout.readline() == b"first\n"
    run("produce", topic, "-b", servers, stdin="second\n")
    assert process.stdout.readline() == b"second\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 130


def test_a_closed_pipe_ends_quietly(run: Hmb, servers: str, topic: str) -> None:
    run("produce", topic, "-b", servers, stdin="a line to be repeated\n" * 50_000)
    process = start("consume", topic, "-e", "-b", servers)
    assert process.stdout is not None
    assert process.stdout.readline() == b"a line to be repeated\n"
    process.stdout.close()
    process.stdout = None
    assert process.communicate(timeout=30)[1] == b""
    assert process.returncode == 0


def test_produce_sends_each_line_immediately(servers: str, run: Hmb, topic: str) -> None:
    process = start("produce", topic, "-p", "0", "-b", servers, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"now\n")
    process.stdin.flush()
    run("topics", "create", topic, "--if-not-exists", "-b", servers)
    assert run("consume", topic, "--from-beginning", "-c", "1", "-b", servers).stdout == "now\n"
    process.stdin.close()
    process.stdin = None
    process.communicate(timeout=30)
    assert process.returncode == 0


class Interrupted:
    """A broker with four records. It closes the connection when a client fetches from offset 2.

    After the broker has closed `times` connections in this way, it answers every fetch.
    """

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, request: Request, version: int) -> Response | None:
        if isinstance(request, ListOffsetsRequest):
            end = 4 if request.topics[0].partitions[0].timestamp == -1 else 0
            asked = ListOffsetsResponse.ListOffsetsTopicResponse
            answers = [asked.ListOffsetsPartitionResponse(offset=end)]
            return ListOffsetsResponse(topics=[asked(name="t", partitions=answers)])
        assert isinstance(request, FetchRequest)
        first = request.topics[0].partitions[0].fetch_offset
        if first == 2 and self.times:
            self.times -= 1
            raise HangUp
        records = [Record(timestamp=1, value=b"%d" % offset) for offset in (first, first + 1)]
        topic = FetchResponse.FetchableTopicResponse
        answer = topic.PartitionData(records=memoryview(encode_batch(records, base_offset=first)))
        return FetchResponse(responses=[topic(topic="t", partitions=[answer])])


def test_the_end_is_where_the_log_ends_and_not_where_the_connection_is_lost(
    run: Hmb, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With this timeout, each empty poll ends at once.
    monkeypatch.setattr("hmb.cli.records.idle_limit.POLL_TIMEOUT", 0.0)
    with ScriptedBroker(Interrupted(times=3)) as broker:
        assert run("consume", "t", "-e", "-b", broker.address).stdout == "0\n1\n2\n3\n"


def test_a_connection_that_stays_lost_is_one_line_and_exit_code_4(run: Hmb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.cli.records.consume.RETRY_FOR", 0.0)
    with ScriptedBroker(Interrupted(times=10**6)) as broker:
        result = run("consume", "t", "-e", "-b", broker.address, exit_code=4)
    assert result.stdout == "0\n1\n"
    assert result.stderr.startswith(f"hmb: {broker.address} closed the connection; start a broker")
    assert result.stderr.count("\n") == 1


class Silent:
    """A broker that accepts a limited number of Produce requests.

    After it has accepted `requests` requests, the broker closes the connection at each further Produce request.
    """

    def __init__(self, requests: int) -> None:
        self.requests = requests

    def __call__(self, request: Request, version: int) -> Response | None:
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(producer_id=1)
        self.requests -= 1
        if self.requests < 0:
            raise HangUp
        answer = ProduceResponse.TopicProduceResponse
        partitions = [answer.PartitionProduceResponse(index=0, base_offset=0)]
        return ProduceResponse(responses=[answer(name="t", partition_responses=partitions)])


def test_produce_stops_at_the_first_failure_though_its_input_does_not_end(
    run: Hmb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hmb.cli.records.produce.DELIVERY_TIMEOUT", 0.2)
    monkeypatch.setattr("hmb.cli.records.produce.GRACE", 0.01)
    reader, writer = os.pipe()
    os.write(writer, b"1\n2\n3\n")  # The pipe stays open, so the command expects more input.
    with ScriptedBroker(Silent(0)) as broker, os.fdopen(reader, "rb") as stdin, os.fdopen(writer, "wb"):
        result = run("produce", "t", "-b", broker.address, stdin=stdin, exit_code=4)
    tally, error = result.stderr.splitlines()
    assert tally.startswith("0 records sent to t in ")
    assert tally.endswith("; 3 not acknowledged, from line 1 on: the broker may have written them")
    assert error.startswith("hmb: 3 records for t-0 not delivered in 0.2 s: ")


def test_all_lost_records_are_counted_and_not_only_the_first_batch(run: Hmb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.cli.records.produce.DELIVERY_TIMEOUT", 2.0)
    monkeypatch.setattr("hmb.cli.records.produce.GRACE", 0.01)
    with ScriptedBroker(Silent(2)) as broker:  # With the batch size 1, each line is a batch.
        result = run("produce", "t", "-b", broker.address, "-X", "batch.size=1", stdin="x\n" * 1000, exit_code=4)
    tally, error = result.stderr.splitlines()
    assert tally.startswith("2 records sent to t in ")
    assert tally.endswith("; 998 not acknowledged, from line 3 on: the broker may have written them")
    assert error.startswith("hmb: 1 records for t-0 not delivered in 2 s: ")


def test_a_terminated_produce_reports_its_progress(run: Hmb, servers: str, topic: str) -> None:
    process = start("produce", topic, "-p", "0", "-b", servers, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"now\n")
    process.stdin.flush()
    run("topics", "create", topic, "--if-not-exists", "-b", servers)
    assert run("consume", topic, "--from-beginning", "-c", "1", "-b", servers).stdout == "now\n"
    process.terminate()
    assert process.stderr is not None
    # The read ends when the command ends. The command must end, although its standard input is still open.
    stderr = process.stderr.read()
    assert process.wait(30) == 130
    assert stderr.startswith(b"1 record sent to %s in " % topic.encode())


def test_a_long_wait_is_explained(run: Hmb, monkeypatch: pytest.MonkeyPatch, mute: str) -> None:
    monkeypatch.setattr("hmb.cli.records.produce.DELIVERY_TIMEOUT", 0.5)
    monkeypatch.setattr("hmb.cli.shared.waiting_notice.NOTICE_SECONDS", 0.02)
    result = run("produce", "t", "-b", mute, stdin="x\n", exit_code=4)
    assert result.stderr.startswith(f"waiting for {mute} to take line 1, 0.5 s at most ...\n0 records sent to t in ")


def test_a_wait_for_a_missing_topic_is_explained(run: Hmb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hmb.cli.records.produce.DELIVERY_TIMEOUT", 0.5)
    monkeypatch.setattr("hmb.cli.shared.waiting_notice.NOTICE_SECONDS", 0.2)
    with hmb.Broker(config={"auto.create.topics.enable": "false"}) as broker:
        result = run("produce", "no", "-b", broker.bootstrap_servers, stdin="x\n", exit_code=3)
    where = broker.bootstrap_servers
    assert result.stderr.startswith(f"waiting for {where} to take line 1 (there is no topic 'no'), 0.5 s at most ...\n")
