"""The detail tables of `hmb top`: a partition's segments, a group's members, an API's slow requests.

In `hmb top`, the user can select a row, for example a consumer group, and press Enter. `hmb top` then shows a
detail table, for example the group's members. The functions of this module make the rows of the detail table.
The selected row contains the necessary data under the key `PART` (views.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from hmb.units import EPOCH, MS_PER_S

from .source import SINGLE_REQUESTS
from .views import PART, Row

GREATEST_DATE = 253_402_300_799_999  # ms since 1970: the end of the year 9999


class OpenedView(NamedTuple):
    """The table that `hmb top` shows when the user opens a row with Enter: for example, the members of a group."""

    title: str
    columns: Sequence[str]
    rows: Callable[[Any], list[Row]]
    keys: Sequence[str]  # columns that identify a row
    sorted_by: str
    # `missing` is a key of the dict `state["missing"]`. If the broker's state lacks the table's data, the table's
    # heading shows the value of this key: the reason. The default "" is for data that every state contains.
    missing: str = ""
    empty: str = ""  # the text in place of the rows, if no row exists


def segments(partition: dict[str, Any]) -> list[Row]:
    """Return one row for each segment of a partition."""
    return [
        {
            "base_offset": segment["base_offset"],
            "bytes": segment["bytes"],
            "batches": segment["batches"],
            "offset_index": segment["offset_index_entries"],
            "time_index": segment["time_index_entries"],
            "first_time": time_text(segment["first_timestamp"]),
            "last_time": time_text(segment["max_timestamp"]),
        }
        for segment in partition["segments"]
    ]


def members(group: dict[str, Any]) -> list[Row]:
    """Return the rows that `hmb top` shows when the user opens a group.

    - Each partition that a member owns has a row.
    - A partition without an owner has a row if the group has committed an offset in this partition.
    - A member without partitions has a row, so that the table shows every member.
    """
    positions = {f"{each['topic']}-{each['partition']}": each for each in group["positions"]}
    pairs = [(member, name) for member in group["members"] for name in member["partitions"] or [None]]
    owned = {name for _, name in pairs}
    pairs += [({}, name) for name in positions if name not in owned]
    return [_member(member, name, positions.get(name, {})) for member, name in pairs]


def _member(member: dict[str, Any], partition: str | None, position: dict[str, Any]) -> Row:
    lag_ms = position.get("lag_ms")
    return {
        "client_id": member.get("client_id"),
        "partition": partition,
        "committed": position.get("committed_offset"),
        "lag": position.get("lag"),
        "lag_s": None if lag_ms is None else lag_ms / MS_PER_S,
        "host": member.get("client_host"),
        "last_heartbeat": time_text(member.get("last_heartbeat")),
        "member_id": member.get("member_id"),
    }


def slowest(requests: list[dict[str, Any]]) -> list[Row]:
    """Return one row for each of the slowest requests of an API."""
    return [
        {
            "ms": each["ms"],
            "version": each["version"],
            "client_id": each["client_id"],
            "client": each["client"],
            "time": time_text(each["time"]),
            "contains": each["note"],
            "errors": ", ".join(each["errors"]),
            "number": each["number"],
        }
        for each in requests
    ]


SEGMENTS = OpenedView(
    "segments",
    ("base_offset", "bytes", "batches", "offset_index", "time_index", "first_time", "last_time"),
    segments, keys=("base_offset",), sorted_by="base_offset", missing="segments",
)  # fmt: skip
OPENED: Mapping[str, OpenedView] = {
    "partitions": SEGMENTS,
    "groups": OpenedView(
        "members and committed offsets",
        ("client_id", "partition", "committed", "lag", "lag_s", "host", "last_heartbeat", "member_id"),
        members, keys=("member_id", "partition"), sorted_by="lag",
        empty="the group has no member and no committed offset",
    ),
    "requests": OpenedView(
        "slowest requests since you opened the view of requests",
        ("ms", "version", "client_id", "client", "time", "contains", "errors"),
        slowest, keys=("number",), sorted_by="ms", missing=SINGLE_REQUESTS,
        empty="no client has sent such a request since then",
    ),
}  # fmt: skip


def with_opened(view: str, row: Row) -> Row:
    """Return a copy of `row` for `--json`. The field `opened` of the copy contains the inner rows.

    In `hmb top`, the user opens a row with Enter and then sees its inner rows: for example, the members of a group. In
    some views, the user cannot open rows. The copy of such a row has no field `opened`.
    """
    shown = {name: value for name, value in row.items() if name != PART}
    return shown | {"opened": OPENED[view].rows(row[PART])} if view in OPENED else shown


def time_text(timestamp: int | None) -> str | None:
    """Return a time (ms since 1970) in UTC, for example 2026-11-25T12:00:00.250Z.

    A client can send a timestamp that is later than the year 9999. For such a timestamp, return the number of ms.
    """
    if timestamp is None or timestamp < 0:
        return None
    if timestamp > GREATEST_DATE:
        return f"{timestamp} ms"
    return f"{(EPOCH + timedelta(milliseconds=timestamp)):%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03}Z"
