"""`hmb topics`: create, list, describe, alter, delete."""

import json

from .conftest import Hmb


def test_the_life_of_a_topic(run: Hmb, servers: str) -> None:
    at = ("-b", servers)
    create = ("topics", "create", "life", "--partitions", "2", "--replication-factor", "1", "--config")
    assert run(*create, "segment.bytes=100000", *at).stdout == "created topic life\n"
    assert run("topics", "list", *at).stdout == "life\n"
    assert json.loads(run("topics", "list", "--json", *at).stdout) == [{"topic": "life", "partitions": 2}]
    run("produce", "life", "-p", "1", *at, stdin="a\nb\nc\n")
    described = json.loads(run("topics", "describe", "life", "--json", *at).stdout)
    assert described == {
        "topic": "life",
        "configs": {"segment.bytes": "100000"},
        "partitions": [
            {"partition": 0, "leader": servers, "log_start_offset": 0, "log_end_offset": 0},
            {"partition": 1, "leader": servers, "log_start_offset": 0, "log_end_offset": 3},
        ],
    }
    first, setting, header, zero, one = run("topics", "describe", "life", *at).stdout.splitlines()
    assert first == "topic life, 2 partitions"
    assert setting == "segment.bytes=100000"
    assert header.split() == ["partition", "leader", "log_start_offset", "log_end_offset"]
    assert zero.split() == ["0", servers, "0", "0"]
    assert one.split() == ["1", servers, "0", "3"]
    assert run("topics", "delete", "life", *at).stdout == "deleted topic life\n"
    assert run("topics", "list", *at).stdout == ""


def test_a_topic_is_altered(run: Hmb, servers: str) -> None:
    def described() -> tuple[dict[str, str], int]:
        answer = json.loads(run("topics", "describe", "t", "--json", "-b", servers).stdout)
        return answer["configs"], len(answer["partitions"])

    run("topics", "create", "t", "--config", "flush.ms=7", "-b", servers)
    alter = ("topics", "alter", "t", "-b", servers)
    assert run(*alter, "--partitions", "7", "--config", "retention.ms=5").stdout == "altered topic t\n"
    assert described() == ({"flush.ms": "7", "retention.ms": "5"}, 7)
    assert json.loads(run(*alter, "--delete-config", "flush.ms", "--json").stdout) == {"topic": "t", "altered": True}
    assert described() == ({"retention.ms": "5"}, 7)
    assert "say what" in run(*alter, exit_code=2).stderr
    assert "7 would not be more" in run(*alter, "--partitions", "7", exit_code=1).stderr
    assert "retention.ms=soon" in run(*alter, "--config", "retention.ms=soon", exit_code=1).stderr
    assert (
        "there is no topic 'nobody'"
        in run("topics", "alter", "nobody", *alter[3:], "--partitions", "9", exit_code=3).stderr
    )


def test_what_was_done_as_json(run: Hmb, servers: str) -> None:
    create = ("topics", "create", "j", "--json", "-b", servers)
    assert json.loads(run(*create).stdout) == {"topic": "j", "created": True}
    assert json.loads(run(*create, "--if-not-exists").stdout) == {"topic": "j", "created": False}
    assert json.loads(run("topics", "delete", "j", "--json", "-b", servers).stdout) == {"topic": "j", "deleted": True}


def test_several_are_deleted_and_the_missing_one_is_named(run: Hmb, servers: str) -> None:
    for name in ("x", "z"):
        run("topics", "create", name, "-b", servers)
    result = run("topics", "delete", "x", "y", "z", "-b", servers, exit_code=3)
    assert result.stdout.splitlines() == ["deleted topic x", "deleted topic z"]
    assert "there is no topic 'y'" in result.stderr
