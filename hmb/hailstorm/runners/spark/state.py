"""Runs a stateful bolt in Spark. A bolt has several instances, and Spark stores one state for each instance.

Python can import all other modules of Hailstorm without PySpark. Only this module imports PySpark at the top of its
file.

Spark stores one key and one state for each instance of a bolt:
    key     the number of the instance, from 0 to parallelism - 1
    state   the state of the instance, encoded by Hailstorm's codec
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.runners.spark.query import STATE, _frames, _outputs

if TYPE_CHECKING:
    import pandas as pd


class BoltProcessor(StatefulProcessor):
    """A bolt that runs on Spark: it merges each tuple into the state, and returns the outputs of `transform`."""

    def __init__(self, name: str, bolt: Bolt) -> None:
        self._name, self._bolt = name, bolt

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._stored = handle.getValueState("state", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Process the tuples that one instance of the bolt receives in one micro-batch."""
        bolt = self._bolt
        stored = self._stored.get()  # The state is None before the first micro-batch.
        state = bolt.monoid.empty() if stored is None else bolt.monoid.from_value(decode(bytes(stored[0])))

        def transform(item: Any) -> Iterable[Any]:
            nonlocal state
            state = bolt.monoid.absorb(state, bolt.lift(item))
            return tuple(bolt.transform(item, state))

        yield from _frames(rows, lambda frame: _outputs(frame, self._name, transform))
        self._stored.update((encode(bolt.monoid.to_value(state)),))

    def close(self) -> None:
        """Do nothing, because this class holds no resources."""
