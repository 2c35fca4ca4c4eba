"""Tests of `-X` and `--config`: a setting with Kafka's name becomes a keyword argument of the client."""

import inspect
from pathlib import Path

import pytest

from hmb.cli.shared.client_options import client_keywords
from hmb.cli.shared.errors import CliError
from hmb.client import Consumer, Producer
from hmb.client.consuming.settings import CONSUMER_SETTINGS
from hmb.client.producing.settings import PRODUCER_SETTINGS
from hmb.client.settings import Setting
from tests.cli.conftest import Hmb


@pytest.mark.parametrize(("known", "client"), [(PRODUCER_SETTINGS, Producer), (CONSUMER_SETTINGS, Consumer)])
def test_every_setting_is_a_keyword_of_the_client(known: dict[str, Setting], client: type) -> None:
    keywords = inspect.signature(client).parameters
    assert {it.keyword for it in known.values() if it.keyword} <= keywords.keys()


def test_texts_become_values(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# a comment\nlinger.ms=5\nacks=1\nkey.serializer=org.example.Serializer\n")
    given = (("acks", "all"), ("request.timeout.ms", "1500"), ("enable.idempotence", "TRUE"), ("batch.size", "10"))
    assert client_keywords(PRODUCER_SETTINGS, str(file), given) == {
        "linger_ms": 5.0,
        "acks": "all",
        "request_timeout": 1.5,
        "idempotence": True,
        "batch_size": 10,
    }
    names = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor, RoundRobinAssignor,range"
    assert client_keywords(CONSUMER_SETTINGS, None, (("partition.assignment.strategy", names),)) == {
        "assignors": ("cooperative-sticky", "roundrobin", "range")
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("linger.ms", "soon", "the value must be a number"),
        ("linger.ms", "nan", "the value must be a number from 0 to 2147483647"),
        ("linger.ms", "-1", "the value must be a number from 0 to 2147483647"),
        ("request.timeout.ms", "inf", "the value must be a number from 0 to 2147483647"),
        ("request.timeout.ms", "0", "the value must be above 0"),
        ("batch.size", "1.5", "the value must be a whole number"),
        ("batch.size", "-1", "the value must be a whole number, 0 or more"),
        ("enable.idempotence", "yes", "the value must be true or false"),
        ("acks", "most", "the value must be a whole number"),
        ("security.protocol", "TLS", "the value must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
    ],
)
def test_a_text_that_is_not_a_valid_value(name: str, text: str, message: str) -> None:
    with pytest.raises(CliError) as caught:
        client_keywords(PRODUCER_SETTINGS, None, ((name, text),))
    assert str(caught.value).startswith(f"-X {name}={text}: {message}")
    assert caught.value.code == 2


def test_an_unknown_name_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert client_keywords(PRODUCER_SETTINGS, None, (("linger.m", "5"), ("sasl.kerberos.service.name", "x"))) == {}
    first, second = capsys.readouterr().err.splitlines()
    assert first == "hmb: -X linger.m: unknown setting, ignored; did you mean 'linger.ms'?"
    assert second.startswith("hmb: -X sasl.kerberos.service.name: unknown setting, ignored")


def test_a_file_may_contain_settings_of_producers_and_consumers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("linger.ms=5\ngroup.id=g\n")
    assert client_keywords(PRODUCER_SETTINGS, str(file), ()) == {"linger_ms": 5.0}
    assert client_keywords(CONSUMER_SETTINGS, str(file), ()) == {"group": "g"}
    assert capsys.readouterr().err == ""
    # A consumer's setting in -X gets a warning, because -X applies only to this producer.
    client_keywords(PRODUCER_SETTINGS, str(file), (("group.id", "g"),))
    assert capsys.readouterr().err.startswith("hmb: -X group.id: unknown setting, ignored")


@pytest.mark.parametrize("command", ["produce", "consume"])
def test_the_brokers_of_b_win_over_those_of_a_file(run: Hmb, tmp_path: Path, command: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\n")
    options = ("-e",) if command == "consume" else ()
    where = ("--config", str(file))
    assert "nobody listens on 127.0.0.1:1;" in run(command, "t", *where, *options, exit_code=4).stderr
    result = run(command, "t", *where, *options, "-b", "127.0.0.1:2", exit_code=4)
    assert "nobody listens on 127.0.0.1:2;" in result.stderr
    setting = ("-X", "bootstrap.servers=127.0.0.1:3")
    assert "nobody listens on 127.0.0.1:3;" in run(command, "t", *where, *options, *setting, exit_code=4).stderr
    result = run(command, "t", *options, *setting, "-b", "127.0.0.1:2", exit_code=2)
    assert "-b 127.0.0.1:2 and -X bootstrap.servers=127.0.0.1:3 cannot be combined" in result.stderr
    same = ("-X", "bootstrap.servers=127.0.0.1:2", "-b", "127.0.0.1:2")
    run(command, "t", *options, *same, exit_code=4)
