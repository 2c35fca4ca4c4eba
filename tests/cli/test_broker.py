"""`hmb broker`: settings from all their places, one line when it is ready, a clean end."""

import json
import os
import re
import signal
import socket
from pathlib import Path

import pytest

from .conftest import Hmb, start


@pytest.mark.parametrize(("sent", "exit_code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_says_its_address_and_ends_cleanly(run: Hmb, tmp_path: Path, sent: signal.Signals, exit_code: int) -> None:
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


def test_settings_and_who_wins(run: Hmb, tmp_path: Path) -> None:
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
    assert warning == b"hmb: unknown setting 'num.partitoins', did you mean 'num.partitions'?\n"


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("HMB_LOG_SEGMENT_BYTES", "log.segment.bytes"),
        ("HMB_NUM_PARTITIONS", "num.partitions"),
        ("HMB_NODE_ID", "node.id"),
    ],
)
def test_a_bad_value_is_told_under_the_name_that_was_given(
    run: Hmb, monkeypatch: pytest.MonkeyPatch, variable: str, name: str
) -> None:
    monkeypatch.setenv(variable, "abc")
    result = run("broker", "--port", "0", exit_code=1)
    assert result.stderr == f"hmb: {name}=abc: must be a whole number\n"


def test_an_occupied_port(run: Hmb, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("broker", "--port", str(port), "--data-dir", str(tmp_path), exit_code=1)
    assert result.stderr.startswith(f"hmb: cannot listen on 127.0.0.1:{port}: Address already in use")
    assert result.stderr.count("\n") == 1


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
    assert str(path) in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_is_no_properties_file(run: Hmb, tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("a=b\nnum.partitions=\\u12\n")
    result = run("broker", "--config", str(path), exit_code=1)
    assert result.stderr == f"hmb: {path}, line 2: \\u without four hexadecimal digits\n"
