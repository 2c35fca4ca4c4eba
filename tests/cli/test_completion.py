"""Tests of completion with the Tab key: commands, options, and names from the broker, for example topics."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from hmb.cli.completion import SHELLS, WholeLineBashComplete
from hmb.cli.main import main
from hmb.client import Consumer, TopicPartition
from tests.cli.conftest import COMMAND, Hmb


@pytest.fixture(scope="module")
def populated(servers: str) -> str:
    """Return the address of a broker with two topics."""
    import hmb

    with hmb.Producer(servers) as producer:
        producer.send("events", b"x")
        producer.send("errors", b"x")
    return servers


def complete(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the words that bash receives when the user presses Tab at the end of `line`."""
    monkeypatch.setenv("HMB_LINE", line)
    shell = WholeLineBashComplete(main, {}, "hmb", "_HMB_COMPLETE")
    return shell.complete().splitlines()


def test_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete("hmb cons", monkeypatch) == ["plain,consume"]
    assert complete("hmb topics al", monkeypatch) == ["plain,alter"]
    assert "plain,--from-beginning" in complete("hmb consume --from", monkeypatch)
    assert complete("hmb nonsense x", monkeypatch) == []


def test_topics_of_the_broker_that_the_line_names(populated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete(f"hmb consume -b {populated} e", monkeypatch) == ["plain,errors", "plain,events"]
    assert complete(f"hmb consume --bootstrap-server={populated} ev", monkeypatch) == ["plain,events"]
    assert complete(f"hmb produce -b {populated} x", monkeypatch) == []


def test_partitions_groups_and_settings(populated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Consumer(populated, group="readers") as consumer:
        consumer.commit({TopicPartition("events", 0): 1})
    assert complete(f"hmb consume -b {populated} events -p ", monkeypatch) == ["plain,0", "plain,1", "plain,2"]
    assert complete(f"hmb consume -b {populated} -t events -p ", monkeypatch) == ["plain,0", "plain,1", "plain,2"]
    assert complete(f"hmb produce -b {populated} nowhere -p ", monkeypatch) == []
    assert complete(f"hmb consume -b {populated} events -G r", monkeypatch) == ["plain,readers"]
    assert complete(f"hmb topics create t -b {populated} --config min.cle", monkeypatch) == [
        "plain,min.cleanable.dirty.ratio="
    ]


def test_settings_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete("hmb produce t -X linger.", monkeypatch) == ["plain,linger.ms="]
    assert complete("hmb consume t -X fetch.max", monkeypatch) == ["plain,fetch.max.bytes=", "plain,fetch.max.wait.ms="]
    assert complete("hmb consume t -X linger.", monkeypatch) == []


def test_produce_completes_a_topic_and_then_files(populated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete(f"hmb produce -b {populated} ev", monkeypatch) == ["plain,events"]
    assert complete(f"hmb produce -b {populated} events ev", monkeypatch) == ["file,ev"]
    assert complete(f"hmb produce -b {populated} -t events ev", monkeypatch) == ["file,ev"]


def test_a_broker_that_does_not_run_completes_no_names(monkeypatch: pytest.MonkeyPatch, mute: str) -> None:
    monkeypatch.setattr("hmb.cli.shared.completion.TIMEOUT", 0.05)
    assert complete("hmb consume -b 127.0.0.1:1 e", monkeypatch) == []
    assert complete(f"hmb consume -b {mute} e", monkeypatch) == []
    assert complete("hmb consume -b nonsense:x e", monkeypatch) == []


@pytest.mark.parametrize(
    ("word", "item", "replaced"),
    [("a:b", "a:bc", "bc"), ("--config=clean", "cleanup.policy=", "cleanup.policy="), ("ev", "events", "events")],
)
def test_bash_gets_the_part_of_a_word_that_it_replaces(
    monkeypatch: pytest.MonkeyPatch, word: str, item: str, replaced: str
) -> None:
    """Bash divides a word at `:` and `=`, and replaces only the text after the last of these characters.

    For example, bash completes `a:b` to `a:bc` when it replaces `b` by `bc`. So HMB must send `bc`, and not `a:bc`.
    """
    monkeypatch.setenv("HMB_LINE", f"hmb topics create t {word}")
    shell = WholeLineBashComplete(main, {}, "hmb", "_HMB_COMPLETE")
    assert shell.get_completion_args() == (["topics", "create", "t"], word)
    assert shell.format_completion(CompletionItem(item)) == f"plain,{replaced}"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell(run: Hmb, shell: str) -> None:
    script = run("completion", shell).stdout
    assert SHELLS[shell] in script
    assert f"_HMB_COMPLETE={shell}_complete" in script
    assert issubclass(get_completion_class(shell) or object, ShellComplete)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_a_topic(populated: str, tmp_path: Path) -> None:
    """A real bash completes the name of a topic, although the broker's address earlier in the line contains a colon."""
    line = f"hmb consume -b {populated} ev"
    host, port = populated.split(":")
    words = f"hmb consume -b {host} : {port} ev"
    program = f"""
eval "$(hmb completion bash)"
COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=({words}) COMP_CWORD=6
_hmb_completion hmb ev {port}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", program], capture_output=True, text=True, env=os.environ | {"PATH": path}, check=False
    )
    assert (done.stdout, done.stderr) == ("events\n", "")
