"""Runs a topology on Spark: `on_spark` translates the topology into queries of Structured Streaming.

Some topics are too large for one machine. Spark runs a topology on a cluster, and replaces two parts of Hailstorm:
- Spark's checkpoint replaces the snapshots.
- Spark's driver, the process that controls a query, replaces the negotiator, which controls the snapshots.

The functions of a topology run on Spark without changes. Spark can process the tuples in another order than
Hailstorm. If no record is late, the bolts still compute the same states, because the states are commutative
monoids.

A bolt with a state runs as one or more *instances*. Their number is the bolt's `parallelism`. Each instance has
its own state. All tuples with the same key go to the same instance. Each node becomes a part of a query:
    node of the topology            part of the query
    spout                           readStream.format("hmb"), and `convert` in mapInPandas
    bolt without a state            `transform` in mapInPandas
    bolt with a state               groupBy("instance"), and transformWithStateInPandas
    sink                            foreachBatch, which calls the sink's function in Spark's driver

Nodes exchange rows. Each row contains a tuple (`item`), the position of its record (`topic`, `partition`,
`offset`), and the nodes that made the tuple (`path`). For each of these nodes, `number` contains an index: 0
for the node's first output from one input, 1 for the second output.

For example, the spout `lines` makes a tuple (index 0) from the record at offset 7. From this tuple, the bolt
`split` makes several tuples. The fourth of them (index 3) has this row:
    topic  partition  offset  path          number   item
    words  0          7       lines/split   [0, 3]   the tuple, encoded by Hailstorm's codec (bytes)

An `IdempotentSink` identifies each tuple by five columns of its row: `topic`, `partition`, `offset`, `path` and
`number`. These five values are the same with and without Spark.

Spark takes the records in micro-batches. In each micro-batch, every bolt instance that receives tuples reads
its state from Spark's state store, processes these tuples, and writes the new state back. If a crash happens
before Spark has committed the micro-batch, Spark repeats the micro-batch with the old state. The states
therefore include each record exactly once.

After a crash, Spark may pass the tuples of a micro-batch to the sink again. A sink of the class `Sink` then
writes some outputs twice. An `IdempotentSink` writes both copies with the same identity, so its target can
overwrite the first copy with the second.

The classes `HeldBackSink` and `TransactionalSink` keep outputs until a snapshot is complete. Spark's checkpoint
cannot store these outputs, so `on_spark` refuses both classes.

**Late tuples.** Without Spark, a spout drops late records, and a bolt deletes the state of each closed window.
On Spark, nothing is dropped or deleted: every record counts, and a bolt keeps the states of all windows. If no
record is late, each window gets the same state with and without Spark. If some records are late, only Spark's
states include them.

**Combiners.** The option `combine=True` of a bolt has an effect only without Spark: within each batch, the
sender merges all tuples with the same key. For example, three tuples "sun" become ("sun", 3). The bolt then
computes outputs once for each key of the batch. On Spark, it computes outputs for each tuple. The bolt's state
is the same in both cases.

The operator `transformWithState` needs Spark's RocksDB state store, and Python's `protobuf`. One query can contain
several of these operators. The older operator `applyInPandasWithState` can occur only once in a query.

Source: Hailstorm, chapter 6, "Next Steps" (jobs on a cluster), and SPARK-45939 (`transformWithState`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.grouping import instance_of
from hmb.hailstorm.monoids.base import NoState
from hmb.hailstorm.payload import Number, TupleId
from hmb.hailstorm.sink import IdempotentSink, Sink
from hmb.hailstorm.spout import Spout
from hmb.hailstorm.topology import Declaration, Topology

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ORIGIN = "topic string, partition int, offset long, path string, number array<int>"
ROW = f"{ORIGIN}, item binary"
STATE = "state binary"
PROVIDER = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER_SETTING = "spark.sql.streaming.stateStore.providerClass"

Frames = Iterator["pd.DataFrame"]
Row = tuple[str, int, int, str, Number, bytes]


class SparkRecord(NamedTuple):
    """A record that a spout on Spark passes to its function `convert`.

    It has all fields of `ConsumerRecord` except `timestamp_type`.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int  # ms since 1970
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def on_spark(
    topology: Topology,
    session: SparkSession,
    bootstrap_servers: str,
    checkpoint: str,
    *,
    until_end: bool = False,
    security: Mapping[str, str] | None = None,
) -> list[StreamingQuery]:
    """Start one streaming query for each sink of a topology, and return the queries.

    Each query saves its progress in its own folder inside the directory `checkpoint`. If the query is started
    again, it continues from the saved progress.

    If `until_end` is true, a query ends when it has read all records that existed at the start of the query.

    `security` contains settings for TLS and SASL. The keys are the names of Kafka's settings, for example
    `security.protocol`.

    Raises TopologyError if the topology has a sink that Spark cannot run.
    """
    nodes = topology.in_order()
    sinks = [node for node in nodes if isinstance(node.runs, Sink | IdempotentSink)]
    refused = [node.name for node in nodes if not isinstance(node.runs, Spout | Bolt | Sink | IdempotentSink)]
    if refused:
        raise TopologyError(f"{', '.join(refused)}: Spark runs Sink and IdempotentSink only")
    session.conf.set(PROVIDER_SETTING, PROVIDER)
    client = {"bootstrap.servers": bootstrap_servers, **(security or {})}
    return [_start(topology, sink, session, client, f"{checkpoint}/{sink.name}", until_end) for sink in sinks]


def _start(
    topology: Topology,
    sink: Declaration,
    session: SparkSession,
    client: Mapping[str, str],
    checkpoint: str,
    until_end: bool,
) -> StreamingQuery:
    frames: dict[str, DataFrame] = {}
    for node in topology.in_order():
        if isinstance(node.runs, Spout):
            frames[node.name] = _records(node, node.runs, session, client)
        elif isinstance(node.runs, Bolt):
            frames[node.name] = _bolt(node, node.runs, _union(frames, node))
    writer = _union(frames, sink).writeStream.foreachBatch(_writer(sink)).queryName(f"{topology.name}-{sink.name}")
    writer = writer.option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if until_end else writer).start()


def _union(frames: dict[str, DataFrame], node: Declaration) -> DataFrame:
    return reduce(lambda one, other: one.union(other), (frames[before] for before in node.after))


# -- spouts


def _records(node: Declaration, spout: Spout, session: SparkSession, client: Mapping[str, str]) -> DataFrame:
    """Return the rows of a spout, one for each tuple that `convert` makes from a record of the topic."""
    frame = session.readStream.format("hmb").options(**_options(spout, client)).load()
    name, convert = node.name, spout.convert

    def rows(frames: Frames) -> Frames:
        return _frames(frames, lambda frame: _converted(frame, name, convert))

    return frame.mapInPandas(rows, ROW)


def _options(spout: Spout, client: Mapping[str, str]) -> dict[str, str]:
    """Return the options with which Spark reads a spout's topic.

    `client` contains settings of a Kafka client, such as `bootstrap.servers`.
    """
    return {
        **{f"kafka.{name}": value for name, value in client.items()},
        "subscribe": spout.topic,
        "startingOffsets": spout.offset,
        "includeHeaders": "true",
        "kafka.isolation.level": spout.isolation_level,
    }


def _converted(frame: pd.DataFrame, name: str, convert: Callable[[Any], Any]) -> Iterator[Row]:
    for row in frame.itertuples(index=False):
        headers = () if row.headers is None else tuple((each["key"], each["value"]) for each in row.headers)
        milliseconds = row.timestamp.value // 1_000_000
        record = SparkRecord(row.topic, row.partition, row.offset, milliseconds, row.key, row.value, headers)
        item = convert(record)
        if item is not None:
            yield row.topic, row.partition, row.offset, name, (0,), encode(item)


# -- bolts


def _bolt(node: Declaration, bolt: Bolt, frame: DataFrame) -> DataFrame:
    """Return the rows that a bolt sends. `frame` contains the rows that the bolt receives."""
    name, transform, group, parallelism = node.name, bolt.transform, node.group, node.parallelism
    if isinstance(bolt.monoid, NoState):

        def without_state(frames: Frames) -> Frames:
            return _frames(frames, lambda frame: _outputs(frame, name, lambda item: transform(item, None)))

        return frame.mapInPandas(without_state, ROW)

    from hmb.hailstorm.runners.spark.state import BoltProcessor

    def with_instance(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.assign(instance=[instance_of(group(decode(item)), parallelism) for item in frame["item"]])

    grouped = frame.mapInPandas(with_instance, f"{ROW}, instance int").groupBy("instance")
    return grouped.transformWithStateInPandas(BoltProcessor(name, bolt), ROW, "Append", "None")


def _outputs(frame: pd.DataFrame, name: str, transform: Callable[[Any], Iterable[Any]]) -> Iterator[Row]:
    """Yield the rows that the bolt `name` makes from its input rows (`frame`).

    An output row keeps the `topic`, `partition` and `offset` of its input row, but gets a longer `path` and
    `number`.

    For example, an input row has the path "lines" and the number (0,). From this row, the bolt `split` makes
    several outputs. The fourth output (index 3) gets the path "lines/split" and the number (0, 3).
    """
    for topic, partition, offset, path, number, item in frame[_COLUMNS].itertuples(index=False):
        for index, made in enumerate(transform(decode(item))):
            yield topic, partition, offset, f"{path}/{name}", (*number, index), encode(made)


_COLUMNS = ["topic", "partition", "offset", "path", "number", "item"]


def _frames(frames: Frames, rows: Callable[[pd.DataFrame], Iterator[Row]]) -> Frames:
    """For each data frame in `frames`, yield a new data frame with the rows that the function `rows` makes from it."""
    import pandas as pd

    for frame in frames:
        yield pd.DataFrame(list(rows(frame)), columns=_COLUMNS)


# -- sinks


def _writer(node: Declaration) -> Callable[[DataFrame, int], None]:
    """Return a function that passes each row of a micro-batch to the sink."""
    sink = node.runs

    def write(frame: DataFrame, _batch: int) -> None:
        for row in frame.orderBy("topic", "partition", "offset", "number").toLocalIterator():
            item = decode(bytes(row["item"]))
            if isinstance(sink, IdempotentSink):
                number = tuple(row["number"])
                sink.write(TupleId(row["topic"], row["partition"], row["offset"], row["path"], number), item)
            elif isinstance(sink, Sink):
                sink.write(item)

    return write
