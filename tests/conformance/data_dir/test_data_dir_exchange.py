"""HMB opens a data directory of Kafka 4.3.0, and Kafka opens logs of HMB. Both find the same records and offsets.

The test is one long sequence, because each step starts with the result of the previous step. Kafka writes, compacts and
deletes. HMB opens Kafka's directory, and writes, compacts and deletes more. Then another Kafka cluster opens these
logs.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from hmb.bench import peers
from tests.conformance.data_dir import exchange
from tests.conformance.data_dir.exchange import BROKER, KAFKA, TOPICS, WITH_TRANSACTIONS, LoudKafka, segments
from tests.waiting import until

pytestmark = [pytest.mark.external, pytest.mark.timeout(1800)]


def fill(kafka: peers.Peer) -> object:
    """Fill topics of all kinds.

    Return the producer of an open transaction. While the producer exists, the transaction stays open.
    """
    exchange.make_topics(kafka.bootstrap)
    exchange.write_in_all_codecs(kafka.bootstrap, ["deleted", "compacted"], 1_500, seed=1)
    exchange.delete_records(kafka.bootstrap, "deleted", 4_000)
    open_ended = exchange.write_transactions(kafka.bootstrap, WITH_TRANSACTIONS)
    exchange.await_start_offset(kafka.data_dir, "deleted", 4_000)
    until(lambda: int(segments(kafka.data_dir, "deleted")[0].stem) > 0, "deletion of segments")
    for topic in ("compacted", "compacted-transactions"):
        exchange.await_compaction(kafka.data_dir, topic)
    return open_ended


def go_on(hmb: peers.Peer) -> None:
    """Write, compact and delete more records, so that the logs change in every way that HMB supports."""
    begin = segments(hmb.data_dir, "deleted")[0]
    exchange.alter_configs(hmb.bootstrap, TOPICS | {"deleted": {"retention.bytes": "1000000"}})
    exchange.write_in_all_codecs(hmb.bootstrap, TOPICS, 1_000, seed=5)
    until(lambda: segments(hmb.data_dir, "deleted")[0] > begin, "deletion of segments")
    exchange.await_compaction(hmb.data_dir, "compacted")
    stable = exchange.last_stable_offset(hmb.bootstrap, "compacted-transactions")
    exchange.await_compaction(hmb.data_dir, "compacted-transactions", stable)


def end(broker: peers.Peer, ending: str) -> None:
    if ending == "killed":
        broker.kill()
    else:
        assert broker.stop() in (0, 143)  # A JVM exits with 143 after SIGTERM.


class Origin(NamedTuple):
    """A directory of Kafka after a clean stop, the same directory after a kill, and the records of its topics."""

    directories: dict[str, Path]
    written: dict[tuple[str, str], exchange.Reading]


@pytest.fixture(scope="module")
def origin(kafka_43: Path, tmp_path_factory: pytest.TempPathFactory) -> Origin:
    folder = tmp_path_factory.mktemp("origin")
    directories = {ending: folder / ending for ending in ("stopped", "killed")}
    with LoudKafka(directories["stopped"], config=KAFKA) as kafka:
        open_ended = fill(kafka)
        written = exchange.read_topics(kafka.bootstrap)
        # No write is in progress, so this copy equals the files after a kill. The index files are sparse.
        subprocess.run(["cp", "-a", "--sparse=always", directories["stopped"], directories["killed"]], check=True)
        end(kafka, "stopped")
    del open_ended
    return Origin(directories, written)


@pytest.fixture(scope="module")
def destination(kafka_43: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of another Kafka cluster. Its controller has created the same topics."""
    directory = tmp_path_factory.mktemp("destination") / "kafka"
    with LoudKafka(directory, config=KAFKA) as kafka:
        exchange.make_topics(kafka.bootstrap)
    return directory


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_logs_move_from_kafka_to_hmb_and_back(origin: Origin, destination: Path, tmp_path: Path, ending: str) -> None:
    written = origin.written
    for name, reading in written.items():
        assert reading.records, name
    assert written["transactions", "read_committed"] != written["transactions", "read_uncommitted"]

    with peers.Hmb(origin.directories[ending], config=BROKER) as hmb:
        exchange.assert_same(exchange.read_topics(hmb.bootstrap), written)
        go_on(hmb)
        continued = exchange.read_topics(hmb.bootstrap)
        end(hmb, ending)

    shutil.copytree(destination, tmp_path / "other")
    other = LoudKafka(tmp_path / "other", config=KAFKA)
    exchange.move(hmb.data_dir, other.data_dir, TOPICS, clean=ending == "stopped")
    with other:
        exchange.assert_same(exchange.read_topics(other.bootstrap), continued)
        # Idempotence is off, because the new cluster assigns producer ids that the old cluster has already written to
        # the logs.
        client = exchange.producer(other.bootstrap, "none", **{"enable.idempotence": False})
        exchange.write(client, ["deleted"], 5, random.Random(6))
        offsets = [record.offset for record in exchange.read_log(other.bootstrap, "deleted")]
        assert offsets == list(range(offsets[0], continued["deleted", "read_uncommitted"].records[-1].offset + 6))
    assert other.complaints() == []
