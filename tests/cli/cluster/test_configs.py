"""Tests of `hmb configs`: settings of topics, brokers, loggers and groups."""

import json
from typing import Any

import pytest

import hmb
from hmb.cli.cluster.configs import changes
from tests.cli.conftest import Hmb


@pytest.fixture(scope="module", autouse=True)
def topic(servers: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.create_topics(["t"])


def described(run: Hmb, servers: str, *options: str) -> dict[str, Any]:
    lines = run("configs", "describe", *options, "--json", "-b", servers).stdout.splitlines()
    return {it["name"]: it for it in map(json.loads, lines)}


def test_settings_of_a_topic(run: Hmb, servers: str) -> None:
    alter = ("configs", "alter", "--topic", "t", "-b", servers)
    describe = ("configs", "describe", "--topic", "t", "-b", servers)
    result = run(*describe)
    assert (result.stdout, result.stderr) == ("", "topic 't' has no settings of its own; --all shows all settings\n")
    assert run(*alter, "--add-config", "flush.ms=7,cleanup.policy=[delete,compact]").stdout == "altered topic 't'\n"
    assert run(*describe).stdout.splitlines() == [
        "cleanup.policy=delete,compact  (dynamic_topic_config)",
        "flush.ms=7  (dynamic_topic_config)",
    ]
    run(*alter, "--subtract-config", "cleanup.policy=delete", "--delete-config", "flush.ms")
    assert run(*describe).stdout == "cleanup.policy=compact  (dynamic_topic_config)\n"
    run(*alter, "--append-config", "cleanup.policy=delete")
    assert described(run, servers, "--topic", "t")["cleanup.policy"]["value"] == "compact,delete"
    assert "the broker would accept this for topic 't'" in run(*alter, "--add-config", "flush.ms=8", "--dry-run").stdout
    assert "flush.ms" not in described(run, servers, "--topic", "t")
    run(*alter, "--delete-config", "cleanup.policy")


def test_the_source_and_the_meaning_of_a_setting(run: Hmb, servers: str) -> None:
    run("configs", "alter", "-t", "t", "--add-config", "retention.ms=5000", "-b", servers)
    first, *more = run(
        "configs", "describe", "-t", "t", "retention.ms", "--synonyms", "--documentation", "-b", servers
    ).stdout.splitlines()
    assert first == "retention.ms=5000  (dynamic_topic_config)"
    assert more[0] == "    dynamic_topic_config: retention.ms=5000"
    assert len(more) == 2
    entry = described(run, servers, "-t", "t", "retention.ms", "--synonyms", "--documentation")["retention.ms"]
    assert entry["synonyms"][0] == {"name": "retention.ms", "value": "5000", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert entry["documentation"]
    everything = described(run, servers, "-t", "t", "--all")
    assert everything["flush.ms"]["source"] == "DEFAULT_CONFIG"


@pytest.mark.parametrize(
    ("entity", "setting", "source"),
    [
        (["--broker", "0"], "log.retention.ms=5000", "DYNAMIC_BROKER_CONFIG"),
        (["--entity-type", "brokers", "--entity-name", "0"], "log.retention.ms=6000", "DYNAMIC_BROKER_CONFIG"),
        (["--broker-defaults"], "log.retention.ms=7000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        (["--entity-type", "brokers", "--entity-default"], "log.retention.ms=8000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        (["--group", "g"], "consumer.session.timeout.ms=50000", "DYNAMIC_GROUP_CONFIG"),
    ],
)
def test_settings_of_brokers_and_groups(run: Hmb, servers: str, entity: list[str], setting: str, source: str) -> None:
    name, _, value = setting.partition("=")
    run("configs", "alter", *entity, "--add-config", setting, "-b", servers)
    entry = described(run, servers, *entity)[name]
    assert (entry["value"], entry["source"]) == (value, source)
    run("configs", "alter", *entity, "--delete-config", name, "-b", servers)
    assert name not in described(run, servers, *entity)


def test_loggers_of_a_broker(run: Hmb, servers: str) -> None:
    loggers = described(run, servers, "--broker-logger", "0", "--all")
    name, before = next((it["name"], it["value"]) for it in loggers.values())
    run("configs", "alter", "--broker-logger", "0", "--add-config", f"{name}=ERROR", "-b", servers)
    assert described(run, servers, "--broker-logger", "0", "--all")[name]["value"] == "ERROR"
    run("configs", "alter", "--broker-logger", "0", "--add-config", f"{name}={before}", "-b", servers)


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        (["describe"], 2, "choose exactly one entity: use --topic, --broker"),
        (["describe", "-t", "t", "--broker", "0"], 2, "choose exactly one entity: use --topic, --broker"),
        (["describe", "--entity-type", "topics"], 2, "--entity-type topics needs --entity-name"),
        (["describe", "--entity-name", "t"], 2, "--entity-name and --entity-default need --entity-type"),
        (["describe", "--entity-type", "topics", "--entity-default"], 2, "--entity-default means all brokers"),
        (["describe", "-t", "nowhere"], 3, "there is no topic 'nowhere'"),
        (["describe", "-t", "t", "retention"], 1, "a topic has no setting 'retention'; did you mean"),
        (["describe", "--broker", "7"], 3, "no broker has the id 7; existing ids: 0"),
        (["describe", "--broker", "one"], 1, "the name must be a broker id"),
        (["alter", "-t", "t"], 2, "choose at least one of these options: --add-config"),
        (["alter", "-t", "t", "--add-config", "flush.ms"], 2, "is not of the form name=value"),
        (["alter", "-t", "t", "--add-config", "a=[1,2"], 2, "is not of the form name=value"),
        (["alter", "-t", "t", "--add-config", "flush.ms=1", "--delete-config", "flush.ms"], 2, "changes for: flush.ms"),
        (["alter", "-t", "t", "--delete-config", "flush.mss"], 1, "no setting 'flush.mss'; did you mean flush.ms?"),
        (["alter", "-t", "t", "--add-config", "flush.ms=soon"], 1, "flush.ms=soon"),
        (["alter", "-t", "t", "--append-config", "flush.ms=1"], 1, "INVALID_CONFIG"),
        (["alter", "--broker", "0", "--delete-config", "nonsense"], 1, "a broker has no setting 'nonsense'"),
        (["alter", "--group", "g", "--add-config", "no.such=1"], 1, "a group has no setting 'no.such'"),
    ],
)
def test_mistakes(run: Hmb, servers: str, arguments: list[str], exit_code: int, message: str) -> None:
    result = run("configs", *arguments, "-b", servers, exit_code=exit_code)
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_changes_as_kafkas_tool_has_them() -> None:
    assert changes("a=1") == [("a", "1")]
    assert changes("a=1,b=[x,y],c=") == [("a", "1"), ("b", "x,y"), ("c", "")]
    assert changes("a=b=c") == [("a", "b=c")]
