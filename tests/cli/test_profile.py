"""Tests of the sources of a cluster's address: options, the environment and profiles."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hmb


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of the user's profiles. The directory is empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "hmb"


def asked(run: Hmb, *options: str) -> str:
    """Run a command, and return the address to which it connects. No broker listens at this address."""
    error = run("topics", "list", *options, exit_code=4).stderr
    assert error.startswith("hmb: nobody listens on ")
    return error.split()[4].rstrip(";")


def test_commands_find_the_address_in_several_sources(run: Hmb, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the address of the cluster in several sources.

    The test adds one source after another. Each added source wins over all earlier ones.
    """
    monkeypatch.setattr("hmb.defaults.DEFAULT_SERVER", "127.0.0.1:1")
    assert asked(run) == "127.0.0.1:1"
    run("profile", "create", "home", "-b", "127.0.0.1:2", "-X", "client.id=laptop")
    assert asked(run) == "127.0.0.1:2"
    monkeypatch.setenv("HMB_BOOTSTRAP_SERVERS", "127.0.0.1:3")
    assert asked(run) == "127.0.0.1:3"
    (home / "client.properties").write_text("bootstrap.servers=127.0.0.1:4\n")
    file = ("--command-config", str(home / "client.properties"))
    assert asked(run, *file) == "127.0.0.1:4"
    assert asked(run, *file, "-X", "bootstrap.servers=127.0.0.1:5") == "127.0.0.1:5"
    assert asked(run, *file, "-b", "127.0.0.1:6") == "127.0.0.1:6"


@pytest.mark.parametrize("command", [["meta"], ["consume", "t", "-e"], ["produce", "t"], ["groups", "list"]])
def test_the_environment_is_for_all_commands(
    run: Hmb, servers: str, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    run("topics", "create", "t", "--if-not-exists", "-b", servers)
    monkeypatch.setenv("HMB_BOOTSTRAP_SERVERS", servers)
    run(*command)
    run("profile", "create", "wrong", "-b", "127.0.0.1:1")
    run(*command)
    monkeypatch.setenv("HMB_BOOTSTRAP_SERVERS", "")
    run(*command, exit_code=4)
    run("profile", "create", "right", "-b", servers)
    run(*command)


def test_the_life_of_a_profile(run: Hmb, home: Path) -> None:
    assert run("profile", "list", "--json").stdout == ""
    assert "no current profile is set" in run("profile", "describe", exit_code=1).stderr
    assert "it is the current profile now" in run("profile", "create", "one", "-b", "a:1").stdout
    run("profile", "create", "two", "-b", "b:2,c:3", "-X", "request.timeout.ms=5s", "-X", r"client.id=back\slash")
    listed = [json.loads(line) for line in run("profile", "list", "--json").stdout.splitlines()]
    assert listed == [
        {"profile": "one", "current": False, "servers": "a:1"},
        {"profile": "two", "current": True, "servers": "b:2,c:3"},
    ]
    assert [line.split() for line in run("profile", "list").stdout.splitlines()] == [
        ["profile", "current", "servers"],
        ["one", "-", "a:1"],
        ["two", "*", "b:2,c:3"],
    ]
    described = json.loads(run("profile", "describe", "--json").stdout)
    settings = {"request.timeout.ms": "5000", "client.id": r"back\slash", "bootstrap.servers": "b:2,c:3"}
    assert described == {"profile": "two", "path": str(home / "profiles" / "two.properties"), "settings": settings}
    assert run("profile", "use", "one").stdout == "profile one is the current profile now\n"
    assert run("profile", "describe").stdout.splitlines()[1:] == ["bootstrap.servers=a:1"]
    run("profile", "delete", "one")
    assert "no current profile is set" in run("profile", "describe", exit_code=1).stderr
    run("profile", "use", "two")
    run("profile", "clear")
    assert "no current profile is set" in run("profile", "describe", exit_code=1).stderr
    assert not any(json.loads(line)["current"] for line in run("profile", "list", "--json").stdout.splitlines())


def test_settings_of_a_profile_are_those_of_each_client(run: Hmb, servers: str) -> None:
    run("profile", "create", "slow", "-b", servers, "-X", "linger.ms=5", "-X", "fetch.min.bytes=1")
    assert "sent to t in" in run("produce", "t", stdin="x\n").stderr
    assert run("consume", "t", "-e").stderr == ""
    run("profile", "create", "broken", "-b", servers, "-X", "linger.ms=soon")
    assert run("consume", "t", "-e").stderr == ""
    error = "hmb: profile 'broken': linger.ms=soon: the value must be a number\n"
    assert run("produce", "t", exit_code=2).stderr == error


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["use", "nowhere"], 3, "no profile 'nowhere' exists; `hmb profile list` shows all profiles"),
        (["delete", "nowhere"], 3, "no profile 'nowhere' exists"),
        (["describe", "nowhere"], 3, "no profile 'nowhere' exists"),
        (["create", "empty"], 2, "a profile needs an address (-b) or a setting (-X)"),
        (["create", "a/b", "-b", "a:1"], 2, "'a/b' is not a profile's name"),
        (["create", "..", "-b", "a:1"], 2, "'..' is not a profile's name"),
        (["create", "x", "-b", "a:x"], 2, "'a:x' is not an address"),
    ],
)
def test_mistakes(run: Hmb, arguments: list[str], exit_code: int, message: str) -> None:
    assert message in run("profile", *arguments, exit_code=exit_code).stderr


def test_a_wrong_address_is_named_with_its_place(run: Hmb, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("profile", "create", "x", "-b", "a:1")
    (home / "profiles" / "x.properties").write_text("bootstrap.servers=a:x\n")
    assert "hmb: profile 'x': 'a:x' is not an address" in run("meta", exit_code=2).stderr
    monkeypatch.setenv("HMB_BOOTSTRAP_SERVERS", "b:y")
    assert "hmb: HMB_BOOTSTRAP_SERVERS: 'b:y' is not an address" in run("meta", exit_code=2).stderr
    (home / "profiles" / "x.properties").unlink()
    monkeypatch.delenv("HMB_BOOTSTRAP_SERVERS")
    assert "no profile 'x' exists" in run("meta", exit_code=3).stderr


def test_the_broker_does_not_take_the_address_for_a_setting(
    run: Hmb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HMB_BOOTSTRAP_SERVERS", "a:1")
    refused = run("broker", "-X", "broker.id=x", exit_code=2)
    assert refused.stderr == "hmb: -X broker.id=x: the value must be a whole number\n"
