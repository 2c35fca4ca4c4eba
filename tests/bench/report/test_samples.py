"""Tests of samples: each run is stored in a file and in a topic, with its machine, its versions and its Git commit."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

import hmb
from hmb.bench.errors import InvalidSamples
from hmb.bench.report import samples
from hmb.bench.report.samples import Sample, collect, samples_of

SCHEMA = json.loads((Path(samples.__file__).parent / "sample.schema.json").read_text())
RUNS = [
    Sample("thesis", "HMB", "Kafka 4.3.0", number, {"message_bytes": 100}, {"records_per_second": 1000.0 + number})
    for number in range(3)
]


def test_runs_are_in_the_file_and_in_the_topic(tmp_path: Path) -> None:
    with collect("thesis", tmp_path) as kept:
        for run in RUNS:
            kept.add(run)
    document = json.loads(kept.path.read_text())
    assert samples_of(document) == RUNS
    assert set(document) == set(SCHEMA["required"]) == set(SCHEMA["properties"])
    with hmb.Broker(tmp_path / "topic") as broker:
        records = list(hmb.Consumer(broker.bootstrap_servers, samples.TOPIC, until="end"))
    assert {record.key for record in records} == {b"thesis"}
    for record, run in zip(records, document["samples"], strict=True):
        value = json.loads(record.value or b"")
        assert value == {"run": kept.path.stem, **run, **{name: document[name] for name in samples.environment()}}


def test_another_broker_can_have_the_topic(tmp_path: Path) -> None:
    with hmb.Broker() as broker:
        with collect("start", tmp_path, broker.bootstrap_servers) as kept:
            kept.add(RUNS[0])
        records = list(hmb.Consumer(broker.bootstrap_servers, samples.TOPIC, until="end"))
    assert [record.key for record in records] == [b"thesis"]
    assert not (tmp_path / "topic").exists()


def test_the_schema_has_the_fields_of_a_sample() -> None:
    properties = SCHEMA["properties"]["samples"]["items"]["properties"]
    assert list(properties) == [field.name for field in fields(Sample)]


@pytest.mark.parametrize("content", ["[]", "{}", "no JSON"])
def test_a_file_with_other_content_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InvalidSamples, match="is not a file of samples"):
        samples.read(tmp_path / "x.json")
