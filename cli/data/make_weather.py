"""Make `weather.jsonl` from three weather files in the PyPI package `vega_datasets`.

To make `weather.jsonl`, run these two commands:
    pip download --no-deps vega_datasets==0.9.0
    python cli/data/make_weather.py vega_datasets-0.9.0-py3-none-any.whl > cli/data/weather.jsonl

`make_weather.py` does not convert units. In `weather.jsonl`, the name of each numeric field ends with the
field's unit, for example `precipitation_mm` (millimetres).

The weather files contain local times without a time zone. The program treats all local times as Pacific Standard Time,
also in summer. With daylight saving time, one hour in autumn would occur twice. With standard time, no hour occurs
twice, and the times never decrease.
"""

import csv
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime

PACIFIC = "-08:00"
HOURLY = {"seattle-temps": "Seattle", "sf-temps": "San Francisco"}


def rows(wheel: zipfile.ZipFile, name: str) -> Iterator[dict[str, str]]:
    with wheel.open(f"vega_datasets/_data/{name}.csv") as raw:
        yield from csv.DictReader(io.TextIOWrapper(raw, "utf-8"))


def iso(date: str) -> str:
    return datetime.fromisoformat(date.replace("/", "-")).isoformat() + PACIFIC


def events(wheel: zipfile.ZipFile) -> Iterator[dict[str, object]]:
    for name, city in HOURLY.items():
        for row in rows(wheel, name):
            yield {"time": iso(row["date"]), "city": city, "kind": "hour", "temperature_f": float(row["temp"])}
    for row in rows(wheel, "seattle-weather"):
        yield {
            "time": iso(row["date"]),
            "city": "Seattle",
            "kind": "day",
            "weather": row["weather"],
            "precipitation_mm": float(row["precipitation"]),
            "temperature_max_c": float(row["temp_max"]),
            "temperature_min_c": float(row["temp_min"]),
            "wind_ms": float(row["wind"]),
        }


def main() -> None:
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        for event in sorted(events(wheel), key=lambda event: (event["time"], event["city"])):
            print(json.dumps(event, separators=(",", ":")))


if __name__ == "__main__":
    main()
