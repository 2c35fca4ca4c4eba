"""A topology whose sink raises errors. An environment variable contains the path of a file that lists these errors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.sink import HeldBackSink, Sink, TransactionalSink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.targets import SqliteTarget
from hmb.hailstorm.topology import Topology


def failure() -> Exception | None:
    """Return the exception that the next call of the sink raises, or None.

    The file HAILSTORM_TEST_ERRORS has one line for each exception to raise: ValueError or OSError.
    """
    path = Path(os.environ["HAILSTORM_TEST_ERRORS"])
    kind, *left = [*path.read_text().splitlines(), ""]
    path.write_text("\n".join(left))
    return {"ValueError": ValueError("no such city"), "OSError": OSError("the disk is away")}.get(kind)


def write(*_: Any) -> None:
    if (error := failure()) is not None:
        raise error


def write_held(items: Sequence[Any], clock: Clock) -> None:
    write()
    with Path(os.environ["HAILSTORM_TEST_OUTPUT"]).open("a") as output:
        output.writelines(f"{item}\n" for item in items)


def target() -> SqliteTarget:
    return SqliteTarget(os.environ["HAILSTORM_TEST_OUTPUT"] + ".db", "INSERT INTO missing VALUES (?)")


def make_topology() -> Topology:
    made = Topology("failing")
    made.spout("words", Spout(os.environ["HAILSTORM_TEST_TOPIC"]))
    made.bolt("plain", Bolt.stateless(lambda word: [word]), after="words")
    sinks = {"once": Sink(write), "held": HeldBackSink(write_held), "sql": TransactionalSink(target)}
    made.sink("out", sinks[os.environ["HAILSTORM_TEST_SINK"]], after="plain")
    return made


topology = make_topology() if "HAILSTORM_TEST_SINK" in os.environ else None
