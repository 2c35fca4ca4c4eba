"""`hmb backup` and `hmb restore` between HMB and Kafka 4.3.0, in both directions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hmb
from hmb.bench import peers
from hmb.cli.main import main

pytestmark = [pytest.mark.external, pytest.mark.timeout(300)]
PARTITION = hmb.TopicPartition("gaps", 0)


def run(*arguments: str) -> list[dict[str, Any]]:
    result = CliRunner().invoke(main, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def records(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    return run("consume", topic, "-e", "-X", "isolation.level=read_committed", "-b", bootstrap)


def fill(bootstrap: str) -> None:
    """Write records to topic "plain" with each codec, and to topic "gaps" in committed and aborted transactions."""
    with hmb.Admin(bootstrap) as admin:
        new = [hmb.NewTopic("plain", 1, configs={"retention.ms": "-1"}), hmb.NewTopic("gaps", 1)]
        assert not any(isinstance(it, Exception) for it in admin.create_topics(new).values())
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with hmb.Producer(bootstrap, compression=codec) as producer:
            for number in range(100):
                key, value = codec.encode(), b"%d" % number
                producer.send("plain", value, key=key, headers=[("h", b"x")], timestamp=1_000 + number)
    with hmb.Producer(bootstrap, transactional_id="t") as producer:
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for number in range(3):
                producer.send("gaps", b"%d" % number)
            producer.flush()
            end()
    with hmb.Admin(bootstrap) as admin:
        admin.alter_group_offsets("readers", {PARTITION: 9})
        admin.alter_share_offsets("workers", {PARTITION: 8})


def started(admin: hmb.Admin) -> int | None:
    """Return the start offset of the share group."""
    return admin.list_share_offsets("workers")[PARTITION].start_offset


def test_topics_and_the_offsets_of_groups_move_from_hmb_to_kafka_and_back(kafka_43: Path, tmp_path: Path) -> None:
    with hmb.Broker() as first, peers.Kafka43(tmp_path / "kafka") as kafka, hmb.Broker() as last:
        fill(first.bootstrap_servers)
        run("backup", str(tmp_path / "one.tar"), "-b", first.bootstrap_servers)
        run("restore", str(tmp_path / "one.tar"), "-b", kafka.bootstrap)
        run("backup", str(tmp_path / "two"), "-b", kafka.bootstrap)
        run("restore", str(tmp_path / "two"), "-b", last.bootstrap_servers)
        plain, gaps = records(first.bootstrap_servers, "plain"), records(first.bootstrap_servers, "gaps")
        assert (len(plain), [record["offset"] for record in gaps]) == (500, [0, 1, 2, 8, 9, 10])
        for bootstrap in (kafka.bootstrap, last.bootstrap_servers):
            assert records(bootstrap, "plain") == plain
            assert records(bootstrap, "gaps") == [record | {"offset": at} for at, record in enumerate(gaps)]
            with hmb.Admin(bootstrap) as admin:
                assert admin.list_group_offsets("readers")[PARTITION].offset == 4
                assert started(admin) == 3
            assert run("topics", "describe", "plain", "-b", bootstrap)[0]["configs"] == {"retention.ms": "-1"}


def test_a_backup_of_kafka_with_transactions_is_restored_into_hmb(kafka_43: Path, tmp_path: Path) -> None:
    with peers.Kafka43(tmp_path / "kafka") as kafka, hmb.Broker() as target:
        fill(kafka.bootstrap)
        with hmb.Admin(kafka.bootstrap) as admin:
            admin.delete_records({PARTITION: 1})
        run("backup", str(tmp_path / "b"), "-b", kafka.bootstrap)
        run("restore", str(tmp_path / "b"), "-b", target.bootstrap_servers)
        assert records(target.bootstrap_servers, "plain") == records(kafka.bootstrap, "plain")
        gaps = records(kafka.bootstrap, "gaps")
        assert records(target.bootstrap_servers, "gaps") == [it | {"offset": at} for at, it in enumerate(gaps)]
        with hmb.Admin(target.bootstrap_servers) as admin:
            assert admin.list_group_offsets("readers")[PARTITION].offset == 3
            assert started(admin) == 2
