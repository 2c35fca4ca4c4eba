"""Four tables of a broker's state: its partitions, its groups, its APIs and its clients.

A row is a dict with one value for each column. Most rows also have the key PART. Its value is the data from which the
row was made. For example, a group's row shows the number of members, and its value for PART contains the members
themselves. When the user of `hmb top` opens the row with Enter, `opened.py` makes a table of these members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hmb.units import MS_PER_S

from ..shared.output import plural
from .source import State
from .trends import lag_of, trend_of

Row = dict[str, Any]
PART = "part"
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class TableView(NamedTuple):
    columns: Sequence[str]
    rows: Callable[[State], list[Row]]
    keys: Sequence[str]  # columns that identify a row
    counter: str  # the column with a count; the column `rate` shows how much this count grows per second
    sorted_by: str  # the default column by which `hmb top` sorts the rows, in descending order


def missing(state: State) -> dict[str, str]:
    """Return which parts of the state are not available, as a dict: name of the part -> reason."""
    found: dict[str, str] = state.get("missing", {})
    return found


def reason(state: State, view: str) -> str | None:
    """Return the reason why a view is not available, or None if it is available."""
    return missing(state).get("connections" if view == "clients" else view)


def partitions(state: State) -> list[Row]:
    """Return one row for each partition."""
    return [
        {
            "topic": topic["name"],
            "partition": partition["partition"],
            "log_start": partition["log_start_offset"],
            "stable": partition["last_stable_offset"],
            "log_end": partition["log_end_offset"],
            "bytes": partition["bytes"],
            "segments": None if "segments" in missing(state) else len(partition["segments"]),
            "producers": len(partition["producers"]),
            "error": partition["error"],
            PART: partition,
        }
        for topic in state["topics"]
        for partition in topic["partitions"]
    ]


def groups(state: State) -> list[Row]:
    """Return one row for each group, with the group's total lag in records and its longest lag in seconds."""
    return [_group(group, state) for group in state["groups"]]


def _group(group: dict[str, Any], state: State) -> Row:
    lags = [*group["lags"], [state["time"], lag_of(group)]]
    trend = trend_of(lags)
    return {
        "group": group["group_id"],
        "type": group["type"],
        "state": group["state"],
        "members": len(group["members"]),
        "partitions": len(group["positions"]),
        "committed": sum(each["committed_offset"] for each in group["positions"]),
        "lag": lag_of(group),
        "lag_s": None if "lag_ms" in missing(state) else _seconds(group["positions"]),
        "trend": None if trend is None else trend.word,
        "lag_change": None if trend is None else trend.per_second,
        "lags": lags,
        PART: group,
    }


def _seconds(positions: list[dict[str, Any]]) -> float:
    return max((each["lag_ms"] or 0 for each in positions), default=0) / MS_PER_S


def requests(state: State) -> list[Row]:
    """Return one row for each API that a client has used."""
    return [
        {
            "api": api["api"],
            "count": api["count"],
            "errors": api["errors"],
            "record_bytes": api["record_bytes"],
            "mean_ms": round(api["total_ms"] / api["count"], 2),
            "p50_ms": round(api["p50_ms"], 2),
            "p99_ms": round(api["p99_ms"], 2),
            PART: state.get("slowest", {}).get(api["api"], []),
        }
        for api in state["requests"]
    ]


def clients(state: State) -> list[Row]:
    """Return one row for each connection."""
    return [
        {
            "client": it["client"],
            "client_id": it["client_id"],
            "software": it["software"],
            "last_api": it["last_api"],
            "codec": it["codec"],
            "producer_id": it["producer_id"],
            "requests": it["requests"],
        }
        for it in state["connections"]
    ]


VIEWS: Mapping[str, TableView] = {
    "partitions": TableView(
        ("topic", "partition", "log_start", "stable", "log_end", "bytes", "segments", "producers", "error"),
        partitions, keys=("topic", "partition"), counter="log_end", sorted_by="rate",
    ),
    "groups": TableView(
        ("group", "type", "state", "members", "partitions", "committed", "lag", "lag_s", "trend"),
        groups, keys=("group",), counter="committed", sorted_by="lag",
    ),
    "requests": TableView(
        ("api", "count", "errors", "record_bytes", "mean_ms", "p50_ms", "p99_ms"),
        requests, keys=("api",), counter="count", sorted_by="rate",
    ),
    "clients": TableView(
        ("client", "client_id", "software", "last_api", "codec", "producer_id", "requests"),
        clients, keys=("client",), counter="requests", sorted_by="rate",
    ),
}  # fmt: skip


def headline(state: State) -> str:
    """Return one line about the broker, for example "127.0.0.1:9092, up 5 s, 3 topics, 12 partitions, 4.0 MiB"."""
    counted = sum(len(topic["partitions"]) for topic in state["topics"])
    size = sum(partition["bytes"] or 0 for topic in state["topics"] for partition in topic["partitions"])
    parts = [",".join(state["addresses"])]
    if state["started"] is not None:
        parts.append(f"up {(state['time'] - state['started']) // MS_PER_S:,} s")
    return ", ".join((*parts, plural(len(state["topics"]), "topic"), plural(counted, "partition"), size_text(size)))


def size_text(size: float) -> str:
    """Return a number of bytes as a short text, for example "4.0 MiB"."""
    for unit in UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {UNITS[-1]}"
