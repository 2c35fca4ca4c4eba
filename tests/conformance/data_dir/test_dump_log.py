"""Compares `hmb dump-log` with Kafka's DumpLogSegments line by line, on the same files."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from struct import pack

import confluent_kafka
import pytest

from hmb.bench import peers
from hmb.records import (
    Codec,
    ControlType,
    EndTransactionMarker,
    Record,
    RecordBatch,
    assign_offsets,
    encode_batch,
    encode_marker,
    encode_message_set,
)
from hmb.storage.config import LogConfig
from hmb.storage.dump.entries import DumpOptions
from hmb.storage.dump.log_files import dump, log_files
from hmb.storage.log import Log
from tests.conformance.clients import ALL_CODECS, write_confluent
from tests.conformance.data_dir.test_data_dir import SMALL_SEGMENTS, write_every_kind_of_record
from tests.conformance.dataset import write_lines
from tests.conformance.java_clients import run

pytestmark = pytest.mark.external

SEGMENTS = Path(__file__).parents[2] / "records" / "segments"
RECORDS = [
    Record(timestamp=1000, value=b"no key"),
    Record(timestamp=1001, key=b"tombstone"),
    Record(timestamp=1002, key="ключ".encode(), value=b"a\tb", headers=(("a", b"1"), ("b", None))),
    Record(timestamp=-1, key=b"\xff\x00", value=b"\xc3\x28", headers=(("é", b""),)),
    Record(timestamp=999, key=b"", value=b""),
]


def in_formats() -> dict[str, bytes]:
    """Return log files in each format and codec, and files with markers, gaps, an incomplete end or a wrong CRC.

    `hmb dump-log` and Kafka's DumpLogSegments both read each of these files to its end.
    """
    files = {f"batch-{codec.name}": encode_batch(RECORDS, codec=codec) for codec in Codec}
    for magic in (0, 1):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            data = encode_message_set(RECORDS, magic, codec)
            files[f"v{magic}-{codec.name}"] = bytes(assign_offsets(data + data, 0).data)
    stamped = assign_offsets(encode_message_set(RECORDS, 1, Codec.GZIP), 0, log_append_time=77).data
    files["log-append-time"] = bytes(stamped) + encode_batch(RECORDS, base_offset=5, log_append_time=78)
    files["idempotent"] = encode_batch(RECORDS, producer_id=7, producer_epoch=1, base_sequence=2**31 - 3)
    files["markers"] = b"".join(
        [
            encode_marker(EndTransactionMarker(kind, 3), 5, 7, 1, base_offset=kind)
            for kind in (ControlType(0), ControlType(1))
        ]
    )
    files["gaps"] = encode_batch([Record(2, 5), Record(9, 6)], keep_offsets=True) + encode_batch(
        RECORDS, base_offset=20
    )
    files["torn"] = encode_batch(RECORDS) + encode_batch(RECORDS, base_offset=5)[:-1]
    wrong = bytearray(encode_batch(RECORDS))
    wrong[20] ^= 1
    files["wrong-crc"] = bytes(wrong) + encode_batch(RECORDS, base_offset=5)
    return files


def kafka_s_lines(jars: Path, files: list[Path], *options: str) -> list[str]:
    names = ",".join(map(str, files))
    output = run(jars, "org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)
    return output.decode(errors="replace").split("\n")[:-1]


def our_lines(files: list[Path], options: DumpOptions) -> list[str]:
    entries = [entry for entry in dump(files, options) if entry.kind not in ("damage", "finding")]
    return [line for entry in entries for line in entry.line().split("\n")]


@pytest.mark.parametrize("switch", ["--print-data-log", "--deep-iteration", ""])
def test_logs(kafka_43: Path, tmp_path: Path, switch: str) -> None:
    contents = in_formats() | {path.stem: path.read_bytes() for path in SEGMENTS.glob("*.log")}
    files = []
    for name, content in contents.items():
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / "00000000000000000000.log")
        files[-1].write_bytes(content)
    options = DumpOptions(deep_iteration=switch == "--deep-iteration", print_data_log=switch == "--print-data-log")
    assert our_lines(files, options) == kafka_s_lines(kafka_43, files, *filter(None, [switch]))


@pytest.mark.parametrize("switch", ["--index-sanity-check", ""])
def test_indexes(kafka_43: Path, tmp_path: Path, switch: str) -> None:
    log = tmp_path / "00000000000000000300.log"
    batches = [encode_batch([Record(timestamp=1000 + 10 * n)] * 3, base_offset=300 + 3 * n) for n in range(5)]
    log.write_bytes(b"".join(batches))
    size = len(batches[0])
    index, time_index = log.with_suffix(".index"), log.with_suffix(".timeindex")
    index.write_bytes(pack(">iiii", 5, size, 10, 3 * size) + (b"" if switch else bytes(80)))
    time_index.write_bytes(pack(">qiqi", 1010, 5, 1031, 11) + (b"" if switch else bytes(120)))
    ours = our_lines([index, time_index], DumpOptions(index_sanity_check=bool(switch)))
    assert ours == kafka_s_lines(kafka_43, [index, time_index], *filter(None, [switch]))


def test_transactions(kafka_43: Path, tmp_path: Path) -> None:
    """`hmb dump-log` and DumpLogSegments print the same lines for producer snapshots and transaction indexes.

    The log contains an open transaction, and a transaction marker of a producer that has written no records.
    """
    log = Log(tmp_path, LogConfig(), clean=True, clock=lambda: 1_000)
    log.append(
        RecordBatch.parse(encode_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True))
    )
    for producer_id in (1, 2):
        log.append_marker(EndTransactionMarker(ControlType.ABORT, 3), producer_id, 1)
    log.append(
        RecordBatch.parse(encode_batch(RECORDS, producer_id=3, producer_epoch=0, base_sequence=0, transactional=True))
    )
    log.close()
    files = sorted([*tmp_path.glob("*.snapshot"), *tmp_path.glob("*.txnindex")])
    assert len(files) == 2
    ours = our_lines(files, DumpOptions())
    assert ours == kafka_s_lines(kafka_43, files)
    assert len(ours) == 2 + 1 + 3


CONFIG = SMALL_SEGMENTS | {"log.index.interval.bytes": "100"}
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def fill(bootstrap: str, folder: Path) -> None:
    """Write several segments in each codec, with every kind of record."""
    lines = write_lines(folder / "lines", 12_000)
    write_confluent(bootstrap, "segments", lines, "none")
    few = write_lines(folder / "few", 500)
    for codec in ALL_CODECS:
        write_confluent(bootstrap, f"codec-{codec}", few, codec)
    write_every_kind_of_record(bootstrap, "kinds")


def commit_and_abort(bootstrap: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "dumped"})
    producer.init_transactions(30)
    for number in range(6):
        producer.begin_transaction()
        for value in range(3):
            producer.produce("transactions", b"%d" % value, b"%d" % number, partition=0)
        assert producer.flush(30) == 0
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)


def files_of_topics(data_dir: Path) -> list[Path]:
    directories = [path for path in sorted(data_dir.iterdir()) if path.is_dir() and not path.name.startswith("__")]
    return [file for path in directories for file in log_files(path) if file.suffix in SUFFIXES]


def assert_same_lines(jars: Path, data_dir: Path) -> set[str]:
    """Compare the outputs of HMB's and Kafka's dump tool for all files of all topics. Return the kinds of files."""
    files = files_of_topics(data_dir)
    for switch in ("--print-data-log", "--index-sanity-check", ""):
        options = DumpOptions(print_data_log="data" in switch, index_sanity_check="sanity" in switch)
        ours, theirs = our_lines(files, options), kafka_s_lines(jars, files, *filter(None, [switch]))
        # Compare line by line, because pytest needs minutes for a diff of so many lines.
        for one, other in zip_longest(ours, theirs):
            assert one == other
    assert not any(entry.is_damage for entry in dump([data_dir], DumpOptions(verify=True)))
    return {file.suffix for file in files if file.stat().st_size}


def test_files_of_kafka(kafka_43: Path, tmp_path: Path) -> None:
    with peers.Kafka43(tmp_path / "kafka", config=CONFIG) as kafka:
        fill(kafka.bootstrap, tmp_path)
        commit_and_abort(kafka.bootstrap)
        in_use = files_of_topics(kafka.data_dir)  # The index files of a running broker are padded with zeros.
        for one, other in zip_longest(our_lines(in_use, DumpOptions()), kafka_s_lines(kafka_43, in_use)):
            assert one == other
    assert assert_same_lines(kafka_43, kafka.data_dir) == set(SUFFIXES)


def test_files_of_hmb(kafka_43: Path, tmp_path: Path) -> None:
    with peers.Hmb(tmp_path / "hmb", config=CONFIG) as broker:
        fill(broker.bootstrap, tmp_path)
    assert {".log", ".index", ".timeindex", ".snapshot"} <= assert_same_lines(kafka_43, broker.data_dir)
