"""Tests of `hmb users` and `hmb certs`, and of the rule that protects brokers without a login.

By default, a broker that requires no login may listen only on a loopback address, such as 127.0.0.1.
"""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import hmb
from hmb.broker import BrokerServer
from hmb.broker.config.keys import ConfigError
from hmb.security.scram import ScramMechanism
from tests.cli.conftest import Hmb

SCRAM = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"}


def login(name: str, password: str) -> dict[str, str]:
    own = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
    return own | {"sasl.username": name, "sasl.password": password}


def options(security: dict[str, str]) -> list[str]:
    return [word for name, value in security.items() for word in ("-X", f"{name}={value}")]


def test_the_first_user_is_created_before_the_first_start(run: Hmb, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert (
        "created user admin" in run("users", "create", "admin", "--data-dir", str(data), stdin="first-secret\n").stdout
    )
    assert "exists already" in run("users", "create", "admin", "--data-dir", str(data), stdin="x\n", exit_code=1).stderr
    with hmb.Broker(data, config=SCRAM) as broker:
        place = ["-b", broker.bootstrap_servers, *options(login("admin", "first-secret"))]
        file = tmp_path / "password"
        file.write_text("alice-secret\n")
        run("users", "create", "alice", "--password-file", str(file), *place)
        assert run("users", "list", *place).stdout.split() == [
            *("user", "mechanism", "iterations"),
            *(
                word
                for name in ("admin", "alice")
                for each in ScramMechanism
                for word in (name, each.sasl_name, "4096")
            ),
        ]
        assert "exists already" in run("users", "create", "alice", *place, stdin="x\n", exit_code=1).stderr
        changed = run("users", "passwd", "alice", "--password", "new-secret", *place)
        assert "other users of this computer can see" in changed.stderr
        with hmb.Admin(broker.bootstrap_servers, security=login("alice", "new-secret")) as admin:
            admin.list_topics()
        run("users", "delete", "alice", *place)
        assert "there is no user 'alice'" in run("users", "delete", "alice", *place, exit_code=1).stderr
        in_use = run("users", "create", "bob", "--data-dir", str(data), stdin="x\n", exit_code=1)
        assert "in use by another broker" in in_use.stderr
    with (
        hmb.Broker(data, config=SCRAM) as broker,
        hmb.Admin(broker.bootstrap_servers, security=login("admin", "first-secret")) as admin,
    ):
        assert list(admin.list_users()) == ["admin"]


def test_files_with_secrets_can_be_read_by_their_owner_only(run: Hmb, tmp_path: Path) -> None:
    data = tmp_path / "data"
    run("users", "create", "admin", "--data-dir", str(data), stdin="first-secret\n")
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in data.glob("security.*")}
    assert files == {"security.checkpoint": 0o600, "security.decoys": 0o600}
    assert b"first-secret" not in (data / "security.checkpoint").read_bytes()


def test_a_damaged_file_of_users_stops_the_start(run: Hmb, tmp_path: Path) -> None:
    data = tmp_path / "data"
    run("users", "create", "admin", "--data-dir", str(data), stdin="first-secret\n")
    hmb.Broker(data).start().stop()
    file = data / "security.checkpoint"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(content)
    with pytest.raises(hmb.DataDirectoryError, match="cannot use the users, ACLs and quotas"):
        hmb.Broker(data).start()


def test_an_empty_password_is_refused(run: Hmb, tmp_path: Path) -> None:
    assert "password is empty" in run("users", "create", "a", "--data-dir", str(tmp_path), stdin="", exit_code=1).stderr


@pytest.mark.parametrize("name", ["alice\nbob", "alice\tbob", "alice\x1b[2J", "alice\u2028bob"])
def test_a_name_with_a_control_character_is_refused(run: Hmb, tmp_path: Path, name: str) -> None:
    data = tmp_path / "data"
    for place in (["--data-dir", str(data)], ["-b", "127.0.0.1:1"]):
        refused = run("users", "create", name, *place, stdin="secret\n", exit_code=2)
        assert f"{name!r} contains a control character" in refused.stderr
    assert not data.exists()
    assert "the name is empty" in run("users", "create", "", "--data-dir", str(data), stdin="x\n", exit_code=2).stderr


def test_certificates_are_made_by_one_command(run: Hmb, tmp_path: Path) -> None:
    directory = tmp_path / "certificates"
    run("certs", "make", str(directory), "--client", "alice")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert modes.keys() == {"authority.pem", "authority.key", "broker.pem", "client.pem"}
    assert modes["authority.key"] == modes["broker.pem"] == modes["client.pem"] == 0o600
    assert "contains authority.pem" in run("certs", "make", str(directory), exit_code=1).stderr


PUBLIC = "other computers can reach this address"


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1", ""])
def test_a_public_address_without_a_login_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match=PUBLIC):
        BrokerServer(config={"listeners": f"PLAINTEXT://{host}:0"})
    BrokerServer(config={"listeners": f"PLAINTEXT://{host}:0", "allow.unauthenticated": "true"})
    BrokerServer(config=SCRAM | {"listeners": f"SASL_PLAINTEXT://{host}:0"})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_a_loopback_address_needs_no_login(host: str) -> None:
    BrokerServer(config={"listeners": f"PLAINTEXT://{host}:0"})


def test_a_public_address_with_tls_needs_certificates_of_clients(run: Hmb, tmp_path: Path) -> None:
    directory = tmp_path / "certificates"
    run("certs", "make", str(directory))
    tls = {
        "listeners": "SSL://0.0.0.0:0",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.location": str(directory / "authority.pem"),
    }
    with pytest.raises(ConfigError, match=PUBLIC):
        BrokerServer(config=tls)
    BrokerServer(config=tls | {"ssl.client.auth": "required"})


def test_the_command_names_the_option_that_forces_the_start(run: Hmb, tmp_path: Path) -> None:
    refused = run("broker", "--host", "0.0.0.0", "--port", "0", "--data-dir", str(tmp_path), exit_code=2)
    assert "--allow-unauthenticated" in refused.stderr
