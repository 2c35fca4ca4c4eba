"""Tests of `hmb decode`: its output, its errors and its exit codes."""

import json
from pathlib import Path

import pytest

from hmb.cli.wire.decode import MAX_INPUT
from hmb.records import Codec, Record, encode_batch, encode_message_set
from tests.cli.conftest import Hmb
from tests.cli.test_completion import complete
from tests.golden.files import load

GOLDEN = Path(__file__).parents[2] / "golden"
METADATA = "00 00 00 16 00 03 00 01 00 00 00 00 00 02 6d 65 00 00 00 01 00 04 74 65 73 74"
PRODUCE = load(GOLDEN / "produce_v9_kafka-python-2.8.txt")
REQUEST, RESPONSE = PRODUCE["request"].wire, PRODUCE["response"].wire
RECORDS = [Record(timestamp=1000, key=b"k", value=b"v" * 50, headers=(("h", b"\xff"),)), Record(timestamp=1001)]


def meanings(output: str) -> list[str]:
    """Return the last column of the output: names, types and values."""
    return [line[57:] for line in output.splitlines() if line[57:]]


def test_a_request_contains_its_api_and_version(run: Hmb) -> None:
    output = run("decode", METADATA).stdout
    assert output == run("decode", *METADATA.split()).stdout
    assert output.splitlines()[0] == "Metadata request v1, 26 bytes"
    assert meanings(output) == [
        "size: int32 = 22",
        "header.api_key: int16 = 3  METADATA",
        "header.api_version: int16 = 1",
        "header.correlation_id: int32 = 0",
        "header.client_id: string = 'me'",
        "topics.count: int32 = 1",
        "topics[0].name: string = 'test'",
    ]


def test_without_its_length(run: Hmb) -> None:
    bare = run("decode", METADATA.removeprefix("00 00 00 16")).stdout
    assert meanings(bare) == meanings(run("decode", METADATA).stdout)[1:]


def test_a_file_and_standard_input(run: Hmb, tmp_path: Path) -> None:
    (tmp_path / "frame").write_bytes(REQUEST)
    output = run("decode", str(tmp_path / "frame")).stdout
    assert output == run("decode", stdin=REQUEST).stdout == run("decode", "-", stdin=REQUEST.hex(" ")).stdout
    assert output == run("decode", stdin=output).stdout  # `hmb decode` accepts its own output as input.


@pytest.mark.parametrize("name", [path.name for path in GOLDEN.glob("*.txt")])
def test_a_response_after_its_request(run: Hmb, name: str) -> None:
    sides = load(GOLDEN / name)
    output = run("decode", str(GOLDEN / name)).stdout.splitlines()
    titles = [line for line in output if " v" in line and "  " not in line]
    version = sides["request"].header.api_version
    assert [title.rsplit(maxsplit=4)[1:3] for title in titles] == [[kind, f"v{version},"] for kind in sides]


def test_two_requests_with_one_correlation_id_keep_their_own_responses(run: Hmb) -> None:
    other = bytearray.fromhex(METADATA)
    other[8:12] = REQUEST[8:12]  # The copied bytes are the correlation id.
    dump = "\n".join(f"    000000  {wire.hex(' ')}" for wire in (REQUEST, other, RESPONSE))
    titles = [
        line for line in run("decode", stdin=dump.encode()).stdout.splitlines() if " v" in line and "  " not in line
    ]
    assert [title.split(" v")[0] for title in titles] == ["Produce request", "Metadata request", "Produce response"]


def test_record_batches_are_opened(run: Hmb) -> None:
    output = meanings(run("decode", stdin=REQUEST).stdout)
    assert "batches[0].records_count: int32 = 2" in output
    assert "batches[0].records[1].value: bytes = b'good night'" in output


def test_several_requests(run: Hmb) -> None:
    output = run("decode", stdin=REQUEST + bytes.fromhex(METADATA)).stdout
    assert [line for line in output.splitlines() if "request" in line] == [
        "Produce request v9, 168 bytes",
        "Metadata request v1, 26 bytes",
    ]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_records_alone(run: Hmb, magic: int, codec: Codec) -> None:
    data = encode_batch(RECORDS, codec=codec) if magic == 2 else encode_message_set(RECORDS, magic, codec)
    output = run("decode", "--records", stdin=data.hex()).stdout
    assert output == run("decode", stdin=data.hex()).stdout  # The command recognizes records by their CRC.
    assert f"records, {len(data)} bytes" in output
    assert f"b'{'v' * 50}'" in output


def test_an_answer_without_its_request(run: Hmb) -> None:
    mistake = run("decode", stdin=RESPONSE, exit_code=2).stderr
    assert "not a request" in mistake
    assert "--api and --version; they could be Produce v9" in mistake
    decoded = run("decode", "--response", "--api", "produce", "--version", "9", stdin=RESPONSE).stdout
    assert decoded == run("decode", "--api", "0", "--version", "9", stdin=RESPONSE).stdout
    assert decoded.startswith("Produce response v9, 77 bytes\n")
    assert "they could be Produce v9" in run("decode", "--response", stdin=RESPONSE, exit_code=2).stderr


def test_an_answer_in_another_version(run: Hmb) -> None:
    result = run("decode", "--api", "Produce", "--version", "8", stdin=RESPONSE, exit_code=5)
    problem = "the field's length is 138087, but only 65 bytes are left"
    assert f"ProduceResponse.responses in version 8, byte 8 of 77: {problem}" in result.stderr


def test_a_response_with_additional_bytes(run: Hmb) -> None:
    longer = (len(RESPONSE) - 2).to_bytes(4, "big") + RESPONSE[4:] + b"\0\0"
    result = run("decode", "--api", "Produce", "--version", "9", stdin=longer, exit_code=5)
    assert "byte 77: 2 bytes are left after the message" in result.stderr


@pytest.mark.parametrize("length", range(1, len(REQUEST)))
def test_a_cut_request_is_shown_up_to_the_cut(run: Hmb, length: int) -> None:
    result = run("decode", stdin=REQUEST[:length], exit_code=5)
    complete_lines, shown = (
        # The comparison leaves out values, because a value may be after the cut.
        [line.partition(" = ")[0] for line in output.splitlines()[1:]]
        for output in (run("decode", stdin=REQUEST).stdout, result.stdout)
    )
    until = next((number for number, line in enumerate(shown) if "unreadable" in line or "cut" in line), len(shown))
    assert shown[:until] == complete_lines[:until]
    assert until >= sum(int(line[:6], 16) <= length for line in complete_lines) - 2
    assert "damage found" in result.stderr


def test_a_crc_that_is_wrong(run: Hmb) -> None:
    result = run("decode", stdin=REQUEST.replace(b"night", b"nigth"), exit_code=5)
    assert "byte 68: the batch's CRC is 0x6b6cc897, but the CRC of its bytes is" in result.stderr
    assert "b'good nigth'" in result.stdout


def test_zeros_are_one_message(run: Hmb) -> None:
    result = run("decode", "00 " * 1000, exit_code=5)
    assert result.stdout.splitlines()[0] == "Produce request v0, 1000 bytes"
    assert "damage found in 1 place" in result.stderr


def test_an_api_that_is_not_known(run: Hmb) -> None:
    result = run("decode", "0000000c 7fff 0002 00000007 0002 6d65", exit_code=1)
    assert "header.client_id: string = 'me'" in result.stdout
    assert "the API with key 32767 is not supported" in result.stderr


def test_a_version_that_is_not_known(run: Hmb) -> None:
    result = run("decode", "0000000c 0012 7fff 00000007 0002 6d65", exit_code=1)
    assert "ApiVersions version 32767 is not supported; supported versions: 0 to " in result.stderr


def test_json(run: Hmb) -> None:
    output = run("decode", "--json", str(GOLDEN / "produce_v9_kafka-python-2.8.txt")).stdout
    request, response = map(json.loads, output.splitlines())
    assert (request["type"], request["api"], request["version"], request["size"]) == ("request", "Produce", 9, 168)
    assert request["header"]["client_id"] == "kafka-python"
    (batch,) = request["body"]["topic_data"][0]["partition_data"][0]["records"]
    assert [record["value"] for record in batch["records"]] == ["good morning", "good night"]
    assert "".join(field["bytes"] for field in request["fields"]) == REQUEST.hex()
    assert request["fields"][1] == {
        "position": 4,
        "size": 2,
        "field": "header.api_key",
        "value": 0,
        "data_type": "int16",
        "bytes": "0000",
        "is_inside": False,
    }
    assert response["body"]["responses"][0]["name"] == "greetings-kafka-python-2.8"
    assert response["problems"] == []


def test_json_of_damage(run: Hmb) -> None:
    (document,) = map(json.loads, run("decode", "--json", stdin=REQUEST[:60], exit_code=5).stdout.splitlines())
    assert "body" not in document
    assert "byte 35 of 60" in document["problems"][0]


def test_apis_and_files_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("decode", "sniff"):
        assert complete(f"hmb {command} --api offsetc", monkeypatch) == ["plain,OffsetCommit"]
    assert complete("hmb decode fra", monkeypatch) == ["file,fra"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "exit_code", "message"),
    [
        (["nosuch.bin"], b"", 3, "nosuch.bin: neither a file nor hexadecimal digits"),
        (["00", "xy"], b"", 2, "line 1: 'x' is not a hexadecimal digit"),
        (["000"], b"", 2, "3 hexadecimal digits are not a whole number of bytes"),
        ([], b"", 1, "standard input is empty"),
        ([], b"\n \n", 1, "it contains no bytes"),
        ([], b"\0" * (MAX_INPUT + 1), 1, "hmb dump-log"),
        (["--api", "Prodduce", "00"], b"", 2, "did you mean Produce?"),
        (["--api", "999", "00"], b"", 2, "HMB has no API '999'"),
        (["--version", "3", "00"], b"", 2, "--version needs --api"),
        (["--api", "Produce", "--version", "99", "00"], b"", 2, "HMB knows versions 0 to "),
        (["--records", "--response", "00"], b"", 2, "--records cannot be combined with"),
    ],
)
def test_mistakes(run: Hmb, arguments: list[str], stdin: bytes, exit_code: int, message: str) -> None:
    assert message in run("decode", *arguments, stdin=stdin, exit_code=exit_code).stderr
