"""Tests of the control port and of the commands that use it: `hmb broker --faults`, `--embedded`, and `hmb faults`."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.testing.clock import ManualClock
from hmb.testing.disk import DiskFaults
from hmb.testing.errors import FaultError
from hmb.testing.faults.control import ControlPort
from hmb.testing.faults.handler_layers import HandlerLayers
from hmb.testing.faults.objects import AllFaults, load_faults
from hmb.testing.faults.requests import Faults
from hmb.testing.request_record import RequestRecord
from tests.waiting import until

EXAMPLES = Path(__file__).parents[2] / "docs" / "library"
HMB = Path(sys.executable).with_name("hmb")
TOOLCHAINS = {
    "go": ["go", "run", "embedded.go"],
    "java": ["java", "Embedded.java"],
    "node": ["node", "embedded.mjs"],
}


@pytest.fixture
def control() -> Iterator[ControlPort]:
    layers = HandlerLayers()
    control = ControlPort(AllFaults(Faults(layers), DiskFaults()), RequestRecord(layers), ManualClock())
    control.start()
    yield control
    control.stop()


def ask(
    control: ControlPort, method: str, body: Any = None, path: str = "/faults", **headers: str
) -> tuple[int, Any]:
    """Send a request to the control port. Return the HTTP status and the JSON of the response."""
    connection = http.client.HTTPConnection(control.address, timeout=30)
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    connection.request(method, path, text, {"Authorization": f"Bearer {control.token}"} | headers)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_faults_are_added_listed_and_cleared(control: ControlPort) -> None:
    fault = {"api": "FETCH", "topic": "t", "nth": 3, "error": "NOT_LEADER_OR_FOLLOWER"}
    assert ask(control, "POST", fault) == (200, [fault | {"count": 0}])
    assert ask(control, "POST", [{"api": "produce", "delay": 1}]) == (200, [{"api": "PRODUCE", "delay": 1, "count": 0}])
    assert len(ask(control, "GET")[1]) == 2
    assert ask(control, "DELETE") == (200, [])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": ""}, 401),
        ({"Host": "attacker.example"}, 403),
        ({"Origin": "http://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_request_of_a_foreign_web_page_is_refused(
    control: ControlPort, headers: dict[str, str], status: int
) -> None:
    answered, answer = ask(control, "POST", {"api": "FETCH", "drop": True}, **headers)
    assert answered == status and len(answer["error"].splitlines()) == 1
    assert ask(control, "GET") == (200, [])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"disk": "fulll"}, "the disk cannot be 'fulll'; possible: full, failing, slow"),
        ({"disk": "slow"}, "a slow disk requires the parameter 'seconds' with a value above 0"),
        ({"disk": "full", "seconds": 1}, "a full or failing disk does not allow the parameter 'seconds'"),
        ({"disk": "full", "drop": True}, "unknown key 'drop'"),
        ({"api": "FETCHES", "drop": True}, "no API has the name 'FETCHES'"),
        ({"api": "FETCH", "dropp": True}, "unknown key 'dropp'"),
        ({"api": "FETCH", "drop": "yes"}, "drop='yes': the value must have the type bool"),
        ({"api": "FETCH", "delay": True}, "delay=True: the value must have the type float"),
        ({"drop": True}, "a fault must have the key 'api' or the key 'disk'"),
        (["FETCH"], "a fault must be a mapping"),
        ("{", "Expecting property name"),
    ],
)
def test_a_mistake_is_one_clear_line(control: ControlPort, body: Any, message: str) -> None:
    status, answer = ask(control, "POST", body)
    assert status == 400
    assert message in answer["error"] and len(answer["error"].splitlines()) == 1


def test_the_clock_is_moved_and_read(control: ControlPort) -> None:
    before = ask(control, "GET", path="/clock")[1]["now_ms"]
    status, answer = ask(control, "POST", {"hours": 1, "minutes": 0.5, "expire_members": True}, path="/clock")
    assert status == 200
    assert 3_630_000 <= answer["now_ms"] - before < 4_000_000
    assert ask(control, "DELETE", path="/clock")[0] == 405


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "a clock only moves forward, by at least 1 ms; it cannot advance by 0 s"),
        ({"hours": -1}, "it cannot advance by -3600 s"),
        ({"hour": 1}, "unknown key 'hour', did you mean 'hours'?"),
        ({"hours": "1"}, "hours='1': the value must have the type float"),
        ({"hours": True}, "hours=True: the value must have the type float"),
        ({"hours": 1, "expire_members": 1}, "expire_members=1: the value must have the type bool"),
        ({"days": 1e300}, "a clock advances by at most 999999999 days"),
        ([1], "the time must be a mapping"),
    ],
)
def test_a_wrong_move_of_the_clock_is_one_clear_line(control: ControlPort, body: Any, message: str) -> None:
    status, answer = ask(control, "POST", body, path="/clock")
    assert status == 400
    assert message in answer["error"] and len(answer["error"].splitlines()) == 1


def test_one_wrong_fault_adds_none_of_a_list(control: ControlPort) -> None:
    assert ask(control, "POST", [{"api": "FETCH", "drop": True}, {"api": "FETCH"}])[0] == 400
    assert ask(control, "GET") == (200, [])


@pytest.mark.parametrize("text", ["api: FETCH", "[{api: FETCH", "- {api: FETCH, tpoic: t}", "- 7"])
def test_a_mistake_in_a_file_names_the_file_in_one_line(tmp_path: Path, text: str) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed")
    path = tmp_path / "faults.yaml"
    path.write_text(text)
    with pytest.raises(FaultError, match=r"faults\.yaml: ") as caught:
        load_faults(AllFaults(Faults(HandlerLayers()), DiskFaults()), path)
    assert len(str(caught.value).splitlines()) == 1


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Run `hmb broker --embedded` with a file of faults. Yield the process and the JSON line that it has printed."""
    (tmp_path / "faults.json").write_text('[{"api": "LIST_GROUPS", "drop": true}]')
    command = [HMB, "broker", "--embedded", "--faults", tmp_path / "faults.json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
        process.terminate()


def test_a_program_in_another_process_uses_the_embedded_broker(
    embedded: tuple[subprocess.Popen[str], dict[str, str]],
) -> None:
    process, ready = embedded

    def output(*arguments: str) -> str:
        environment = os.environ | {"HMB_CONTROL": ready["control"], "HMB_CONTROL_TOKEN": ready["token"]}
        return subprocess.run(
            [HMB, "faults", *arguments], env=environment, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def faults(*arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in output(*arguments).splitlines()]

    assert faults("list") == [{"api": "LIST_GROUPS", "drop": True, "count": 0}]
    faults("add", "PRODUCE", "--error", "NOT_LEADER_OR_FOLLOWER", "--times", "2")
    with hmb.Producer(ready["bootstrap_servers"]) as producer:
        producer.send("t", b"a").result(timeout=30)
    assert faults("list")[1]["count"] == 2
    faults("corrupt", "t")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        faults("corrupt", "t", "--offset", "9")
    assert "offset 9 is not in 0 .. 1 of t-0" in caught.value.stderr
    assert faults("disk", "slow", "--seconds", "0.01", "--topic", "t") == [
        {"disk": "slow", "topic": "t", "seconds": 0.01}
    ]
    assert faults("clear") == []
    assert output("requests", "--clear") == "The broker has deleted the recorded requests.\n"
    process.terminate()
    assert process.wait(timeout=30) == 0
    assert not Path(ready["data_dir"]).exists()


def test_a_program_in_another_process_moves_the_clock(
    embedded: tuple[subprocess.Popen[str], dict[str, str]],
) -> None:
    _, ready = embedded
    servers = ready["bootstrap_servers"]
    with hmb.Admin(servers) as admin, hmb.Producer(servers) as producer:
        admin.create_topics([hmb.NewTopic("t", 1, configs={"retention.ms": "3600000"})])
        producer.send("t", b"a").result()
    connection = http.client.HTTPConnection(ready["control"], timeout=30)
    connection.request("POST", "/clock", '{"hours": 2}', {"Authorization": f"Bearer {ready['token']}"})
    assert connection.getresponse().status == 200
    with hmb.Consumer(servers, "t", until="end") as consumer:
        assert list(consumer) == []


def test_the_embedded_broker_ends_with_its_parent() -> None:
    program = (
        "import subprocess, sys; p = subprocess.Popen([sys.argv[1], 'broker', '--embedded'], stdout=subprocess.PIPE);"
        " print(p.pid); print(p.stdout.readline().decode())"
    )
    output = subprocess.run(
        [sys.executable, "-c", program, HMB], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    ready = json.loads(output.splitlines()[1])
    until(lambda: not Path(ready["data_dir"]).exists())  # a clean stop removes the temporary directory


@pytest.mark.parametrize("language", TOOLCHAINS)
def test_the_example_in_another_language_adds_a_fault(language: str, tmp_path: Path) -> None:
    tool = shutil.which(TOOLCHAINS[language][0])
    if tool is None:
        pytest.skip(f"{language} is not installed")
    for example in EXAMPLES.glob("[Ee]mbedded.*"):
        shutil.copy(example, tmp_path)
    environment = os.environ | {"PATH": f"{HMB.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        TOOLCHAINS[language], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [{"api": "PRODUCE", "times": 1, "cut": "after", "count": 0}]


@pytest.fixture
def broker_and_control() -> Iterator[tuple[hmb.Broker, ControlPort]]:
    with hmb.Broker() as broker:
        control = ControlPort(AllFaults(broker.faults, broker.disk), broker._requests, ManualClock())
        control.start()
        yield broker, control
        control.stop()


def test_a_disk_is_full_until_the_faults_are_cleared(broker_and_control: tuple[hmb.Broker, ControlPort]) -> None:
    broker, control = broker_and_control
    broker.create_topic("t")
    broker.create_topic("other")
    faults = [{"disk": "full", "topic": "t"}, {"disk": "slow", "seconds": 0.01}]
    assert ask(control, "POST", faults) == (200, faults)
    broker.produce("other", "a")
    with pytest.raises(hmb.KafkaError, match="KAFKA_STORAGE_ERROR"):
        broker.produce("t", "a")
    assert ask(control, "DELETE") == (200, [])
    broker.produce("t", "b")
    assert [each.value for each in broker.records("t")] == [b"b"]


def test_a_batch_is_damaged_from_another_process(broker_and_control: tuple[hmb.Broker, ControlPort]) -> None:
    broker, control = broker_and_control
    broker.produce("t", "a")
    assert ask(control, "POST", {"topic": "t"}, path="/corrupt") == (200, {})
    with hmb.Consumer(broker.bootstrap_servers, "t") as consumer:
        broker.produce("t", "b")
        assert next(iter(consumer)).value == b"b"
    status, answer = ask(control, "POST", {"topic": "t", "offset": 9}, path="/corrupt")
    assert status == 400 and "OFFSET_OUT_OF_RANGE" in answer["error"]
    status, answer = ask(control, "POST", {"topic": "t", "ofset": 9}, path="/corrupt")
    assert status == 400 and "did you mean 'offset'" in answer["error"]
    assert ask(control, "GET", path="/corrupt")[0] == 405


def test_requests_are_recorded_from_the_first_use_on(tmp_path: Path) -> None:
    """The broker begins to record the requests of clients when a test first uses `/requests` on the control port.

    The command `hmb faults requests` prints the recorded requests.
    """
    with hmb.Broker() as broker:
        control = ControlPort(AllFaults(broker.faults, broker.disk), broker._requests, ManualClock())
        control.start()
        try:
            broker.create_topic("t")
            assert ask(control, "GET", path="/requests") == (200, [])
            with hmb.Producer(broker.bootstrap_servers, client_id="mine") as producer:
                producer.send("t", b"one").result()
            status, requests = ask(control, "GET", path="/requests")
            (produce,) = [each for each in requests if each["api"] == "Produce"]
            assert status == 200 and produce["client_id"] == "mine" and produce["topics"] == ["t"]
            assert produce["errors"] == [] and produce["closed"] is None and produce["duration_ms"] > 0
            assert ask(control, "DELETE", path="/requests") == (200, [])
            assert ask(control, "POST", [], path="/requests")[0] == 405
        finally:
            control.stop()
