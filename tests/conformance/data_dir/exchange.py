"""Data directories that move between brokers: the first broker writes a directory, and the second one opens it.

A test writes four topics, and uses every codec in each topic. Segments of one topic are deleted, and two topics are
compacted. Two topics contain committed, aborted and open transactions. The function `read_topics` reads the topics with
librdkafka and with Kafka's console consumer.

`move` copies HMB's logs into the directory of a Kafka broker. A Kafka broker gets its topics only from the controller
and not from the directory, so the test creates the topics first.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from confluent_kafka import IsolationLevel
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from hmb.bench import peers
from hmb.protocol.topics import TopicPartition
from hmb.storage.state import checkpoints
from hmb.storage.state.manifest import CLEAN_SHUTDOWN
from hmb.storage.state.offset_checkpoints import RECOVERY_POINTS, START_OFFSETS
from tests.conformance.clients import ALL_CODECS, ERRORS_ONLY
from tests.conformance.tools.shell_tools import ShellTools
from tests.conformance.whole_log import LogRecord, read_log
from tests.waiting import until

SEGMENT_BYTES = 1 << 20  # bytes; the smallest segment size that Kafka 4 allows
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.bytes": str(SEGMENT_BYTES)}
TOPICS: dict[str, dict[str, str]] = {
    "deleted": {"segment.bytes": str(SEGMENT_BYTES), "file.delete.delay.ms": "0"},
    "compacted": COMPACTED,
    "transactions": {"segment.bytes": str(SEGMENT_BYTES)},
    "compacted-transactions": COMPACTED,
}
WITH_TRANSACTIONS = [topic for topic in TOPICS if "transactions" in topic]
BROKER = {"log.cleaner.backoff.ms": "200", "log.retention.check.interval.ms": "200"}
KAFKA = BROKER | {
    "log.initial.task.delay.ms": "200",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
}
LEVELS = ("read_uncommitted", "read_committed")
KEYS = 300
SECONDS = 60.0


class LoudKafka(peers.Kafka43):
    """A Kafka broker that writes its log messages to the log file of its process.

    The Kafka brokers of other tests use the library slf4j-nop, which discards all log messages. The class path of this
    broker begins with slf4j-simple, which prints the messages.
    """

    def command(self) -> list[str]:
        logging = peers.kafka_43_jars().parents[1] / "slf4j-simple" / "libs" / "slf4j-simple-1.7.36.jar"
        if not logging.exists():
            raise peers.PeerUnavailable(f"no {logging}: run bench/peers/fetch_kafka.sh again")
        command = super().command()
        classpath = command.index("-cp") + 1
        command[classpath] = f"{logging}:{command[classpath]}"
        return command

    def complaints(self) -> list[str]:
        """Return the warnings and errors about logs, indexes and snapshots in Kafka's own log."""
        lines = self.log_path.read_text(errors="replace").splitlines()
        loud = [line for line in lines if " WARN " in line or " ERROR " in line]
        return [line for line in loud if "Log" in line or "ProducerState" in line or "Index" in line]


def make_topics(bootstrap: str, names: Iterable[str] = TOPICS) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": ERRORS_ONLY})
    for made in admin.create_topics([NewTopic(name, 1, 1, config=TOPICS[name]) for name in names]).values():
        made.result(SECONDS)


def producer(bootstrap: str, codec: str, **options: str | int) -> confluent_kafka.Producer:
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True, "log_level": 0}
    return confluent_kafka.Producer({**settings, "linger.ms": 20, "batch.num.messages": 100, **options})


def write(client: confluent_kafka.Producer, topics: Iterable[str], count: int, chance: random.Random) -> None:
    """Write records with keys.

    Every ninth record is a tombstone. The values are random, so no codec compresses them much.
    """
    for number in range(count):
        key = b"key %d" % chance.randrange(KEYS)
        value = None if number % 9 == 8 else chance.randbytes(200).hex().encode()
        for topic in topics:
            client.produce(topic, value, key, partition=0, headers=[("number", b"%d" % number)])
        client.poll(0)
    assert client.flush(SECONDS) == 0


def write_in_all_codecs(bootstrap: str, topics: Iterable[str], count: int, seed: int) -> None:
    for codec in ALL_CODECS:
        write(producer(bootstrap, codec), topics, count, random.Random(f"{seed} {codec}"))


def write_transactions(bootstrap: str, topics: Iterable[str]) -> confluent_kafka.Producer:
    """Write interleaved transactions, some committed and some aborted, to every segment.

    Return the producer whose transaction stays open.
    """
    chance = random.Random(2)
    writers = [producer(bootstrap, codec, **{"transactional.id": f"writer {codec}"}) for codec in ALL_CODECS]
    for writer in writers:
        writer.init_transactions(SECONDS)
    for number in range(8):
        if number == 5:
            write_in_all_codecs(bootstrap, topics, 300, seed=3)
        for writer in writers:
            writer.begin_transaction()
            write(writer, topics, 60, chance)
        for index, writer in enumerate(writers):
            (writer.commit_transaction if (number + index) % 3 else writer.abort_transaction)(SECONDS)
    open_ended = producer(bootstrap, "none", **{"transactional.id": "open", "transaction.timeout.ms": 900_000})
    open_ended.init_transactions(SECONDS)
    open_ended.begin_transaction()
    write(open_ended, topics, 20, chance)
    write_in_all_codecs(bootstrap, topics, 10, seed=4)
    return open_ended


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": ERRORS_ONLY})
    (done,) = admin.delete_records([confluent_kafka.TopicPartition(topic, 0, before)]).values()
    done.result(SECONDS)


def alter_configs(bootstrap: str, topics: Mapping[str, Mapping[str, str]]) -> None:
    """Change the settings of topics.

    After a data directory moves to another broker, the settings must be set again. The directory does not contain them,
    because Kafka's controller stores them in its own log.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": ERRORS_ONLY})
    operation = AlterConfigOpType.SET
    resources = [
        ConfigResource(
            ResourceType.TOPIC, topic,
            incremental_configs=[ConfigEntry(*each, incremental_operation=operation) for each in configs.items()],
        )
        for topic, configs in topics.items()
    ]  # fmt: skip
    for done in admin.incremental_alter_configs(resources).values():
        done.result(SECONDS)


def last_stable_offset(bootstrap: str, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": ERRORS_ONLY})
    wanted = {confluent_kafka.TopicPartition(topic, 0): OffsetSpec.latest()}
    (found,) = admin.list_offsets(wanted, isolation_level=IsolationLevel.READ_COMMITTED).values()
    return int(found.result(SECONDS).offset)


def segments(data_dir: Path, topic: str) -> list[Path]:
    return sorted((data_dir / f"{topic}-0").glob("*.log"))


def checkpoint_of(data_dir: Path, checkpoint: str, topic: str) -> int:
    path = data_dir / checkpoint
    if not path.exists() or not path.stat().st_size:  # Kafka creates an empty file first.
        return 0
    return checkpoints.read_offsets(path).get(TopicPartition(topic, 0), 0)


def await_compaction(data_dir: Path, topic: str, up_to: int | None = None) -> None:
    """Wait until the cleaner's checkpoint reaches `up_to`, or the active segment if `up_to` is None."""

    def is_clean() -> bool:
        wanted = int(segments(data_dir, topic)[-1].stem) if up_to is None else up_to
        return checkpoint_of(data_dir, "cleaner-offset-checkpoint", topic) >= wanted

    until(is_clean, f"compaction of {topic}")


def await_start_offset(data_dir: Path, topic: str, offset: int) -> None:
    """Wait until the checkpoint file contains the log start offset.

    If the broker were killed earlier, the deleted records would be back after the restart.
    """
    until(lambda: checkpoint_of(data_dir, START_OFFSETS, topic) == offset, f"checkpoint of the start of {topic}")


class Reading(NamedTuple):
    """The records of a topic at one isolation level, read by librdkafka and by Kafka's console consumer."""

    records: list[LogRecord]
    lines: list[str]


def read_topics(bootstrap: str, topics: Iterable[str] = TOPICS) -> dict[tuple[str, str], Reading]:
    wanted = [(topic, level) for topic in topics for level in (LEVELS if topic in WITH_TRANSACTIONS else LEVELS[:1])]
    with ThreadPoolExecutor(len(wanted)) as pool, ShellTools(bootstrap) as tools:
        records = pool.map(lambda each: read_log(bootstrap, *each), wanted)
        return {each: _shown(tools, *each, found) for each, found in zip(wanted, records, strict=True)}


def _shown(tools: ShellTools, topic: str, level: str, records: list[LogRecord]) -> Reading:
    """Return what the console consumer prints for a topic, together with the records that librdkafka has read.

    The console consumer cannot find the end of a log. So it stops after the number of records that librdkafka has read.
    """
    where = ["--topic", topic, "--partition", "0", "--offset", "earliest"]
    how_far = ["--isolation-level", level, "--max-messages", str(len(records)), "--timeout-ms", "60000"]
    shown = [f"print.{each}=true" for each in ("offset", "timestamp", "key", "headers")]
    options = [part for each in shown for part in ("--formatter-property", each)]
    lines = tools("kafka-console-consumer", *where, *how_far, *options).output.removesuffix("\n").split("\n")
    return Reading(records, [line for line in lines if not line.startswith("Processed a total of ")])


def assert_same(found: Mapping[tuple[str, str], Reading], expected: Mapping[tuple[str, str], Reading]) -> None:
    """Compare the topics one after the other. pytest would need minutes to show a difference of all topics at once."""
    assert found.keys() == expected.keys()
    for name, reading in expected.items():
        assert len(found[name].records) == len(reading.records) == len(reading.lines), name
        for one, other in zip(found[name].records, reading.records, strict=True):
            assert one == other, name
        for ours, theirs in zip(found[name].lines, reading.lines, strict=True):
            assert ours == theirs, name


def move(source: Path, target: Path, topics: Iterable[str], *, clean: bool) -> None:
    """Move the logs of HMB's data directory into the directory of a Kafka broker.

    The Kafka broker has created the topics and is stopped. Each topic keeps the id that Kafka has assigned. `clean` is
    True if both brokers were stopped cleanly. Otherwise Kafka has to recover the logs.
    """
    names = [TopicPartition(topic, 0) for topic in topics]
    for name in names:
        metadata = (target / str(name) / "partition.metadata").read_bytes()
        shutil.rmtree(target / str(name))
        shutil.copytree(source / str(name), target / str(name))
        (target / str(name) / "partition.metadata").write_bytes(metadata)
    for checkpoint in (RECOVERY_POINTS, START_OFFSETS):
        theirs, ours = (checkpoints.read_offsets(each / checkpoint) for each in (target, source))
        merged = theirs | {name: ours[name] for name in names if name in ours}
        (target / checkpoint).write_text(checkpoints.offsets_content(merged))
    if not clean:
        (target / CLEAN_SHUTDOWN).unlink()
