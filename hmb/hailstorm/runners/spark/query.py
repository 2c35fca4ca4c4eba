"""Runs a topology on Spark: `on_spark` translates the topology into queries of Structured Streaming.

One machine is too small for some topics. Spark runs the same topology on a cluster. Two parts of Hailstorm are then not
needed: Spark's checkpoint replaces the snapshots, and Spark's driver (the process that controls a query) replaces the
negotiator (the part that controls the snapshots). The functions of the topology do not change. Its states do not change
either: they are commutative monoids, so their values do not depend on the order in which Spark merges the tuples. Each
node of the topology becomes a part of a query:
    node of the topology            part of the query
    spout                           readStream.format("hmb"), and `convert` in mapInPandas
    bolt without a state            `transform` in mapInPandas
    bolt with a state               group by instance, and transformWithStateInPandas; one state for each instance
    sink                            foreachBatch; Spark's driver calls the sink's function

A row that goes from one node of the topology to the next node contains a tuple (the column `item`) and its origin (the
other columns). The first three columns of the origin name the record from which the tuple was made. The column `path`
lists the nodes that made the tuple. The column `number` contains one index for each of these nodes, because a node can
make several outputs from one input. All these values are the same as without Spark, so an `IdempotentSink` receives
each tuple with the same identity. In this example, the spout `lines` made its first output (index 0) from the record at
offset 7, and the bolt `split` made its fourth output (index 3) from this line:
    topic  partition  offset  path          number   item
    words  0          7       lines/split   [0, 3]   the tuple, encoded by Hailstorm's codec (bytes)

Spark takes the records in micro-batches. In each micro-batch, every instance of a bolt reads its state from Spark's
state store, processes its tuples, and writes the new state back. If a crash happens before Spark has committed the
micro-batch, Spark repeats the micro-batch with the old state. The states therefore include each record exactly once.

After a crash, a sink may receive the tuples of a micro-batch again. A `Sink` then writes some outputs twice. An
`IdempotentSink` writes them with the same identity again, so its target can overwrite them, and holds each output once.
The other two kinds of sinks, `HeldBackSink` and `TransactionalSink`, hold outputs back until a snapshot is complete.
Spark's checkpoint cannot store these outputs, so `on_spark` refuses both kinds.

**Late tuples.** Without Spark, the spouts drop late records, and the bolts drop closed windows. On Spark, a bolt keeps
every window and drops nothing. If no record is late, both results are equal. If some records are late, only Spark's
result includes them.

**Combiners.** Without Spark, a sender merges the tuples of a batch by key before it sends them to a bolt with
`combine=True`. For example, three tuples "sun" become ("sun", 3). The bolt then computes outputs once for each key and
batch. On Spark, each tuple reaches the bolt separately, so the bolt computes outputs for each tuple. The states of the
bolt are the same in both cases.

The operator `transformWithState` needs Spark's RocksDB state store, and Python's `protobuf`. One query can contain
several of these operators. The older operator `applyInPandasWithState` can occur only once in a query.

Source: Hailstorm, chapter 6, "Next Steps", which suggests jobs on a cluster; SPARK-45939 (transformWithState).
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
    """A record as Spark's workers read it, with the fields of a `ConsumerRecord` that `convert` uses."""

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

    `checkpoint` is a directory. Each query has its own directory inside it, and continues from this directory at its
    next start. With `until_end`, a query ends after it has read all records that the topics contain at its start.
    `security` contains the settings of TLS and SASL by Kafka's names, as for `hmb.Consumer`. Raises TopologyError for a
    sink that Spark cannot run.
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
    """Return the rows of a spout: one row for each record of its topic that `convert` turns into a tuple."""
    frame = session.readStream.format("hmb").options(**_options(spout, client)).load()
    name, convert = node.name, spout.convert

    def rows(frames: Frames) -> Frames:
        return _frames(frames, lambda frame: _converted(frame, name, convert))

    return frame.mapInPandas(rows, ROW)


def _options(spout: Spout, client: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the data source that reads the topic of a spout. `client` contains Kafka's settings."""
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

    Each row has columns that name the record from which its tuple was made: the topic, the partition and the offset.
    The function copies these columns from the input row to its output rows. It appends `name` to the column `path`, and
    the index of the output to the column `number`.
    """
    for topic, partition, offset, path, number, item in frame[_COLUMNS].itertuples(index=False):
        for index, made in enumerate(transform(decode(item))):
            yield topic, partition, offset, f"{path}/{name}", (*number, index), encode(made)


_COLUMNS = ["topic", "partition", "offset", "path", "number", "item"]


def _frames(frames: Frames, rows: Callable[[pd.DataFrame], Iterator[Row]]) -> Frames:
    """Yield a new data frame for each data frame in `frames`: it contains the rows that the function `rows` returns."""
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
