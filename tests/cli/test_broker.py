"""Tests of `hmb broker`: the sources of the settings, the line that a ready broker prints, and how a broker stops."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Hmb, start


@pytest.mark.parametrize(("sent", "exit_code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_the_broker_prints_its_address_and_stops_cleanly(
    run: Hmb, tmp_path: Path, sent: signal.Signals, exit_code: int
) -> None:
    process = start("broker", "--port", "0", "--data-dir", str(tmp_path))
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    found = re.fullmatch(rf"listening on (127\.0\.0\.1:\d+), data in {tmp_path}\n", line)
    assert found, line
    run("produce", "t", "-b", found[1], stdin="x\n")
    process.send_signal(sent)
    assert process.communicate(timeout=5) == (b"", b"")
    assert process.returncode == exit_code
    assert (tmp_path / ".kafka_cleanshutdown").exists()


CHECKS_FOR_EVER = """
import itertools, sys
from hmb.records.fast.batch_check import CheckedBatch
from hmb.storage.recovery import scanning

def checked_batches(view, base_offset, upper_limit, **options):
    print("checking", flush=True)
    return itertools.repeat((0, CheckedBatch(0, 0, 0, 0, -1, 0)))

scanning.checked_batches = checked_batches
from hmb.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("sent", "exit_code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_checking_of_logs(run: Hmb, tmp_path: Path, sent: signal.Signals, exit_code: int) -> None:
    """A signal ends the broker while it checks its logs.

    Before a bug was fixed, it reacted only after it had checked all logs, so users killed it.
    """
    process = start("broker", "--port", "0", "--data-dir", str(tmp_path), "--json")
    assert process.stdout is not None
    servers = json.loads(process.stdout.readline())["bootstrap_servers"]
    run("produce", "t", "-b", servers, stdin="x\n")
    process.kill()
    process.communicate(timeout=5)
    arguments = [sys.executable, "-c", CHECKS_FOR_EVER, "broker", "--port", "0", "--data-dir", str(tmp_path)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"checking\n"
    process.send_signal(sent)
    error = process.communicate(timeout=5)[1].decode()
    assert error.startswith("hmb: stopped during the check of the logs; the next start checks them again\n")
    assert process.returncode == exit_code
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    process = start("broker", "--port", "0", "--data-dir", str(tmp_path), "--json")
    assert process.stdout is not None
    servers = json.loads(process.stdout.readline())["bootstrap_servers"]
    assert run("consume", "t", "-b", servers, "-e").stdout == "x\n"
    process.terminate()
    assert process.communicate(timeout=5)[1] == b""


def test_the_precedence_of_settings(run: Hmb, tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"num.partitions=2\nlog.dirs={tmp_path}/data\nlisteners=PLAINTEXT://127.0.0.1:1\nnum.partitoins=9\n"
    )
    environment = os.environ | {"HMB_NUM_PARTITIONS": "3", "HMB_LOG_SEGMENT_BYTES": "5000"}
    process = start(
        *("broker", "--config", str(properties), "-X", "num.partitions=4", "--port", "0", "--json"), env=environment
    )
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    assert ready["data_dir"] == str(tmp_path / "data")
    run("topics", "create", "t", "-b", ready["bootstrap_servers"])
    assert "topic t, 4 partitions" in run("topics", "describe", "t", "-b", ready["bootstrap_servers"]).stdout
    process.terminate()
    warning = process.communicate(timeout=5)[1]
    assert warning == b"hmb: unknown setting 'num.partitoins' is ignored, did you mean 'num.partitions'?\n"


@pytest.mark.parametrize("variable", ["HMB_LOG_SEGMENT_BYTES", "HMB_NUM_PARTITIONS", "HMB_NODE_ID"])
def test_an_error_names_a_setting_as_the_user_wrote_it(
    run: Hmb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.setenv(variable, "abc")
    result = run("broker", "--port", "0", exit_code=2)
    assert result.stderr == f"hmb: {variable}=abc: the value must be a whole number\n"
    name = variable.removeprefix("HMB_").lower().replace("_", ".")
    result = run("broker", "--port", "0", "-X", f"{name}=1.5", exit_code=2)
    assert result.stderr == f"hmb: -X {name}=1.5: the value must be a whole number\n"
    monkeypatch.delenv(variable)
    (tmp_path / "properties").write_text(f"{name}=x\n")
    result = run("broker", "--port", "0", "--config", str(tmp_path / "properties"), exit_code=2)
    assert result.stderr == f"hmb: {tmp_path / 'properties'}: {name}=x: the value must be a whole number\n"


def test_a_variable_that_looks_like_a_setting_is_named(run: Hmb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HMB_LOG_SEGMENT_BYTE", "5000")
    result = run("broker", "-X", "broker.id=x", exit_code=2)
    assert "unknown setting 'HMB_LOG_SEGMENT_BYTE' is ignored, did you mean 'HMB_LOG_SEGMENT_BYTES'?" in result.stderr


def test_the_bound_address_and_the_advertised_address_are_printed(tmp_path: Path) -> None:
    """The broker prints both the address on which it listens and the advertised address.

    Before a bug was fixed, the broker printed "listening on" and then the advertised address.
    """
    advertised = ("-X", "advertised.listeners=PLAINTEXT://example.com:1234")
    address = ("--host", "0.0.0.0", "--allow-unauthenticated", "--port", "0")
    process = start("broker", *address, *advertised, "--data-dir", str(tmp_path))
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    process.terminate()
    assert process.communicate(timeout=5)[1] == b""
    expected = rf"listening on 0\.0\.0\.0:\d+, advertised as example\.com:1234, data in {tmp_path}\n"
    assert re.fullmatch(expected, line), line


def test_nohup_lets_the_broker_outlive_its_terminal(tmp_path: Path) -> None:
    arguments = ("broker", "--port", "0", "--data-dir", str(tmp_path))
    process = start(*arguments, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=5)
    assert process.returncode == 130  # After a SIGHUP the exit code would be 0.


def test_an_occupied_port(run: Hmb, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("broker", "--port", str(port), "--data-dir", str(tmp_path), exit_code=1)
    assert result.stderr.startswith(f"hmb: cannot listen on 127.0.0.1:{port}: Address already in use")
    assert "--port" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_broker_that_cannot_start_blocks_no_signals_of_its_process(run: Hmb) -> None:
    """A broker that cannot start does not leave signals blocked.

    Before a bug was fixed, the signals stayed blocked in the process. If the process then started another command,
    Ctrl-C could not stop this command.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    run("broker", "-X", "log.dirs=", exit_code=2)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_data_directory_in_use(run: Hmb, tmp_path: Path) -> None:
    import hmb

    with hmb.Broker(tmp_path):
        result = run("broker", "--port", "0", "--data-dir", str(tmp_path), exit_code=1)
    assert f"{tmp_path} is in use" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_data_directory_that_is_a_file(run: Hmb, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    result = run("broker", "--port", "0", "--data-dir", str(path), exit_code=1)
    assert result.stderr.startswith("hmb: ")
    assert f"{path}: it is a file; choose another" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_is_not_a_properties_file(run: Hmb, tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("a=b\nnum.partitions=\\u12\n")
    result = run("broker", "--config", str(path), exit_code=1)
    assert result.stderr == f"hmb: {path}, line 2: \\u without four hexadecimal digits\n"


def test_a_binary_file_is_not_a_properties_file(run: Hmb, tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(bytes(range(256)))
    assert run("broker", "--config", str(path), exit_code=1).stderr == f"hmb: {path}: the file is not text\n"


def logged(run: Hmb, directory: Path, *options: str) -> list[str]:
    """Run a broker that creates a topic, serves a producer, and deletes the topic. Return the broker's log."""
    process = start("broker", "--port", "0", "--data-dir", str(directory), "--json", *options)
    assert process.stdout is not None
    servers = json.loads(process.stdout.readline())["bootstrap_servers"]
    run("topics", "create", "seen", "-p", "2", "-b", servers)
    run("produce", "seen", "-X", "client.id=me", "-b", servers, stdin="x\n")
    run("produce", "seen", "--acks", "0", "-b", servers, stdin="x\n")
    run("topics", "delete", "seen", "-b", servers)
    process.terminate()
    return process.communicate(timeout=20)[1].decode().splitlines()


def test_verbose_shows_topics_and_connections(run: Hmb, tmp_path: Path) -> None:
    lines = logged(run, tmp_path, "-v")
    for words in ("created topic seen, partitions: 2", "deleted topic seen"):
        assert any(line.endswith(f": {words}") for line in lines), lines
    connected = {line.split()[-2] for line in lines if line.endswith(" connected")}
    disconnected = {line.split()[-2] for line in lines if line.endswith(" disconnected")}
    assert connected == disconnected
    assert len(connected) >= 4
    assert not any(" Produce v" in line for line in lines)
    # Before a bug was fixed, the broker reported each new log as damaged.
    assert not any("damaged" in line for line in lines)


def test_very_verbose_shows_each_request_in_a_line(run: Hmb, tmp_path: Path) -> None:
    lines = logged(run, tmp_path, "-vv")
    produced = [line.partition(" hmb.broker.network.request_log: ")[2] for line in lines if " Produce v" in line]
    answered, silent = (line.partition(" ")[2] for line in produced)
    pattern = r"Produce v\d+ \(\d+\) from 'me': \d+ B, response \d+ B after \d+\.\d ms"
    assert re.fullmatch(pattern, answered), answered
    assert re.fullmatch(r"Produce v\d+ \(\d+\) from 'hmb': \d+ B, no response", silent), silent
    assert sum(" CreateTopics v" in line for line in lines) == 1
    assert any(" DeleteTopics v" in line for line in lines)


def test_without_verbose_the_log_is_empty(run: Hmb, tmp_path: Path) -> None:
    assert logged(run, tmp_path) == []


def test_durations_and_sizes_as_settings(run: Hmb, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("log.retention.hours=2d\nlog.segment.bytes=2MiB\n")
    settings = ("-X", "log.flush.interval.ms=1.5s", "--config", str(config))
    process = start("broker", "--port", "0", "--data-dir", str(tmp_path / "data"), "--json", *settings)
    assert process.stdout is not None
    servers = json.loads(process.stdout.readline())["bootstrap_servers"]
    names = ("log.retention.hours", "log.segment.bytes", "log.flush.interval.ms")
    lines = run("configs", "describe", "--broker", "0", *names, "--json", "-b", servers).stdout.splitlines()
    process.terminate()
    assert process.communicate(timeout=20)[1] == b""
    values = {entry["name"]: entry["value"] for entry in map(json.loads, lines)}
    assert values == dict(zip(names, ("48", str(2 * 2**20), "1500"), strict=True))
    error = run("broker", "-X", "log.retention.hours=90m", exit_code=2).stderr
    assert "'log.retention.hours=90m': the value must be a whole number of hours" in error
    config.write_text("log.retention.hours=90m\n")
    error = run("broker", "--config", str(config), exit_code=2).stderr
    assert error == f"hmb: {config}: log.retention.hours=90m: the value must be a whole number of hours\n"
