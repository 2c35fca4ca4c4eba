"""Tests of `hmb topics`: create, list, describe, alter, trim and delete topics."""

import json

import hmb
from tests.cli.conftest import Hmb


def test_the_life_of_a_topic(run: Hmb, servers: str) -> None:
    at = ("-b", servers)
    create = ("topics", "create", "life", "--partitions", "2", "--replication-factor", "1", "--config")
    assert run(*create, "segment.bytes=100000", *at).stdout == "created topic life\n"
    assert run("topics", "list", *at).stdout == "life\n"
    listed = json.loads(run("topics", "list", "--json", *at).stdout)
    assert len(listed.pop("topic_id")) == 36
    assert listed == {"topic": "life", "internal": False, "partition_count": 2, "replication_factor": 1}
    header, row = run("topics", "list", "--detailed", *at).stdout.splitlines()
    assert header.split() == ["topic", "partition_count", "replication_factor"]
    assert row.split() == ["life", "2", "1"]
    run("produce", "life", "-p", "1", *at, stdin="a\nb\nc\n")
    described = json.loads(run("topics", "describe", "life", "--json", *at).stdout)
    held = {"leader": 0, "leader_epoch": 0, "replicas": [0], "isr": [0], "offline": []}
    assert len(described.pop("topic_id")) == 36
    assert described == listed | {
        "configs": {"segment.bytes": "100000"},
        "partitions": [
            {"partition": 0, **held, "log_start_offset": 0, "log_end_offset": 0},
            {"partition": 1, **held, "log_start_offset": 0, "log_end_offset": 3},
        ],
    }
    first, setting, header, zero, one = run("topics", "describe", "life", *at).stdout.splitlines()
    assert first == "topic life, 2 partitions"
    assert setting == "segment.bytes=100000"
    assert header.split() == ["partition", "leader", "replicas", "isr", "log_start_offset", "log_end_offset"]
    assert zero.split() == ["0", "0", "0", "0", "0", "0"]
    assert one.split() == ["1", "0", "0", "0", "0", "3"]
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
    typo = run(*alter, "--delete-config", "retention.mss", "--config", "flush.ms=1", exit_code=1).stderr
    assert typo == "hmb: a topic has no setting 'retention.mss'; did you mean retention.ms? (INVALID_CONFIG)\n"
    assert described() == ({"retention.ms": "5"}, 7)
    both = ("--delete-config", "flush.ms", "--config", "flush.ms=1")
    assert "cannot be combined for flush.ms" in run(*alter, *both, exit_code=2).stderr
    assert "choose at least one of these options" in run(*alter, exit_code=2).stderr
    assert "7 is not an increase" in run(*alter, "--partitions", "7", exit_code=1).stderr
    assert "retention.ms=soon" in run(*alter, "--config", "retention.ms=soon", exit_code=1).stderr
    assert (
        "there is no topic 'nobody'"
        in run("topics", "alter", "nobody", *alter[3:], "--partitions", "9", exit_code=3).stderr
    )


def test_the_results_of_changes_as_json(run: Hmb, servers: str) -> None:
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


def test_topics_of_kafka_itself_are_listed_when_asked_for(run: Hmb, servers: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.list_group_offsets("g")  # The broker creates __consumer_offsets for this request.
    assert "__consumer_offsets" not in run("topics", "list", "-b", servers).stdout.splitlines()
    assert "__consumer_offsets" in run("topics", "list", "--internal", "-b", servers).stdout.splitlines()


def test_a_replica_assignment_of_the_user(run: Hmb, servers: str) -> None:
    create = ("topics", "create", "placed", "-b", servers)
    run(*create, "--replica-assignment", "0,0,0")
    described = json.loads(run("topics", "describe", "placed", "--json", "-b", servers).stdout)
    assert [it["replicas"] for it in described["partitions"]] == [[0], [0], [0]]
    message = "leave out --partitions and --replication-factor"
    assert message in run(*create, "--replica-assignment", "0", "--partitions", "1", exit_code=2).stderr
    assert "write the brokers of each" in run(*create, "--replica-assignment", "0;1", exit_code=2).stderr


def test_a_topic_that_may_be_gone_already(run: Hmb, servers: str) -> None:
    assert run("topics", "delete", "gone", "--if-exists", "-b", servers).stdout == ""


class Trimming:
    """A topic of two partitions, and the command `hmb topics trim` for this topic.

    Each partition has ten records (timestamps 1000, 1001 ... ms).
    """

    def __init__(self, run: Hmb, servers: str, topic: str) -> None:
        self.run, self.at, self.topic = run, ("-b", servers), topic
        run("topics", "create", topic, "--partitions", "2", *self.at)
        for partition in ("0", "1"):
            lines = "".join(json.dumps({"value": "x", "timestamp": 1000 + n}) + "\n" for n in range(10))
            run("produce", topic, "--json", "-p", partition, *self.at, stdin=lines)

    def __call__(self, *options: str, exit_code: int = 0) -> str:
        result = self.run("topics", "trim", self.topic, *options, *self.at, exit_code=exit_code)
        return result.stderr if exit_code else result.stdout

    @property
    def starts(self) -> list[int]:
        described = json.loads(self.run("topics", "describe", self.topic, "--json", *self.at).stdout)
        return [partition["log_start_offset"] for partition in described["partitions"]]


def test_the_oldest_records_are_deleted(run: Hmb, servers: str) -> None:
    trim = Trimming(run, servers, "trimmed")
    trim("--offset", "3", "--dry-run")
    assert trim.starts == [0, 0]
    header, zero, one = trim("--offset", "3", "-p", "0", "-p", "1").splitlines()
    assert header.split() == ["partition", "log_start_offset", "new_start_offset", "log_end_offset", "deleted"]
    assert zero.split() == ["0", "0", "3", "10", "3"]
    assert one.split() == ["1", "0", "3", "10", "3"]
    trim("--time", "1970-01-01T00:00:01.005Z", "-p", "1")
    assert trim.starts == [3, 5]
    trim("--keep", "6")
    assert trim.starts == [4, 5]
    deleted = [json.loads(line) for line in trim("--all", "--json").splitlines()]
    rows = [(row["topic"], row["partition"], row["deleted"]) for row in deleted]
    assert rows == [("trimmed", 0, 6), ("trimmed", 1, 5)]
    assert trim.starts == [10, 10]
    assert trim("--offset", "3").splitlines()[1].split() == ["0", "10", "10", "10", "0"]  # No record is left to delete.


def test_topics_that_cannot_be_trimmed(run: Hmb, servers: str) -> None:
    trim = Trimming(run, servers, "untrimmed")
    refusal = "hmb: offset 11 is above the log end offset of untrimmed-0, which is 10\n"
    assert trim("--offset", "11", exit_code=1) == refusal
    assert "choose one: --offset, --time, --keep or --all" in trim(exit_code=2)
    assert "choose one" in trim("--all", "--keep", "1", exit_code=2)
    assert "'2026-02-': it is not a time; write 2026-02-14T10:30:00Z" in trim("--time", "2026-02-", exit_code=2)
    assert "has no partition 2" in trim("--all", "-p", "2", exit_code=3)
    assert trim.starts == [0, 0]
    assert "there is no topic 'none'" in run("topics", "trim", "none", "--all", "-b", servers, exit_code=3).stderr


def test_a_topic_that_is_only_compacted_cannot_be_trimmed(run: Hmb, servers: str) -> None:
    run("topics", "create", "compacted", "--partitions", "1", "--config", "cleanup.policy=compact", "-b", servers)
    run("produce", "compacted", "-K", ":", "-b", servers, stdin="k:v\n")
    result = run("topics", "trim", "compacted", "--all", "-b", servers, exit_code=1)
    why = "only compaction removes records of this topic; add delete to its cleanup.policy"
    assert result.stderr == f"hmb: compacted-0: {why} (POLICY_VIOLATION)\n"
    assert result.stdout == ""
    assert "'x' is not a valid integer" in run("topics", "trim", "t", "--keep", "x", "-b", servers, exit_code=2).stderr


def test_all_topics_are_described_and_those_with_troubles(run: Hmb, servers: str) -> None:
    run("topics", "create", "one-of-all", "-b", servers)
    lines = run("topics", "describe", "-b", servers).stdout.splitlines()
    assert "topic one-of-all, 3 partitions" in lines
    assert not any("__consumer_offsets" in line for line in lines)
    troubled = ("topics", "describe", "--under-replicated-partitions", "--unavailable-partitions", "-b", servers)
    assert run(*troubled).stdout == run(*troubled, "--json").stdout == ""


def test_the_error_of_an_unknown_setting_listed_all_settings(run: Hmb, servers: str) -> None:
    failed = run("topics", "create", "listed", "--config", "retention.mss=1", "-b", servers, exit_code=1).stderr
    assert "did you mean 'retention.ms'?" in failed and "known:" not in failed


def test_a_pattern_names_several_topics(run: Hmb, servers: str) -> None:
    """`list`, `describe` and `delete` accept a regular expression for several topics, as kafka-topics and rpk do.

    The expression must match a whole name.
    """
    at = ("-b", servers)
    run("topics", "create", "orders.eu", "orders.us", "reorders", "-p", "1", *at)
    assert run("topics", "list", "--pattern", "orders.*", *at).stdout == "orders.eu\norders.us\n"
    assert run("topics", "list", "-r", ".*orders", *at).stdout == "reorders\n"
    assert run("topics", "list", "orders.us", "reorders", *at).stdout == "orders.us\nreorders\n"
    lines = run("topics", "describe", "orders.*", "--pattern", "--json", *at).stdout.splitlines()
    assert [json.loads(line)["topic"] for line in lines] == ["orders.eu", "orders.us"]
    assert run("topics", "delete", "--pattern", "orders.*", *at).stdout == (
        "deleted topic orders.eu\ndeleted topic orders.us\n"
    )
    assert run("topics", "list", "-r", ".*orders.*", *at).stdout == "reorders\n"
    assert run("topics", "list", "-r", "nothing", *at).stdout == ""
    for command in ("describe", "delete"):
        error = run("topics", command, "-r", "nothing", *at, exit_code=3).stderr
        assert error == "hmb: no topic matches 'nothing'; `hmb topics list` shows all\n"
    assert run("topics", "delete", "-r", "nothing", "--if-exists", *at).stdout == ""
    assert "'(' is not a regular expression" in run("topics", "list", "-r", "(", *at, exit_code=2).stderr
    assert "there is no topic 'nothing'" in run("topics", "list", "nothing", *at, exit_code=3).stderr
    assert "--pattern accepts regular expressions" in run("topics", "delete", "x.*", *at, exit_code=2).stderr


def test_a_pattern_does_not_delete_kafkas_own_topics(run: Hmb, servers: str) -> None:
    with hmb.Admin(servers) as admin:
        admin.list_group_offsets("g")
    assert "no topic matches" in run("topics", "delete", "-r", "__consumer.*", "-b", servers, exit_code=3).stderr
    assert run("topics", "list", "-r", "__consumer.*", "-i", "-b", servers).stdout == "__consumer_offsets\n"


def test_short_options_and_several_topics_as_in_rpk(run: Hmb, servers: str) -> None:
    created = run("topics", "create", "a1", "a2", "-p", "2", "-r", "1", "-c", "flush.ms=7", "-b", servers).stdout
    assert created == "created topic a1\ncreated topic a2\n"
    with hmb.Admin(servers) as admin:
        assert [len(topic.leaders) for topic in admin.list_topics() if topic.name in ("a1", "a2")] == [2, 2]
    again = run("topics", "create", "a1", "a3", "-b", servers, exit_code=1)
    assert again.stdout == "created topic a3\n"
    assert "'a1' already exists" in again.stderr
