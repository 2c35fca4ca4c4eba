"""Every mistake gets one line, which says what and where, and an exit code of its own."""

import json
from pathlib import Path

import pytest

from .conftest import Hmb

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
        (["consume", "t", "-o", "middle"], "", 2, "'middle' is none of: earliest, latest"),
        (["consume", "t", "-o", "1", "--from-beginning"], "", 2, "exclude each other"),
        (["consume", "t", "-K", ":", "--json"], "", 2, "exclude each other"),
        (["produce", "t", "-K", ":", "--json"], "", 2, "exclude each other"),
        (["produce", "t", "-z", "rar"], "", 2, "'rar' is not one of"),
        (["topics", "create", "t", "--partitions", "0"], "", 2, "0 is not in the range"),
        (["topics", "create", "t", "--config", "retention"], "", 2, "'retention' is not of the form name=value"),
        (["broker", "-X", "broker.id"], "", 2, "'broker.id' is not of the form name=value"),
        (["broker", "-X", "broker.id=x", "--port", "0"], "", 2, "hmb: -X broker.id=x: must be a whole number"),
        (["broker", "-X", "log.dirs="], "", 2, "hmb: -X log.dirs=: name one directory"),
        (["broker", "-X", "log.dirs=a,b"], "", 2, "hmb: -X log.dirs=a,b: name one directory"),
        (["broker", "--data-dir", ""], "", 2, "Invalid value for '--data-dir': the path is empty"),
        (["broker", "--config", ""], "", 2, "Invalid value for '--config': the path is empty"),
        (["broker", "--host", ""], "", 2, "Invalid value for --host: it is empty"),
        (["broker", "--host", "no.such.invalid", "--port", "0"], "", 1, "hmb: cannot resolve 'no.such.invalid'"),
        (["demo", "--data-dir", ""], "", 2, "Invalid value for '--data-dir': the path is empty"),
        (["broker", "--port", "65536"], "", 2, "65536 is not in the range"),
        (["broker", "--port", "abc"], "", 2, "'abc' is not a valid integer."),
        (["broker", "--config", "/no/such/file"], "", 3, "hmb: /no/such/file: No such file or directory"),
    ],
)
def test_without_a_broker(run: Hmb, arguments: list[str], stdin: str, exit_code: int, message: str) -> None:
    result = run(*arguments, stdin=stdin, exit_code=exit_code)
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "stdin", "exit_code", "message"),
    [
        (["consume", "nowhere"], "", 3, "hmb: there is no topic 'nowhere'; `hmb topics list` shows what there is"),
        (["topics", "describe", "nowhere"], "", 3, "hmb: there is no topic 'nowhere'"),
        (["topics", "delete", "nowhere"], "", 3, "hmb: there is no topic 'nowhere'"),
        (["topics", "delete", "nowhere", "neither"], "", 3, "'nowhere'; there is no topic 'neither'"),
        (["topics", "create", "a/b"], "", 1, "(INVALID_TOPIC_EXCEPTION)"),
        (["topics", "create", "wide", "--replication-factor", "3"], "", 1, "(INVALID_REPLICATION_FACTOR)"),
        (["topics", "create", "odd", "--config", "no.such=1"], "", 1, "(INVALID_CONFIG)"),
        (["produce", "a/b"], "x", 1, "(INVALID_TOPIC_EXCEPTION)"),
        (["produce", "t", "-p", "3"], "x", 3, "hmb: topic 't' has no partition 3"),
        (["produce", "t", "--json"], "{}\n", 1, 'hmb: standard input, line 1: no "value"'),
        (["produce", "t", "--json"], '{"value": "x"}\nnonsense\n', 1, "hmb: standard input, line 2: Expecting value"),
        (["produce", "t", "--json"], '{"value": 5}\n', 1, '"value" is 5, not a string or null'),
        (["produce", "t", "--json"], '{"value": "", "headers": [1]}\n', 1, '"headers" is not a list of'),
        (["produce", "t", "--json"], '{"value": "", "timestamp": "now"}\n', 1, "not milliseconds since 1970"),
        (["produce", "t", "--json"], '{"value": "", "partition": true}\n', 1, '"partition" is true, not the number of'),
        (["produce", "t", "--json"], '{"value": "", "partition": 3}\n', 3, "hmb: topic 't' has no partition 3"),
        (["produce", "t", "--json"], '{"value": "", "partition": -1}\n', 3, "hmb: topic 't' has no partition -1"),
        (["produce", "t", "--json"], b'{"value": "\xff"}\n', 1, "hmb: standard input, line 1: "),
    ],
)
def test_with_a_broker(run: Hmb, servers: str, arguments: list[str], stdin: str, exit_code: int, message: str) -> None:
    result = run(*arguments, "-b", servers, stdin=stdin, exit_code=exit_code)
    assert message in result.stderr
    assert result.stdout == ""


def test_an_offset_that_is_not_there(run: Hmb, servers: str) -> None:
    run("produce", "short", "-p", "0", "-b", servers, stdin="x\n")
    result = run("consume", "short", "-p", "0", "-o", "9", "-b", servers, exit_code=1)
    assert result.stderr == "hmb: short-0 has no offset 9; it starts at 0 and ends before 1 (OFFSET_OUT_OF_RANGE)\n"


def test_a_topic_that_is_there(run: Hmb, servers: str) -> None:
    run("topics", "create", "twice", "-b", servers)
    assert "(TOPIC_ALREADY_EXISTS)" in run("topics", "create", "twice", "-b", servers, exit_code=1).stderr
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
