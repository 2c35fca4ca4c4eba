"""Tests of `hmb produce`: its input, the records that it sends, its counts, and its errors."""

import json
import os
import pty
import re
import signal
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hmb.client import Consumer, ConsumerRecord, Producer
from tests.cli.conftest import Hmb, start

NAMES = (f"sent{number}" for number in count())
NOBODY = "127.0.0.1:1"


@pytest.fixture
def topic() -> str:
    return next(NAMES)


def records(servers: str, topic: str) -> list[ConsumerRecord]:
    return list(Consumer(servers, topic, until="end"))


@pytest.mark.parametrize(
    ("options", "stdin", "expected"),
    [
        (["-K", ":"], b"k:v\nv", [(b"k", b"v", ()), (None, b"v", ())]),
        (["-K", ":", "-k", "fixed"], b"k:v\nv", [(b"k", b"v", ()), (b"fixed", b"v", ())]),
        (["-K", ":", "-Z"], b"k:\n:v\n", [(b"k", None, ()), (None, b"v", ())]),
        (["-D", ";"], b"a\n;b;", [(None, b"a\n", ()), (None, b"b", ())]),
        (["-D", r"\0", "-c", "1"], b"a\0b\0", [(None, b"a", ())]),
        (["-H", "a=1", "-H", "b=", "-H", "c"], b"v", [(None, b"v", (("a", b"1"), ("b", b""), ("c", None)))]),
        (["-H", "a=1"], b"v\nw", [(None, b"v", (("a", b"1"),)), (None, b"w", (("a", b"1"),))]),
        (["--property", "parse.key=true"], b"k\tv", [(b"k", b"v", ())]),
        (
            ["--property=parse.headers=true", "--reader-property=null.marker=NULL", "-H", "z=9"],
            b"a:1\tNULL\n\tv",
            [(None, None, (("z", b"9"), ("a", b"1"))), (None, b"v", (("z", b"9"),))],
        ),
        (["--json", "-k", "k"], b'{"value":"v"}\n\n{"value":null,"key":"own"}', [(b"k", b"v", ()), (b"own", None, ())]),
        (["-k", ""], b"v", [(b"", b"v", ())]),
        (["--rate", "1000000/s"], b"1\n2\n3\n", [(None, b"1", ()), (None, b"2", ()), (None, b"3", ())]),
        (["--acks", "0", "-z", "gzip", "--partitioner", "hash", "-X", "linger.ms=0"], b"1", [(None, b"1", ())]),
    ],
)
def test_lines_become_records(
    run: Hmb, servers: str, topic: str, options: list[str], stdin: bytes, expected: list[tuple[object, ...]]
) -> None:
    run("topics", "create", topic, "--partitions", "1", "-b", servers)
    result = run("produce", topic, *options, "-b", servers, stdin=stdin)
    sent = len(expected)
    assert result.stderr.startswith(f"{sent} record{'s' * (sent != 1)} sent to {topic} in ")
    assert [(it.key, it.value, it.headers) for it in records(servers, topic)] == expected


def test_files_are_values_or_have_lines(run: Hmb, servers: str, topic: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"1\n2\n")
    second.write_bytes(b"\xff")
    run("produce", topic, str(first), str(second), "-p", "0", "-b", servers)
    run("produce", "-t", topic, "-l", str(first), str(second), "-p", "0", "-b", servers)
    run("produce", topic, "-k", "stdin", "-p", "0", "-", str(second), "-b", servers, stdin="3\n4\n")
    values = [it.value for it in records(servers, topic)]
    assert values == [b"1\n2\n", b"\xff", b"1", b"2", b"\xff", b"3", b"4", b"\xff"]


def test_a_line_of_a_file_is_named_with_the_file(run: Hmb, servers: str, topic: str, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"value": "1"}\n')
    bad.write_text('{"value": "2"}\n{"value": 3}\n{"value": "4"}\n')
    result = run("produce", topic, "--json", str(good), str(bad), "-p", "0", "-b", servers, exit_code=1)
    tally, error = result.stderr.splitlines()
    assert tally.startswith(f"2 records sent to {topic} in ")
    assert error == f'hmb: {bad}, line 2: "value" is 3, not a string or null'
    assert [it.value for it in records(servers, topic)] == [b"1", b"2"]


def test_a_file_that_is_too_large_or_not_there(run: Hmb, servers: str, topic: str, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(bytes(2_000_000))
    error = run("produce", topic, str(large), "-b", servers, exit_code=1).stderr.splitlines()[-1]
    assert error.startswith(f"hmb: {large}: ") and "(MESSAGE_TOO_LARGE)" in error
    result = run("produce", topic, str(tmp_path / "none"), "-b", servers, exit_code=3)
    assert result.stderr.splitlines()[-1] == f"hmb: {tmp_path / 'none'}: No such file or directory"
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(2**30)
    error = run("produce", topic, str(huge), "-b", servers, exit_code=1).stderr.splitlines()[-1]
    assert error == f"hmb: {huge}: longer than 16,777,216 bytes; -l sends it line by line"


def test_input_that_cannot_be_read(run: Hmb, servers: str, topic: str, tmp_path: Path) -> None:
    with (tmp_path / "write-only").open("wb") as stdin:
        process = start("produce", topic, "-b", servers, stdin=stdin)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert errors.endswith(b"\nhmb: standard input: Bad file descriptor\n")
    result = run("produce", topic, str(tmp_path), "-b", servers, exit_code=1)
    assert result.stderr.splitlines()[-1] == f"hmb: {tmp_path}: Is a directory"


def test_a_rate_slows_the_command_down(run: Hmb, servers: str, topic: str) -> None:
    result = run("produce", topic, "--rate", "20/s", "-b", servers, stdin="x\n" * 5)
    seconds = re.search(r"5 records sent to \S+ in ([\d.]+) s", result.stderr)
    # The command sends 2, 2 and 1 records, with a pause after the first and the second group.
    assert seconds is not None and float(seconds[1]) >= 0.1


def test_many_lines_in_order_and_counted(run: Hmb, servers: str, topic: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(100_000))
    result = run("produce", topic, "-p", "0", "-b", servers, stdin=lines)
    assert result.stderr.startswith(f"100000 records sent to {topic} in ")
    assert run("consume", topic, "-e", "-p", "0", "-b", servers).stdout_bytes == lines


def test_which_line_of_many_the_broker_refuses(run: Hmb, servers: str, topic: str) -> None:
    """`hmb produce` names the line that the broker refuses, and counts the records that the topic contains.

    The line in the middle of the input is longer than `max.message.bytes`. All other lines are short.
    """
    run("topics", "create", topic, "--partitions", "1", "--config", "max.message.bytes=100000", "-b", servers)
    lines = b"short\n" * 1000 + b"x" * 200_000 + b"\n" + b"short\n" * 1000
    result = run("produce", topic, "-b", servers, stdin=lines, exit_code=1)
    tally, error = result.stderr.splitlines()
    sent = re.fullmatch(r"(\d+) records? sent to \S+ in [\d.]+ s; (\d+) not sent, from line (\d+) on", tally)
    assert sent is not None
    found = records(servers, topic)
    assert int(sent[1]) == len(found) and all(it.value == b"short" for it in found)
    assert error.startswith("hmb: standard input, line ") and "(MESSAGE_TOO_LARGE)" in error


def test_the_guilty_line_among_thousands(run: Hmb, servers: str, topic: str, tmp_path: Path) -> None:
    """The error of `hmb produce` names the one wrong line among 10,000.

    The broker's response names the refused record of a batch (KIP-467).
    """
    run("topics", "create", topic, "--partitions", "1", "--config", "cleanup.policy=compact", "-b", servers)
    lines = "".join("no key\n" if number == 5000 else f"key{number}:x\n" for number in range(10_000))
    result = run("produce", topic, "-K", ":", "-b", servers, stdin=lines, exit_code=1)
    tally, error = result.stderr.splitlines()
    assert error.startswith("hmb: standard input, line 5001: ") and "(INVALID_RECORD)" in error, result.stderr
    counts = re.match(r"(\d+) records sent to \S+ in [\d.]+ s; (\d+) not sent, from line (\d+) on", tally)
    assert counts is not None
    sent, lost, first = map(int, counts.groups())
    found = [int((it.key or b"").removeprefix(b"key")) for it in records(servers, topic)]
    assert len(found) == sent and lost > 0 and first - 1 not in found
    file = tmp_path / "lines"
    file.write_text("a:1\nno key\n")
    result = run("produce", topic, "-K", ":", str(file), "-b", servers, exit_code=1)
    assert f"hmb: {file}, line 2: " in result.stderr


def test_ctrl_c_while_records_are_handed_over_leaves_none_uncounted(
    run: Hmb, servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C, the count of sent records is correct.

    Before a bug was fixed, the log contained the records, but `hmb produce` reported them as not sent.
    """
    send_many = Producer.send_many

    def and_ctrl_c(*arguments: Any) -> object:
        sent = send_many(*arguments)
        signal.raise_signal(signal.SIGINT)
        return sent

    monkeypatch.setattr(Producer, "send_many", and_ctrl_c)
    result = run("produce", topic, "-b", servers, stdin="x\n" * 1000, exit_code=130)
    assert re.fullmatch(rf"1000 records sent to {topic} in [\d.]+ s\n", result.stderr)
    assert len(records(servers, topic)) == 1000


def test_nothing_to_send(run: Hmb, servers: str, topic: str) -> None:
    assert run("produce", topic, "-b", servers).stderr.startswith(f"0 records sent to {topic} in ")
    result = run("produce", topic, "-b", NOBODY, stdin="never\n", exit_code=4)
    # No broker has received the record, so it was not sent.
    assert result.stderr.splitlines()[0].endswith("; 1 not sent, from line 1 on")
    result = run("produce", topic, "-b", NOBODY, exit_code=4)
    assert result.stderr.splitlines()[-1].startswith(f"hmb: nobody listens on {NOBODY}; start a broker")


def test_quiet(run: Hmb, servers: str, topic: str) -> None:
    assert run("produce", topic, "-q", "-b", servers, stdin="x").stderr == ""


def test_options_override_a_configuration_file(run: Hmb, servers: str, topic: str, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(f"bootstrap.servers={servers}\nacks=1\ncompression.type=rar\nsecurity.protocol=PLAINTEXT\n")
    result = run("produce", topic, "--config", str(config), stdin="x", exit_code=2)
    assert result.stderr.startswith("hmb: compression must be one of none, gzip")
    run("produce", topic, "--producer.config", str(config), "-z", "lz4", stdin="x")
    assert [it.value for it in records(servers, topic)] == [b"x"]
    config.write_text("linger.ms=soon\n")
    result = run("produce", topic, "--config", str(config), "-b", servers, stdin="x", exit_code=2)
    assert result.stderr == f"hmb: {config}: linger.ms=soon: the value must be a number\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Missing argument 'TOPIC'"),
        (["t", "-Z", "--json"], "--null and --json cannot be combined; JSON has null"),
        (["t", "-K", ":", "--property", "parse.key=true"], "--key-delimiter and --property cannot be combined"),
        (["t", "--rate", "fast"], "'fast' is not a rate"),
        (["t", "--rate", "0"], "'0' is not a rate"),
        (["t", "-H", "=x"], "'=x' is not of the form name=value"),
        (["t", "--property", "parse.keys=true"], "--property parse.keys: unknown name; the known names are parse.key"),
        (["t", "-X", "acks=2"], "hmb: acks must be 0, 1 or -1 (all), not 2"),
        (["t", "-X", "enable.idempotence=true", "--acks", "1"], "hmb: idempotence needs acks=-1"),
    ],
)
def test_options_that_make_no_sense(run: Hmb, options: list[str], message: str) -> None:
    assert message in " ".join(run("produce", *options, "-b", NOBODY, exit_code=2).stderr.split())


def test_ctrl_c_prints_the_number_of_acknowledged_records(run: Hmb, servers: str, topic: str) -> None:
    run("topics", "create", topic, "-b", servers)
    process = start("produce", topic, "-p", "0", "-b", servers, stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(b"1\n2\n3")
    process.stdin.flush()
    with Consumer(servers, topic) as consumer:
        found = 0
        while found < 2:
            found += len(consumer.poll(1.0))
    process.send_signal(signal.SIGINT)
    errors = process.stderr.read()
    assert process.wait(60) == 130
    assert errors.startswith(b"2 records sent to ")


def test_json_keeps_the_partitions_and_the_order_in_them(run: Hmb, servers: str, topic: str) -> None:
    lines = [json.dumps({"value": str(number), "partition": number % 3}) for number in range(3000)]
    run("topics", "create", topic, "--partitions", "3", "-b", servers)
    run("produce", topic, "--json", "-b", servers, stdin="\n".join(lines))
    for partition in range(3):
        values = [int(it.value) for it in records(servers, topic) if it.partition == partition]
        assert values == list(range(partition, 3000, 3))


def test_the_error_for_a_missing_partition_recommends_partition_minus_1(run: Hmb, servers: str, topic: str) -> None:
    """The error for a partition that does not exist recommends the option `-p -1`.

    With this option, the key selects the partition, and the partition in each line is ignored.
    """
    run("topics", "create", topic, "-p", "2", "-b", servers)
    lines = "".join(json.dumps({"key": "k", "value": str(n), "partition": n % 4}) + "\n" for n in range(8))
    result = run("produce", topic, "--json", "-b", servers, stdin=lines, exit_code=3)
    error = result.stderr.splitlines()[-1]
    assert f"topic '{topic}' has no partition 2" in error
    assert "; `-p -1` sends each record to the partition of its key; " in error
    run("produce", f"{topic}-all", "--json", "-p", "-1", "-b", servers, stdin=lines)
    found = records(servers, f"{topic}-all")
    assert [it.value for it in found] == [b"%d" % n for n in range(8)]
    assert len({it.partition for it in found}) == 1


def terminal_output(process: "subprocess.Popen[bytes]", controller: int) -> str:
    """Return the first line that a process prints on its terminal."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(controller, 1)
    return line.decode().strip()


@pytest.mark.parametrize("options", [[], ["-q"]], ids=["loud", "quiet"])
def test_a_terminal_gets_a_hint_how_to_end(servers: str, topic: str, options: list[str]) -> None:
    controller, terminal = pty.openpty()
    process = start("produce", topic, *options, "-b", servers, stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    if not options:
        assert terminal_output(process, controller) == "type one record a line; Ctrl-D on an empty line ends"
    os.write(controller, b"typed\n")
    os.write(controller, b"\x04")
    assert process.wait(60) == 0
    assert [it.value for it in records(servers, topic)] == [b"typed"]
    os.close(controller)


def committed_values(run: Hmb, servers: str, topic: str) -> list[str]:
    return run("consume", topic, "-e", "--isolation-level", "read_committed", "-b", servers).stdout.split()


def test_one_transaction_around_all(run: Hmb, servers: str, topic: str) -> None:
    produce = ("produce", topic, "-p", "0", "-b", servers)
    assert " and committed\n" in run(*produce, "--transaction", stdin="1\n2\n").stderr
    assert "; their transaction was aborted\n" in run(*produce, "--abort", stdin="3\n").stderr
    assert " and committed\n" in run(*produce, "-X", "transactional.id=mine", stdin="4\n").stderr
    assert committed_values(run, servers, topic) == ["1", "2", "4"]
    assert run("consume", topic, "-e", "-b", servers).stdout.split() == ["1", "2", "3", "4"]


def test_a_transaction_is_aborted_when_a_line_is_wrong(run: Hmb, servers: str, topic: str) -> None:
    lines = '{"value": "1"}\n{"value": 2}\n'
    result = run("produce", topic, "--json", "--transaction", "-b", servers, stdin=lines, exit_code=1)
    tally, error = result.stderr.splitlines()
    assert tally.startswith("1 record sent to ") and tally.endswith("; their transaction was aborted")
    assert error.startswith("hmb: standard input, line 2: ")
    assert committed_values(run, servers, topic) == []


def test_ctrl_c_before_the_commit_aborts_a_transaction(
    run: Hmb, servers: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(producer: Producer, timeout: float | None = None) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(Producer, "flush", interrupted)
    result = run("produce", topic, "--transaction", "-b", servers, stdin="1\n", exit_code=130)
    assert "; their transaction was aborted\n" in result.stderr
    assert committed_values(run, servers, topic) == []
