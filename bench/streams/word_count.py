"""Word count with the stream processors of Python: one program for each, with the same result.

    python -m hmb.bench.streams.word_count hailstorm 127.0.0.1:9092 words

The program counts the words of a topic, one word in each record. It stops at the end offsets that the topic has at the
start. It prints one line of JSON: the seconds from the start of the processor to its end, and the number of words that
it counted. Each processor uses one process, unless its name says otherwise:

    hailstorm               threads, a snapshot every second
    hailstorm-no-snapshots  threads, one snapshot at the end
    hailstorm-1-process     a worker process
    hailstorm-2-processes   two worker processes
    bytewax                 without recovery
    quixstreams             at least once, with a changelog topic
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

from hmb.client import ConsumerRecord
from hmb.hailstorm import Bolt, DirectorySnapshotStore, Spout, Sum, Topology, run

TOPIC = "words"
OPTIONS: dict[str, dict[str, Any]] = {
    "hailstorm": {},
    "hailstorm-no-snapshots": {"grace_period": None},
    "hailstorm-1-process": {"workers": 1},
    "hailstorm-2-processes": {"workers": 2},
}


def word(record: ConsumerRecord) -> bytes | None:
    value: bytes | None = record.value
    return value


def itself(item: bytes) -> bytes:
    return item


def one(item: bytes) -> int:
    return 1


def nothing(item: bytes, counts: dict[bytes, int]) -> tuple[()]:
    return ()


topology = Topology("words")
topology.spout("words", Spout(TOPIC, word))
topology.bolt("count", Bolt.keyed(Sum(), itself, one, nothing), after="words", group=itself, parallelism=2)


def count_with_hailstorm(servers: str, options: dict[str, Any]) -> int:
    """Return the number of words that the final states contain."""
    with tempfile.TemporaryDirectory(prefix="hmb-words-") as directory:
        result = run(topology, servers, DirectorySnapshotStore(directory), until="end", **options)
    return sum(result.states["count"].values())


def count_with_bytewax(servers: str, total: int) -> int:
    """Return the number of words that bytewax counted."""
    import bytewax.operators as op
    from bytewax.connectors.kafka import operators as kafka
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, run_main

    flow = Dataflow("words")
    records = kafka.input("records", flow, brokers=[servers], topics=[TOPIC], tail=False, batch_size=1000)
    found: list[tuple[str, int]] = []
    words = op.map("value", records.oks, lambda record: (record.value or b"").decode())
    counts = op.count_final("count", words, lambda word: word)
    op.output("out", counts, TestingSink(found))
    start: Any = run_main
    start(flow)
    return sum(number for _, number in found)


def count_with_quixstreams(servers: str, total: int) -> int:
    """Count words with quixstreams until it has read `total` records. Return the number of words that it counted."""
    from quixstreams import Application

    counted = 0

    def count(value: str, state: Any) -> None:
        nonlocal counted
        state.set(value, state.get(value, 0) + 1)
        counted += 1

    with tempfile.TemporaryDirectory(prefix="hmb-words-") as directory:
        application = Application(
            servers, consumer_group=f"words-{time.time_ns()}",
            auto_offset_reset="earliest", state_dir=directory, loglevel="ERROR"
        )
        frame = application.dataframe(application.topic(TOPIC, key_deserializer="bytes", value_deserializer="string"))
        frame.update(count, stateful=True)
        application.run(count=total)
    return counted


def main() -> None:
    name, servers, total = sys.argv[1], sys.argv[2], int(sys.argv[3])
    started = time.perf_counter()
    if name in OPTIONS:
        counted = count_with_hailstorm(servers, OPTIONS[name])
    else:
        counted = {"bytewax": count_with_bytewax, "quixstreams": count_with_quixstreams}[name](servers, total)
    print(json.dumps({"seconds": time.perf_counter() - started, "words": counted}))


if __name__ == "__main__":
    main()
