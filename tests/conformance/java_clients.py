"""Runs Kafka's own tools as processes: the console clients of 4.3.0 and 0.8.2.2, and DumpLogSegments of 4.3.0.

Three defaults of Kafka's tools are wrong for the tests, so the tests change them. The console producer of 0.8.2 does
not request acknowledgments (`--request-required-acks 0`). SimpleConsumerShell, a consumer of 0.8.2, waits forever at
the end of the log. Java uses the platform's charset for text, so `peers.java` sets UTF-8.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hmb.bench import peers

TOOL_SECONDS = 300
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def run(jars: Path, main_class: str, *arguments: str, stdin: Path | None = None) -> bytes:
    """Run a tool until it ends, and return its standard output. If its exit code is not 0, fail with this output."""
    command = peers.java(jars, main_class, *arguments, options=QUICK_START)
    with (stdin or Path("/dev/null")).open("rb") as lines:
        done = subprocess.run(command, stdin=lines, capture_output=True, timeout=TOOL_SECONDS)
    if done.returncode != 0:
        output = done.stderr.decode(errors="replace")[-2000:]
        raise AssertionError(f"{main_class} ended with {done.returncode}: {output}")
    return done.stdout


def write_kafka_43(bootstrap: str, topic: str, lines: Path, codec: str) -> None:
    arguments = ["--bootstrap-server", bootstrap, "--topic", topic, "--compression-codec", codec]
    run(peers.kafka_43_jars(), "org.apache.kafka.tools.ConsoleProducer", *arguments, stdin=lines)


def read_kafka_43(bootstrap: str, topic: str, count: int) -> bytes:
    where = ["--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"]
    how_far = ["--max-messages", str(count), "--timeout-ms", "30000"]
    return run(peers.kafka_43_jars(), "org.apache.kafka.tools.consumer.ConsoleConsumer", *where, *how_far)


def write_kafka_082(bootstrap: str, topic: str, lines: Path, codec: str) -> None:
    """Write with the Scala producer of Kafka 0.8.2."""
    _console_producer_082(bootstrap, topic, lines, codec)


def write_kafka_082_new_producer(bootstrap: str, topic: str, lines: Path, codec: str) -> None:
    """Write with the Java producer in its first release, Kafka 0.8.2."""
    _console_producer_082(bootstrap, topic, lines, codec, "--new-producer")


def _console_producer_082(bootstrap: str, topic: str, lines: Path, codec: str, *options: str) -> None:
    arguments = ["--broker-list", bootstrap, "--topic", topic, "--compression-codec", codec]
    acks = ["--request-required-acks", "1", "--request-timeout-ms", "10000"]
    run(peers.kafka_082_jars(), "kafka.tools.ConsoleProducer", *arguments, *acks, *options, stdin=lines)


def read_kafka_082(bootstrap: str, topic: str, count: int) -> bytes:
    where = ["--broker-list", bootstrap, "--topic", topic, "--partition", "0", "--offset", "-2"]
    how_far = ["--max-messages", str(count), "--no-wait-at-logend"]
    return run(peers.kafka_082_jars(), "kafka.tools.SimpleConsumerShell", *where, *how_far)


@dataclass(frozen=True)
class Dump:
    """The report of DumpLogSegments about one file: codecs of the batches, offsets of the records, and problems."""

    codecs: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def dump_logs(files: Sequence[Path]) -> dict[Path, Dump]:
    """Run Kafka's DumpLogSegments on log files, and parse its output.

    The report of a file starts with the lines `Dumping <path>` and `Log starting offset: 0`. The next lines are of
    three kinds:

    - `baseOffset: 0 lastOffset: 9 ... compresscodec: none crc: 1 isvalid: true` describes a batch.
    - `offset: 0 position: 0 ... isvalid: true` describes an old message (magic 0 or 1).
    - `| offset: 0 ... payload: ...` describes a record in the batch or the old message above this line.

    DumpLogSegments reports a wrong checksum as `isvalid: false`, or as `isValid: false` in the line of a record. The
    function returns these lines, and all lines of an unknown kind, as problems.
    """
    arguments = ["--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files))]
    output = run(peers.kafka_43_jars(), "org.apache.kafka.tools.DumpLogSegments", *arguments).decode()
    dumps: dict[Path, Dump] = {}
    dump = Dump()
    for line in output.splitlines():
        metadata = line.partition(" payload: ")[0]
        if line.startswith("Dumping "):
            dump = dumps[Path(line.removeprefix("Dumping "))] = Dump()
        elif line.startswith(("baseOffset:", "offset:")) and line.endswith("isvalid: true"):
            dump.codecs.append(_field(line, "compresscodec").lower())
        elif line.startswith("| offset:") and "isValid: false" not in metadata:
            dump.offsets.append(int(_field(line, "offset")))
        elif not line.startswith("Log starting offset:"):
            dump.complaints.append(line)
    return dumps


def _field(line: str, name: str) -> str:
    match = re.search(rf"\b{name}: (\S+)", line)
    assert match, f"no {name} in {line!r}"
    return match.group(1)


def index_complaints(files: Sequence[Path]) -> list[str]:
    """Return the problems that DumpLogSegments' sanity check finds in index files.

    A Kafka broker runs the same check when it starts.

    An empty index is valid. A log with fewer bytes than `index.interval.bytes` has an empty index.
    """
    arguments = ["--index-sanity-check", "--files", ",".join(map(str, files))]
    lines = run(peers.kafka_43_jars(), "org.apache.kafka.tools.DumpLogSegments", *arguments).decode().splitlines()
    fine = ("passed sanity check.", "is empty.")
    return [line for line in lines if not line.startswith("Dumping ") and not line.endswith(fine)]
