"""Word count with each of the stream processors in Python. All processors compute the same result.

This command is an example:
    python -m hmb.bench.streams.word_count hailstorm 127.0.0.1:9092 1000000

The arguments are the name of a stream processor, the address of a broker, and the number of records in a topic.
Each record contains one word. The stream processor counts these words. At the end, the program prints one line
of JSON with two numbers: the seconds that the stream processor took, and the number of words that it counted.

This list contains the names of the stream processors. A stream processor runs in one process, except if the list
mentions its worker processes:
    hailstorm                           threads, a snapshot every second, and a combiner; before Hailstorm sends
                                        a batch, the combiner merges equal words into one row with their count
    hailstorm-no-snapshots              like `hailstorm`, but the only snapshot is at the end
    hailstorm-no-combiner               like `hailstorm`, but without the combiner
    hailstorm-1-process                 like `hailstorm`, but with one worker process instead of threads
    hailstorm-2-processes               like `hailstorm`, but with two worker processes instead of threads
    hailstorm-2-processes-no-combiner   like `hailstorm-2-processes`, but without the combiner
    hailstorm-2-processes-killed        two worker processes, and a snapshot every 0.1 s; the program kills one
                                        worker, and prints the seconds until Hailstorm has recovered
    bytewax                             bytewax, without recovery after a crash
    quixstreams                         quixstreams, with a changelog topic; after a crash, it can count a word
                                        twice

In Hailstorm, spouts read the topic. In this benchmark, a spout reads up to 10,000 records at once, which is more than
the default. With such large reads, the first results appear later, but this benchmark needs only the final results.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from hmb.client import ConsumerRecord
from hmb.hailstorm import Bolt, Clock, DirectorySnapshotStore, Spout, Sum, Topology, start
from hmb.hailstorm.runners import ProcessRunner, Runner

TOPIC = "words"
POLL_RECORDS = 10_000
LOOK_INTERVAL = 0.002  # seconds


def word(record: ConsumerRecord) -> bytes | None:
    value: bytes | None = record.value
    return value


def itself(item: bytes) -> bytes:
    return item


def one(item: bytes) -> int:
    return 1


def nothing(item: bytes, counts: dict[bytes, int]) -> tuple[()]:
    return ()


def word_count(*, combine: bool) -> Topology:
    made = Topology("words")
    made.spout("words", Spout(TOPIC, word))
    count = Bolt.keyed(Sum(), itself, one, nothing, combine=combine)
    made.bolt("count", count, after="words", group=itself, parallelism=2)
    return made


topology, without_combiner = word_count(combine=True), word_count(combine=False)
KILLED = "hailstorm-2-processes-killed"
VARIANTS: dict[str, tuple[Topology, dict[str, Any]]] = {
    "hailstorm": (topology, {"until": "end"}),
    "hailstorm-no-snapshots": (topology, {"until": "end", "grace_period": None}),
    "hailstorm-no-combiner": (without_combiner, {"until": "end"}),
    "hailstorm-1-process": (topology, {"until": "end", "workers": 1}),
    "hailstorm-2-processes": (topology, {"until": "end", "workers": 2}),
    "hailstorm-2-processes-no-combiner": (without_combiner, {"until": "end", "workers": 2}),
    KILLED: (topology, {"workers": 2, "grace_period": 0.1}),
}


def count_with_hailstorm(servers: str, name: str, total: int) -> dict[str, float]:
    """Count words with the variant `name` of Hailstorm. Return the number of words.

    The variant KILLED kills a worker process. For this variant, also return the time (s) of the recovery.
    """
    counted, options = VARIANTS[name]
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="hmb-words-") as directory:
        store = DirectorySnapshotStore(directory)
        with start(counted, servers, store, poll_records=POLL_RECORDS, **options) as runner:
            if name == KILLED:
                figures["recovery_seconds"] = kill_a_worker(runner)
                look_until(runner, lambda: included(runner) >= total)
                runner.request_stop()
            result = runner.wait()
    return {**figures, "words": sum(result.states["count"].values())}


def kill_a_worker(runner: Runner) -> float:
    """Kill a worker process after the first snapshot. Return the time (s) until the spouts read records again."""
    assert isinstance(runner, ProcessRunner)
    look_until(runner, lambda: included(runner) > 0)
    assert runner.master is not None
    epoch, killed_at = runner.master.epoch, time.perf_counter()
    logging.getLogger("hmb").setLevel(logging.ERROR)  # Hide the runner's warning about the killed worker.
    runner.workers[0].process.kill()
    look_until(runner, lambda: flows(runner) and runner.master is not None and runner.master.epoch > epoch)
    return time.perf_counter() - killed_at


def included(runner: Runner) -> int:
    """Return how many records the newest complete snapshot includes, or 0 if no snapshot is complete."""
    return sum(((runner.master and runner.master.completed) or Clock()).values())


def flows(runner: Runner) -> bool:
    return runner.master is not None and runner.master.lets_spouts_flow


def look_until(runner: Runner, condition: Callable[[], bool]) -> None:
    """Wait until `condition` returns true. In the meantime, start dead worker processes again."""
    while not condition():
        runner.supervise()
        time.sleep(LOOK_INTERVAL)


def count_with_bytewax(servers: str, total: int) -> int:
    """Count the words with bytewax. Return the number of counted words."""
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
    """Count the words with quixstreams until it has read `total` records. Return the number of counted words."""
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
    if name in VARIANTS:
        figures = count_with_hailstorm(servers, name, total)
    else:
        count = {"bytewax": count_with_bytewax, "quixstreams": count_with_quixstreams}[name]
        figures = {"words": count(servers, total)}
    print(json.dumps({"seconds": time.perf_counter() - started, **figures}))


if __name__ == "__main__":
    main()
