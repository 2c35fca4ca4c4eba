"""Tests that `hmb groups` lists and describes groups, resets committed offsets, removes members and deletes groups."""

import itertools
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hmb
from hmb.cli.cluster.group_description import WATCH_INTERVAL, _print_group, describe
from hmb.cli.cluster.group_reset import ago
from hmb.cli.shared.times import format_duration
from hmb.client import TopicPartition
from hmb.client.admin import Admin
from tests.cli.conftest import Hmb, start

COUNT = itertools.count()


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """Create a topic with three partitions, and return its name. The first two partitions contain records.

    Partition 0 has ten records (timestamps 1000, 1001 ... ms), and partition 1 has five.
    """
    name = f"{request.node.originalname}-{next(COUNT)}"
    with hmb.Producer(servers) as producer:
        for partition, count in ((0, 10), (1, 5)):
            for number in range(count):
                producer.send(name, b"x", partition=partition, timestamp=1000 + number)
    return name


def commit(servers: str, group: str, topic: str, *offsets: int) -> None:
    with Admin(servers) as admin:
        admin.alter_group_offsets(group, {TopicPartition(topic, number): it for number, it in enumerate(offsets)})


@contextmanager
def member(servers: str, group: str, topic: str, **settings: Any) -> Iterator[hmb.Consumer]:
    """Run a member of a group. Wait until the member has an assignment."""
    with hmb.Consumer(servers, topic, group=group, client_id="app", **settings) as consumer:
        while not consumer.assignment:
            consumer.poll(0.1)
        yield consumer


def test_groups_are_listed_with_type_and_state(run: Hmb, servers: str, topic: str) -> None:
    at = ("-b", servers)
    commit(servers, "empty-one", topic, 1)
    with member(servers, "new-one", topic, group_protocol="consumer"):
        lines = run("groups", "list", "--json", *at).stdout.splitlines()
        listed = {it["group"]: it for it in map(json.loads, lines)}
        assert listed["empty-one"] == {"group": "empty-one", "type": "classic", "state": "Empty", "protocol_type": ""}
        assert listed["new-one"]["type"] == "consumer"
        lines = run("groups", "list", "--type", "consumer", *at).stdout.splitlines()
        assert [line.split()[:2] for line in lines] == [["group", "type"], ["new-one", "consumer"]]
        assert "new-one" not in run("groups", "list", "--state", "empty", *at).stdout


def test_the_lag_is_printed_in_records_and_in_time(run: Hmb, servers: str, topic: str) -> None:
    commit(servers, "late", topic, 4, 5)
    described = json.loads(run("groups", "describe", "late", "--json", "-b", servers).stdout)
    assert described["state"] == "Empty"
    assert described["coordinator"] == servers
    behind, done = described["offsets"]
    since_1970 = behind.pop("lag_ms")
    assert since_1970 > 50 * 365 * 86_400_000
    owner = {"member_id": None, "host": None, "client_id": None}
    assert behind == {"topic": topic, "partition": 0, "current_offset": 4, "log_end_offset": 10, "lag": 6} | owner
    assert (done["lag"], done["lag_ms"]) == (0, 0)
    first, header, zero, _ = run("groups", "describe", "late", "-b", servers).stdout.splitlines()
    assert first == f"group late, classic, Empty, 0 members, coordinator {servers}, lag 6"
    assert header.split()[:6] == ["topic", "partition", "current_offset", "log_end_offset", "lag", "lag_time"]
    assert zero.split()[:5] == [topic, "0", "4", "10", "6"]
    times = json.loads(run("groups", "describe", "late", "--no-times", "--json", "-b", servers).stdout)["offsets"]
    assert [offset["lag_ms"] for offset in times] == [None, 0]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_printed_with_their_partitions(run: Hmb, servers: str, topic: str, protocol: str) -> None:
    group, at = f"busy-{protocol}", ("-b", servers)
    with member(servers, group, topic, group_protocol=protocol) as consumer:
        described = json.loads(run("groups", "describe", group, "--json", *at).stdout)
        (it,) = described["members"]
        assert (it["client_id"], it["host"]) == ("app", "/127.0.0.1")
        assert it["assignment"] == [f"{topic}-0", f"{topic}-1", f"{topic}-2"]
        assert {offset["member_id"] for offset in described["offsets"]} == {consumer.group_metadata.member_id}
        _, header, row = run("groups", "describe", group, "--members", *at).stdout.splitlines()
        assert header.split()[:2] == ["member_id", "group_instance_id"]
        assert row.split()[-4:] == ["3", f"{topic}-0", f"{topic}-1", f"{topic}-2"]
        (line,) = run("groups", "describe", group, "--state", *at).stdout.splitlines()
        assert line.startswith(f"group {group}, {protocol}, Stable, ")


def test_a_deleted_topic_has_no_lag(run: Hmb, servers: str, topic: str) -> None:
    commit(servers, "left-over", topic, 4)
    with Admin(servers) as admin:
        admin.create_topics([f"{topic}-gone"])
        admin.alter_group_offsets("left-over", {TopicPartition(f"{topic}-gone", 0): 0})
    with Admin(servers) as admin:
        admin.delete_topics([f"{topic}-gone"])
        lags = admin.describe_lag("left-over")
    # The broker may have deleted the committed offset together with the topic.
    assert [lag.lag for lag in lags.values()] in ([6], [6, None])


RESETS = [
    (["--to-earliest"], [0, 0, 0]),
    (["--to-latest"], [10, 5, 0]),
    (["--to-current"], [4, 5, 0]),
    (["--to-offset", "3"], [3, 3, 0]),
    (["--shift-by", "2", "--topic", ":0"], [6]),
    (["--shift-by", "-9", "--topic", ":0"], [0]),
    (["--to-datetime", "1970-01-01T00:00:01.003Z"], [3, 3, 0]),
    (["--by-duration", "P1D"], [10, 5, 0]),
]


@pytest.mark.parametrize(("options", "expected"), RESETS, ids=[options[0] for options, _ in RESETS])
def test_a_reset_is_planned_and_then_done(
    run: Hmb, servers: str, topic: str, options: list[str], expected: list[int]
) -> None:
    group = f"reset{''.join(options)}".replace(":", "")
    commit(servers, group, topic, 4, 5)
    where = [f"{topic}{it}" if it.startswith(":") else it for it in options]
    where += [] if "--topic" in options else ["--topic", topic]
    lines = run("groups", "reset", group, *where, "--json", "-b", servers).stdout.splitlines()
    planned = [json.loads(line) for line in lines]
    assert [(it["group"], it["new_offset"], it["executed"]) for it in planned] == [
        (group, offset, False) for offset in expected
    ]
    with Admin(servers) as admin:
        assert [it.offset for it in admin.list_group_offsets(group).values()] == [4, 5]
        result = run("groups", "reset", group, *where, "--execute", "-b", servers)
        assert [int(line.split()[-1]) for line in result.stdout.splitlines()[1:]] == expected
        chosen = [TopicPartition(topic, number) for number in range(len(expected))]
        assert [it.offset for it in admin.list_group_offsets(group, chosen).values()] == expected


def test_an_exported_plan_is_imported(run: Hmb, servers: str, topic: str, tmp_path: Path) -> None:
    commit(servers, "exported", topic, 4, 5)
    reset = ("groups", "reset", "exported", "-b", servers)
    exported = run(*reset, "--all-topics", "--to-current", "--export").stdout
    assert exported == f"{topic},0,4\n{topic},1,5\n"
    plan = tmp_path / "plan.csv"
    plan.write_text(exported)
    run(*reset, "--all-topics", "--to-earliest", "--execute")
    run(*reset, "--from-file", str(plan), "--execute")
    with Admin(servers) as admin:
        assert [it.offset for it in admin.list_group_offsets("exported").values()] == [4, 5]
    plan.write_text(f"{topic},0,4\n{topic},one,5\n")
    error = run(*reset, "--from-file", str(plan), exit_code=1).stderr
    assert error == f"hmb: {plan}, line 2: '{topic},one,5' is not topic,partition,offset\n"


def test_an_active_group_is_not_reset(run: Hmb, servers: str, topic: str) -> None:
    reset = ("groups", "reset", "running", "--topic", topic, "--to-earliest", "-b", servers)
    with member(servers, "running", topic):
        assert "--execute is refused until they have stopped" in run(*reset).stderr
        error = run(*reset, "--execute", exit_code=1).stderr
        assert error == (
            "hmb: group 'running' is Stable, with 1 member: stop its consumers first; nothing was changed\n"
        )
        error = run("groups", "delete", "running", "-b", servers, exit_code=1).stderr
        assert "group 'running' has members: stop them first" in error


@pytest.mark.parametrize(
    ("options", "exit_code", "message"),
    [
        (["--topic", "{topic}"], 2, "choose one: --to-earliest"),
        (["--topic", "{topic}", "--to-earliest", "--to-latest"], 2, "choose one"),
        (["--to-earliest"], 2, "choose exactly one of these options: --topic"),
        (["--topic", "{topic}:x", "--to-earliest"], 2, "write TOPIC or TOPIC:0,1,2"),
        (["--topic", "{topic}", "--to-datetime", "2026-02-1"], 2, "'2026-02-1': it is not a time"),
        (["--topic", "{topic}", "--to-datetime", "2026-02-30"], 2, "2026-02-30 is not a date"),
        (["--topic", "{topic}", "--by-duration", "1 day"], 2, "is not a duration: write PT1H30M"),
        (["--topic", "{topic}", "--to-earliest", "--execute", "--dry-run"], 2, "choose one"),
        (["--topic", "nowhere", "--to-earliest"], 3, "there is no topic 'nowhere'"),
        (["--topic", "{topic}:7", "--to-earliest"], 3, "has no partition 7"),
        (["--topic", "{topic}:2", "--shift-by", "1"], 1, "has committed no offset in {topic}-2"),
        (["--from-file", "/no/such/file"], 3, "/no/such/file: No such file"),
    ],
)
def test_groups_that_cannot_be_reset(
    run: Hmb, servers: str, topic: str, options: list[str], exit_code: int, message: str
) -> None:
    commit(servers, "mistaken", topic, 4)
    options = [option.format(topic=topic) for option in options]
    result = run("groups", "reset", "mistaken", *options, "-b", servers, exit_code=exit_code)
    assert message.format(topic=topic) in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_a_missing_group_is_reported(run: Hmb, servers: str, topic: str) -> None:
    at = ("-b", servers)
    for arguments in (["describe", "nobody"], ["delete", "nobody"], ["remove-members", "nobody", "--all"]):
        error = run("groups", *arguments, *at, exit_code=3).stderr
        assert error == "hmb: there is no group 'nobody'; `hmb groups list` shows what exists\n"
    reset = ("groups", "reset", "nobody", "--topic", topic, "--to-latest", "--execute", *at)
    assert "use --create to create the group" in run(*reset, exit_code=3).stderr
    run(*reset, "--create")
    assert "group nobody" in run("groups", "describe", "nobody", *at).stdout


def test_committed_offsets_are_deleted(run: Hmb, servers: str, topic: str) -> None:
    delete = ("groups", "delete-offsets", "forgetful", "-b", servers, "--topic")
    commit(servers, "forgetful", topic, 4, 5)
    header, row = run(*delete, f"{topic}:1,2").stdout.splitlines()
    assert header.split() == ["topic", "partition", "deleted_offset"]
    assert row.split() == [topic, "1", "5"]
    assert "has no committed offsets in" in run(*delete, f"{topic}:1", exit_code=1).stderr
    with member(servers, "forgetful", topic):
        assert "GROUP_SUBSCRIBED_TO_TOPIC" in run(*delete, topic, exit_code=1).stderr


def test_members_are_removed(run: Hmb, servers: str, topic: str) -> None:
    remove = ("groups", "remove-members", "crowd", "-b", servers)
    with member(servers, "crowd", topic, group_instance_id="one"):
        assert "has no instance 'two'" in run(*remove, "--instance", "two", exit_code=1).stderr
        assert "name the members with --member and --instance" in run(*remove, exit_code=2).stderr
        assert run(*remove, "--all").stdout == "removed one\n"
        described = json.loads(run("groups", "describe", "crowd", "--json", "-b", servers).stdout)
        assert described["members"] == []


def test_groups_are_deleted_with_their_offsets(run: Hmb, servers: str, topic: str) -> None:
    commit(servers, "doomed", topic, 4)
    result = run("groups", "delete", "doomed", "nobody-else", "-b", servers, exit_code=3)
    assert result.stdout == "deleted group doomed\n"
    assert "there is no group 'nobody-else'" in result.stderr


def test_a_group_is_watched_until_ctrl_c(servers: str, topic: str) -> None:
    commit(servers, "watched", topic, 4, 5)
    with start("groups", "describe", "watched", "--json", "--watch", "0.05", "-b", servers) as process:
        assert process.stdout is not None
        first, second = (json.loads(process.stdout.readline()) for _ in range(2))
        assert [offset["trend"] for offset in first["offsets"]] == [None, None]
        assert [offset["trend"] for offset in second["offsets"]] == [0, 0]
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert error == b""


def test_a_watching_command_ends_when_its_reader_closes_the_pipe(servers: str, topic: str) -> None:
    commit(servers, "headed", topic, 4, 5)
    with start("groups", "describe", "headed", "-w", "0.05", "-b", servers) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 0


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0s"), (250, "0.2s"), (59_999, "60.0s"), (60_000, "1m0s"), (3_661_000, "1h1m"), (90_000_000, "1d1h")],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text


def test_durations_before_now() -> None:
    hour_ago, iso = ago("1h"), ago("PT1H")
    assert abs(iso - hour_ago) < 60_000
    assert abs(ago("P1DT2H3M4.5S") - (iso + 3_600_000 - 93_784_500)) < 60_000


def test_the_lag_of_a_group_without_commits_is_unknown(run: Hmb) -> None:
    group = {"group": "g", "type": "classic", "state": "Stable", "assignor": "range", "members": [], "coordinator": ""}
    with CliRunner().isolation() as (output, *_):
        _print_group(group | {"lag": None, "offsets": []}, members=False, only_state=True)
        assert output.getvalue() == b"group g, classic, Stable, range, 0 members, lag -\n"


def test_watch_does_not_take_the_next_option_for_its_seconds() -> None:
    assert describe.make_context("describe", ["g", "--watch", "--state"]).params["watch"] == WATCH_INTERVAL
    assert describe.make_context("describe", ["g", "--watch", "0.5", "--state"]).params["watch"] == 0.5


def test_describe_required_a_name_or_all_groups(run: Hmb, servers: str, topic: str) -> None:
    commit(servers, "named-by-nobody", topic, 4)
    described = run("groups", "describe", "--state", "-b", servers).stdout
    assert "group named-by-nobody, " in described
    assert run("groups", "describe", "--all-groups", "--state", "-b", servers).stdout == described
    error = run("groups", "describe", "g", "--all-groups", "-b", servers, exit_code=2).stderr
    assert "choose either GROUPS or --all-groups, not both" in error
