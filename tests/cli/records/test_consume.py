"""Tests of `hmb consume`: which records it prints, in which format, and when it ends."""

from collections.abc import Iterator

import pytest

import hmb
from hmb.client import Admin
from tests.cli.conftest import Hmb, start

DAY = 1_644_796_800_000  # 2022-02-14


@pytest.fixture(scope="module")
def log(servers: str) -> Iterator[str]:
    """Create a topic of three partitions, and return its name. Partition 0 has eight records, one minute apart."""
    with hmb.Producer(servers) as producer:
        for number in range(8):
            headers = [("n", b"%d" % number), ("odd", b"yes" if number % 2 else None)]
            producer.send("log", b"%d" % number, b"k%d" % number, 0, headers, DAY + number * 60_000)
    yield "log"


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (["-o", "start", "-c", "2"], "01"),
        (["-o", "2:5"], "234"),
        (["-o", "2:5", "-e"], "234"),
        (["-o", "6:100", "-e", "-p", "0"], "67"),
        (["-o", "@2022-02-14:2m", "-e"], "01"),
        (["-o", ":3", "-p", "0"], "012"),
        (["-o", "6:100", "-p", "0"], "67"),
        (["-o", "8:100", "-p", "0"], ""),
        (["-o", ":100", "-p", "0-2"], "01234567"),
        (["-o", "+2:end", "-p", "0"], "234567"),
        (["-o", ":end"], "01234567"),
        (["-o", "6:end", "-p", "0"], "67"),
        (["-o", "-3", "-e"], "567"),
        (["--tail", "2"], "67"),
        (["-o", "@2022-02-14T00:05:00Z", "-e"], "567"),
        (["-o", "@2022-02-14:2m"], "01"),
        (["-o", "@2022-02-14T00:06:00Z:end"], "67"),
        (["-o", f"s@{DAY + 120_000}", "-o", f"e@{DAY + 240_000}"], "23"),
        (["-o", f"s@{DAY + 120_001}", "-e"], "34567"),
        (["-e", "-p", "1-2"], ""),
        (["-e", "-p", "0,2"], "01234567"),
        (["-e", "-n", "3"], "012"),
        (["--from-beginning", "--max-messages", "3"], "012"),
        (["--from-beginning", "--timeout-ms", "1000"], "01234567"),
        (["-e", "--filter-value", "[2-4]"], "234"),
        (["-e", "--filter-key", "^k[17]$"], "17"),
        (["-e", "--filter-header", "odd=yes", "--filter-value", "[0-4]"], "13"),
        (["-e", "--filter-header", "odd="], "1357"),
        (["-e", "--filter-value", "[2-9]", "-c", "2"], "23"),
        (["-e", "--isolation-level", "read_committed"], "01234567"),
        (["-e", "-X", "isolation.level=read_committed", "-X", "fetch.max.bytes=100"], "01234567"),
        (["-e", "-X", "auto.offset.reset=latest", "-q", "-u"], "01234567"),
    ],
)
def test_the_selected_records(run: Hmb, servers: str, log: str, options: list[str], printed: str) -> None:
    options = options if "-p" in options or "-o" not in options else [*options, "-p", "0"]
    result = run("consume", log, *options, "-b", servers)
    assert result.stdout.replace("\n", "") == printed
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        (["-f", r"%t/%p/%o %k=%s %h\n"], b"log/0/1 k1=1 n=1,odd=yes\n"),
        (["-f", r"%d{strftime[%T]} %v{hex}\n"], b"00:01:00 31\n"),
        (["-K", ":"], b"k1:1\n"),
        (["-K", ":", "-D", r"\0"], b"k1:1\0"),
        (["-D", ";"], b"1;"),
        (["-J", "-D", "x"], None),
        (["--property", "print.key=true"], b"k1\t1\n"),
        (
            ["--property=print.timestamp=true", "--property=print.partition=true", "--property=print.offset=true",
             "--formatter-property=print.headers=true", "--property=key.separator=|"],
            b"CreateTime:%d|Partition:0|Offset:1|n:1,odd:yes|1\n" % (DAY + 60_000),
        ),
        (["--property=print.value=false", "--property=print.key=true", r"--property=line.separator=\0"], b"k1\0"),
    ],
)  # fmt: skip
def test_the_format_of_printed_records(
    run: Hmb, servers: str, log: str, options: list[str], printed: bytes | None
) -> None:
    result = run("consume", log, "-o", "1:2", "-p", "0", *options, "-b", servers, exit_code=0 if printed else 2)
    assert result.stdout_bytes == (printed or b"")


def test_null_and_empty(run: Hmb, servers: str) -> None:
    with hmb.Producer(servers) as producer:
        producer.send("nulls", None, b"", 0, [("h", None)])
        producer.send("nulls", b"", None, 0)
    consume = ("consume", "nulls", "-e", "-b", servers)
    assert run(*consume, "-K", ":").stdout == ":\n:\n"
    assert run(*consume, "-K", ":", "-Z").stdout == ":NULL\nNULL:\n"
    assert run(*consume, "-Z").stdout == "NULL\n\n"
    assert run(*consume, "-Z", "-f", "%k|%s|%h;").stdout == "|NULL|h=NULL;NULL||;"
    properties = ("--property", "print.key=true", "--property", "print.headers=true")
    assert run(*consume, *properties).stdout == "h:null\t\tnull\nNO_HEADERS\tnull\t\n"
    assert run(*consume, *properties, "--property", "null.literal=-").stdout == "h:-\t\t-\nNO_HEADERS\t-\t\n"


def test_several_topics_and_patterns(run: Hmb, servers: str) -> None:
    for topic in ("many-a", "many-b", "many-c"):
        run("produce", topic, "-b", servers, stdin=f"{topic}\n")

    def topics(*options: str) -> list[str]:
        return sorted(run("consume", *options, "-e", "-b", servers).stdout.split())

    assert topics("many-a", "-t", "many-b") == ["many-a", "many-b"]
    assert topics("--pattern", "many-.*") == ["many-a", "many-b", "many-c"]
    assert topics("--whitelist", "many-.", "--exclude", "many-[ab]") == ["many-c"]


def test_consume_waits_for_the_first_topic_that_matches_a_pattern(run: Hmb, servers: str) -> None:
    assert run("consume", "--pattern", "no-such-.*", "-b", servers, "--timeout-ms", "1").stdout == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-f", "%q"], "%q is not a letter of a format"),
        (["-f", "%s", "-K", ":"], "--format and --key-delimiter cannot be combined"),
        (["-J", "-f", "%s"], "--format and --json cannot be combined"),
        (["-f", "%s", "-D", ":"], "--delimiter and --format cannot be combined"),
        (["-o", "1:2", "--tail", "1"], "--offset, --from-beginning and --tail cannot be combined"),
        (["-o", ":2", "--tail", "2"], "--offset, --from-beginning and --tail cannot be combined"),
        (["-o", f"e@{DAY}", "--tail", "2"], "--tail stops at the end, so --offset must not name another end"),
        (["-o", ":2", "-e", "-G", "g"], "use either --exit or an end offset in --offset"),
        (["-o", "stored"], "need --group"),
        (["--static", "me"], "need --group"),
        (["-p", "1-0"], "'1-0' is not a list of partitions"),
        (["-p", "x"], "'x' is not a list of partitions"),
        (["-p", "0", "-G", "g"], "--group and --partition cannot be combined"),
        (["-p", "0", "--pattern", "x"], "--partition and --pattern cannot be combined"),
        (["--exclude", "x"], "--exclude needs --pattern"),
        (["--filter-key", "("], "'(' is not a regular expression: missing ), unterminated subpattern at character 1"),
        (["--filter-header", "name"], "'name' is not of the form name=value"),
        (["--property", "print.keys=true"], "--property print.keys: unknown name; the known names are print.timestamp"),
        (["--property", "print.key=yes"], "--property print.key=yes: the value must be true or false"),
        (["-X", "fetch.min.bytes=x"], "hmb: -X fetch.min.bytes=x: the value must be a whole number"),
        (["-X", "isolation.level=some"], "hmb: an isolation level must be one of"),
        (["-X", "auto.offset.reset=foo"], "auto.offset.reset=foo: the value must be earliest or latest"),
        (
            ["-X", "security.protocol=SASL_SSL"],
            "sasl.mechanism=: the value must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        ),
    ],
)
def test_options_that_make_no_sense(run: Hmb, options: list[str], message: str) -> None:
    result = run("consume", "t", *options, "-b", "127.0.0.1:1", exit_code=2)
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("options", [["-e"], ["--timeout-ms", "1"], ["--timeout-ms", "1", "-G", "nothing"]])
def test_a_pattern_without_a_match_is_reported(run: Hmb, servers: str, log: str, options: list[str]) -> None:
    result = run("consume", "--pattern", "zzz", *options, "-b", servers)
    assert result.stderr == "hmb: no topic matches 'zzz'\n"
    assert run("consume", "--pattern", "lo.", "-e", "-c", "1", "-b", servers).stderr == ""


def test_an_unknown_setting_is_reported_with_the_nearest_name(run: Hmb, servers: str, log: str) -> None:
    result = run("consume", log, "-e", "-c", "1", "-X", "fetch.max.byte=1", "-b", servers)
    assert result.stderr == "hmb: -X fetch.max.byte: unknown setting, ignored; did you mean 'fetch.max.bytes'?\n"


def test_the_end_of_a_partition_is_reported(run: Hmb, servers: str, log: str) -> None:
    result = run("consume", log, "-p", "0", "-o", "start", "-v", "--timeout-ms", "1000", "-b", servers)
    assert result.stderr == "% Reached end of topic log [0] at offset 8\n"


@pytest.mark.parametrize("options", [[], ["-G", "g"]])
def test_the_wait_for_a_dead_broker_is_reported(
    run: Hmb, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """While the broker is not available, `hmb consume` reports that it waits.

    Before a bug was fixed, it printed nothing for half a minute. In a group, it repeated one warning.
    """
    monkeypatch.setattr("hmb.cli.shared.waiting_notice.NOTICE_SECONDS", 0.1)
    monkeypatch.setattr("hmb.cli.records.consume.RETRY_FOR", 1.0)
    monkeypatch.setattr("hmb.cli.records.consume.GRACE", 0.1)
    with hmb.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        run("produce", "t", "-b", broker.bootstrap_servers, stdin="x")
        monkeypatch.setattr("hmb.cli.records.consume.write_out", lambda data: broker.stop())
        result = run("consume", "t", "--from-beginning", *options, "-b", broker.bootstrap_servers, exit_code=4)
    assert f"waiting for {broker.bootstrap_servers} to answer, 1 s at most ..." in result.stderr
    assert result.stderr.count("not committed") == len(options) // 2


def test_the_deletion_of_the_topic_ends_the_command(run: Hmb, servers: str) -> None:
    run("produce", "doomed", "-b", servers, stdin="last words\n")
    process = start("consume", "doomed", "--from-beginning", "-b", servers)
    assert process.stdout is not None
    assert process.stdout.readline() == b"last words\n"
    with Admin(servers) as admin:
        admin.delete_topics(["doomed"])
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"doomed" in errors and errors.count(b"hmb: ") == 1
