"""Tests of errors: each error is one line with its position, and each kind of error has its own exit code."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hmb

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "stdin", "exit_code", "message"),
    [
        (["consume", "t", "-b", NOBODY], "", 4, f"hmb: nobody listens on {NOBODY}; start a broker with `hmb broker`"),
        (["produce", "t", "-b", NOBODY], "x", 4, f"hmb: nobody listens on {NOBODY}"),
        (["topics", "list", "-b", NOBODY], "", 4, f"hmb: nobody listens on {NOBODY}"),
        (["topics", "create", "t", "-b", "nowhere.invalid"], "", 4, "hmb: nowhere.invalid is not the name of a known"),
        (["consume", "t", "-b", "127.0.0.1:abc"], "", 2, "'127.0.0.1:abc' is not an address: write host:port"),
        (["consume"], "", 2, "Missing argument 'TOPIC'"),
        (["consume", "t", "-o", "middle"], "", 2, "'middle': the value must begin with start, end, stored"),
        (["consume", "t", "-o", str(2**63)], "", 2, "does not fit into an offset (64 bits)"),
        (["consume", "t", "-K", r"\q"], "", 2, r"'\q' is not an escape; the escapes are \t, \n, \r, \0, \xHH, \\"),
        (["produce", "t", "-K", r"\x1"], "", 2, r"'\x' is not an escape"),
        (["consume", "t", "-o", "1", "--from-beginning"], "", 2, "cannot be combined"),
        (["consume", "t", "-K", ":", "--json"], "", 2, "cannot be combined"),
        (["produce", "t", "-K", ":", "--json"], "", 2, "cannot be combined"),
        (["produce", "t", "-z", "rar"], "", 2, "'rar' is not one of"),
        (["topics", "create", "t", "--partitions", "0"], "", 2, "0 is not in the range"),
        (["topics", "create", "t", "--config", "retention"], "", 2, "'retention' is not of the form name=value"),
        (["broker", "-X", "broker.id"], "", 2, "'broker.id' is not of the form name=value"),
        (
            ["broker", "-X", "broker.id=x", "--port", "0"],
            "",
            2,
            "hmb: -X broker.id=x: the value must be a whole number",
        ),
        (["broker", "-X", "log.dirs="], "", 2, "hmb: -X log.dirs=: name one directory"),
        (["broker", "-X", "log.dirs=a,b"], "", 2, "hmb: -X log.dirs=a,b: name one directory"),
        (["broker", "--data-dir", ""], "", 2, "Invalid value for '--data-dir': the path is empty"),
        (["broker", "--config", ""], "", 2, "Invalid value for '--config': the path is empty"),
        (["broker", "--host", ""], "", 2, "Invalid value for --host: it is empty"),
        (["broker", "--host", "no.such.invalid", "--port", "0"], "", 1, "hmb: cannot resolve 'no.such.invalid'"),
        (["demo", "--data-dir", ""], "", 2, "Invalid value for '--data-dir': the path is empty"),
        (["broker", "--port", "65536"], "", 2, "65536 is not in the range"),
        (["broker", "--port", "abc"], "", 2, "'abc' is not a valid integer"),
        (["broker", "--config", "/no/such/file"], "", 3, "hmb: /no/such/file: No such file or directory"),
    ],
)
def test_without_a_broker(run: Hmb, arguments: list[str], stdin: str, exit_code: int, message: str) -> None:
    result = run(*arguments, stdin=stdin, exit_code=exit_code)
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "bad\udcff", "x" * 250])
@pytest.mark.parametrize(
    "command", [["produce"], ["consume"], ["topics", "create"], ["topics", "describe"], ["topics", "delete"]]
)
def test_an_illegal_name_of_a_topic_is_a_usage_error_without_a_broker(run: Hmb, command: list[str], name: str) -> None:
    result = run(*command, name, "-b", NOBODY, exit_code=2)
    rule = "a topic name consists of 1 to 249 letters, digits, '.', '_' or '-', and must not be '.' or '..'"
    assert f"{name!r} is not a topic name; {rule}" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"timestamp": 10**23}, '"timestamp" is 100000000000000000000000; it must be in ms since 1970'),
        ({"timestamp": 2**63 - 1}, '"timestamp" is 9223372036854775807; it must be in ms since 1970'),
        ({"timestamp": -5}, '"timestamp" is -5; it must be in ms since 1970, or -1 for no timestamp'),
        ({"timstamp": 5}, 'unknown field "timstamp"; did you mean \'timestamp\'?'),
        ({"xyz": 5}, 'unknown field "xyz"; the names are topic, partition, offset'),
        ({"headers": [{"key": "h", "valeu": "x"}]}, 'unknown field "valeu"; did you mean \'value\'?'),
        ({"key": "k", "key_base64": "aw=="}, '"key" and "key_base64" cannot be combined'),
        ({"value_base64": "eA=="}, '"value" and "value_base64" cannot be combined'),
        ({"key_base64": "a"}, '"key_base64" is not in base64'),
        ({"key_base64": 5}, '"key_base64" is not in base64'),
        ({"key": "\ud800"}, '"key" contains an incomplete character: "\\ud800" is one half'),
        ({"headers": [{"key": "\ud800"}]}, '"key" contains an incomplete character: "\\ud800" is'),
    ],
)
def test_a_field_that_means_nothing_is_named_with_its_line(
    run: Hmb, servers: str, line: dict[str, object], message: str
) -> None:
    lines = '{"value": "x"}\n' + json.dumps({"value": "x"} | line)
    result = run("produce", "fields", "--json", "-b", servers, stdin=lines, exit_code=1)
    assert result.stderr.startswith("1 record sent to fields in ")
    assert f"hmb: standard input, line 2: {message}" in result.stderr


def test_json_that_is_nested_too_deeply(run: Hmb, servers: str) -> None:
    result = run("produce", "t", "--json", "-b", servers, stdin="[" * 200_000, exit_code=1)
    assert "hmb: standard input, line 1: the JSON is nested too deeply" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "exit_code", "message"),
    [
        (
            ["consume", "nowhere", "--no-wait"],
            "",
            3,
            "hmb: there is no topic 'nowhere'; `hmb topics list` and `hmb topics describe` show what exists",
        ),
        (["topics", "describe", "nowhere"], "", 3, "hmb: there is no topic 'nowhere'"),
        (["topics", "delete", "nowhere"], "", 3, "hmb: there is no topic 'nowhere'"),
        (["topics", "delete", "nowhere", "neither"], "", 3, "'nowhere'; there is no topic 'neither'"),
        (["topics", "create", "wide", "--replication-factor", "3"], "", 1, "(INVALID_REPLICATION_FACTOR)"),
        (["topics", "create", "odd", "--config", "no.such=1"], "", 1, "(INVALID_CONFIG)"),
        (["produce", "t", "-p", "3"], "x", 3, "line 1: topic 't' has no partition 3"),
        (["produce", "t", "--json"], "{}\n", 1, 'hmb: standard input, line 1: the object has neither "value"'),
        (
            ["produce", "t", "--json"],
            '{"value": "x"}\nnonsense\n',
            1,
            "hmb: standard input, line 2: not JSON: Expecting value at column 1",
        ),
        (
            ["produce", "t", "--json"],
            "{bad\n",
            1,
            "line 1: not JSON: Expecting property name enclosed in double quotes at column 2",
        ),
        (["produce", "t", "--json"], '{"value": 5}\n', 1, '"value" is 5, not a string or null'),
        (["produce", "t", "--json"], '{"value": "", "headers": [1]}\n', 1, '"headers" is not a list of'),
        (["produce", "t", "--json"], '{"value": "", "timestamp": "now"}\n', 1, "not milliseconds since 1970"),
        (["produce", "t", "--json"], '{"value": "", "partition": true}\n', 1, '"partition" is true, not the number of'),
        (["produce", "t", "--json"], '{"value": "", "partition": 3}\n', 3, "line 1: topic 't' has no partition 3"),
        (["produce", "t", "--json"], '{"value": "", "partition": -1}\n', 3, "line 1: topic 't' has no partition -1"),
        (["produce", "t", "--json"], b'{"value": "\xff"}\n', 1, "line 1: not UTF-8 JSON: byte 12 is 0xff"),
        (["produce", "t", "--json"], b"\xff\xfe\n", 1, "hmb: standard input, line 1: not UTF-8 JSON: byte 1 is 0xff"),
    ],
)
def test_with_a_broker(run: Hmb, servers: str, arguments: list[str], stdin: str, exit_code: int, message: str) -> None:
    result = run(*arguments, "-b", servers, stdin=stdin, exit_code=exit_code)
    assert message in result.stderr
    assert result.stdout == ""


def test_an_offset_that_does_not_exist(run: Hmb, servers: str) -> None:
    run("produce", "short", "-p", "0", "-b", servers, stdin="x\n")
    result = run("consume", "short", "-p", "0", "-o", "9", "-b", servers, exit_code=1)
    assert result.stderr == "hmb: short-0 has no offset 9; it starts at 0 and ends before 1 (OFFSET_OUT_OF_RANGE)\n"


def test_a_missing_offset_is_not_an_empty_topic(run: Hmb, servers: str) -> None:
    run("produce", "shorter", "-p", "0", "-b", servers, stdin="x\n")
    result = run("consume", "shorter", "-p", "0", "-o", "9", "-e", "-b", servers, exit_code=1)
    range_ = run("consume", "shorter", "-p", "0", "-o", "9:20", "-b", servers, exit_code=1)
    assert range_.stderr == result.stderr
    assert result.stderr == "hmb: shorter-0 has no offset 9; it starts at 0 and ends before 1 (OFFSET_OUT_OF_RANGE)\n"


def test_a_record_that_is_too_large_is_refused_with_its_line_and_the_limit(run: Hmb, servers: str) -> None:
    lines = b"small\n" + b"x" * 10_000_000 + b"\nnever read\n"
    result = run("produce", "large", "-p", "0", "-b", servers, stdin=lines, exit_code=1)
    tally, error = result.stderr.splitlines()
    assert tally.startswith("1 record sent to large in ")
    assert tally.endswith(" s; 1 not sent, from line 2 on")
    assert error.startswith(
        "hmb: standard input, line 2: a batch of this record alone has 10,000,081 bytes, which is more than max"
    )
    assert ", 1,048,576 bytes: split it, or raise that" in error
    assert "here: -X max.request.size=..., `hmb topics alter large --config max.message.bytes=...` (MESS" in error
    assert run("consume", "large", "-e", "-b", servers).stdout == "small\n"


def test_a_record_that_the_broker_refuses_is_named_by_its_line(run: Hmb, servers: str) -> None:
    run("topics", "create", "narrow", "--config", "max.message.bytes=200000", "-b", servers)
    lines = b"".join(b"%d" % number * 50_000 + b"\n" for number in range(10, 13)) + b"x" * 300_000
    result = run("produce", "narrow", "-p", "0", "-b", servers, stdin=lines, exit_code=1)
    assert "3 records sent to narrow" in result.stderr
    assert "hmb: standard input, line 4: narrow-0: " in result.stderr
    assert "; `hmb topics alter narrow --config max.message.bytes=...` raises that (MESSAGE_TOO_LARGE)" in result.stderr


def test_a_line_that_does_not_end_is_not_read_to_its_end(run: Hmb, servers: str) -> None:
    endless = b"first\n\n" + b"\0" * 17 * 2**20
    result = run("produce", "endless", "-b", servers, stdin=endless, exit_code=1)
    assert "2 records sent to endless" in result.stderr
    assert "hmb: standard input, line 3: more than 16,777,216 bytes; is the input text?" in result.stderr


def test_a_topic_that_is_there(run: Hmb, servers: str) -> None:
    run("topics", "create", "twice", "-b", servers)
    error = run("topics", "create", "twice", "-b", servers, exit_code=1).stderr
    hint = "--if-not-exists accepts an existing topic (TOPIC_ALREADY_EXISTS)"
    assert error == f"hmb: topic 'twice' already exists; {hint}\n"
    run("topics", "create", "twice", "--if-not-exists", "-b", servers)


def test_damage_in_the_log(run: Hmb, tmp_path: Path) -> None:
    import hmb

    with hmb.Broker(tmp_path) as broker:
        run("produce", "hurt", "-b", broker.bootstrap_servers, stdin="hello\n")
        log = tmp_path / "hurt-0" / f"{0:020}.log"
        data = bytearray(log.read_bytes())
        data[-3] ^= 1
        log.write_bytes(data)
        result = run("consume", "hurt", "-e", "-b", broker.bootstrap_servers, exit_code=5)
    assert result.stderr.startswith("hmb: hurt-0, batch that ends at offset 0: ")
    assert json.dumps(result.stdout) == '""'
