"""Tests of `hmb demo` and its data set."""

import json
import os
from pathlib import Path

from hmb.cli import demo_data
from tests.cli.conftest import Hmb, start


def test_the_data_set() -> None:
    events = list(demo_data.events())
    assert len(events) == demo_data.COUNT
    assert {event.key for event in events} == {b"Seattle", b"San Francisco"}
    times = [event.timestamp for event in events]
    assert times == sorted(times)
    values = [json.loads(event.value) for event in events]
    assert {value.get("weather") for value in values} == {None, "drizzle", "fog", "rain", "snow", "sun"}
    assert events[0].timestamp == 1262332800000  # 2010-01-01 00:00 Pacific Standard Time


def test_the_demo_reads_the_records_that_it_sent(run: Hmb, tmp_path: Path) -> None:
    output = run("demo", "--data-dir", str(tmp_path)).stdout
    assert [line for line in output.splitlines() if len(line) > 80 and str(tmp_path) not in line] == []
    assert "A producer sent 18,979 weather events" in output
    assert ": the same bytes, each key in order." in output
    assert '"time":"2012-12-24T00:00:00-08:00","city":"Seattle"' in output
    assert len(list(tmp_path.glob("weather-*/*.log"))) > 5
    assert " batches from there: offsets " in output


def test_demo_as_json(run: Hmb) -> None:
    found = json.loads(run("demo", "--json").stdout)
    assert found["records"] == demo_data.COUNT
    assert found["same"] is True
    assert len(found["segments"]) > 5


def test_a_second_demo_does_not_mix_with_the_first(run: Hmb, tmp_path: Path) -> None:
    run("demo", "--data-dir", str(tmp_path))
    result = run("demo", "--data-dir", str(tmp_path), exit_code=1)
    assert "contains a topic 'weather' already" in result.stderr
    assert "remove the directory or choose another" in result.stderr
    assert result.stdout == ""


def test_a_demo_that_is_terminated_leaves_no_files(tmp_path: Path) -> None:
    process = start("demo", env=os.environ | {"TMPDIR": str(tmp_path)})
    assert process.stdout is not None
    assert b"A broker listens" in process.stdout.readline()
    assert list(tmp_path.iterdir())
    process.terminate()
    assert b"Traceback" not in process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
