"""What grows with the work, and what does not: four things made larger, HMB's broker only.

    hmb bench growth                        # all four
    hmb bench growth --of connections log

    connections   1 to 1,000: records/s that are left, p99 of a request
    partitions    1 to 2,000: the start to the first answer, after a clean stop and after a kill; memory, open files
    fetch         answers of 1 MB to 100 MB: MB/s
    log           1 GB to 50 GB (sparse: it takes little disk): an append, a read at the end, a read anywhere

`hmb bench plot` draws the curves.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial

from hmb.protocol.messages.fetch import FetchRequest
from hmb.storage.manifest import CLEAN_SHUTDOWN

from . import connections, log_size, partitions, peers, topics
from .load import PRODUCE_VERSION, Load, produce_request, refuse_errors
from .progress import Progress
from .samples import Sample, Samples
from .suite import add_suite_options, run
from .tables import Table, by_parameters, spread, text
from .targets import Target

MB = 1_000_000
FETCH_VERSION = 12
FETCH_SECONDS = 3.0
CONNECTIONS = (1, 10, 100, 300, 1_000)
PARTITIONS = (1, 10, 100, 500, 2_000)
FETCHES = (1, 4, 16, 50, 100)
LOGS = (1, 5, 20, 50)
SUBJECTS = {
    "connections": "One producer a connection, all at once",
    "partitions": "The start of a broker that has partitions",
    "fetch": "Answers to a fetch, one after the other",
    "log": "One append, one read",
}
LABELS = {  # of each figure: what it is, and its unit
    "records_per_second": ("throughput", "records/s"),
    "p99_ms": ("p99 of a request", "ms"),
    "start_seconds": ("after a clean stop", "s to the first answer"),
    "start_after_kill_seconds": ("after a kill", "s to the first answer"),
    "resident_mb": ("resident memory", "MB"),
    "open_files": ("open files", "files"),
    "mb_per_second": ("throughput", "MB/s"),
    "append_us": ("append", "us"),
    "read_at_end_us": ("read at the end", "us"),
    "read_anywhere_us": ("read anywhere", "us"),
}

Measure = Callable[[int], dict[str, float]]


def of_connections(target: Target, count: int) -> dict[str, float]:
    options = argparse.Namespace(partitions=None, records=100, record_size=100, seconds=3.0)
    figures = connections.measure(target, count, options)
    return {name: figures[name] for name in ("records_per_second", "p99_ms")}


def of_partitions(count: int) -> dict[str, float]:
    broker = peers.Hmb()
    try:
        broker.start()  # it makes the directory's own files
        broker.stop()
        partitions.fill(broker.data_dir, count)
        clean = partitions.start(broker)
        (broker.data_dir / CLEAN_SHUTDOWN).unlink()
        killed = partitions.start(broker)
    finally:
        broker.stop()
        broker.remove()
    return {
        "start_seconds": clean.seconds,
        "start_after_kill_seconds": killed.seconds,
        "resident_mb": clean.resident / MB,
        "open_files": float(clean.files),
    }


def of_fetch(target: Target, megabytes: int) -> dict[str, float]:
    """How fast answers of this size come, one after the other on one connection."""
    topic = f"fetch-{megabytes}"
    topics.create(target.bootstrap, topic)
    batches = megabytes + 1
    with closing(Load(target.bootstrap, [(produce_request(topic, 0, 1, MB), PRODUCE_VERSION)], in_flight=1)) as load:
        while load.lines[0].answers < batches:
            load.run(0.1)
    partition = FetchRequest.FetchTopic.FetchPartition(partition=0, partition_max_bytes=megabytes * MB)
    wanted = FetchRequest.FetchTopic(topic=topic, partitions=[partition])
    request = FetchRequest(max_bytes=megabytes * MB, min_bytes=1, topics=[wanted])
    with topics.connect(target.bootstrap) as connection:
        got = fetched = 0
        begun = time.perf_counter()
        while (seconds := time.perf_counter() - begun) < FETCH_SECONDS or not got:
            response = connection.send(request, FETCH_VERSION)
            refuse_errors(response)
            got += 1
            fetched += len(response.responses[0].partitions[0].records)
    topics.delete(target.bootstrap, topic)
    return {"mb_per_second": fetched / MB / seconds}


def of_log(gigabytes: int) -> dict[str, float]:
    costs = log_size.measure(gigabytes * 1_000 * MB)
    return {"append_us": costs.append, "read_at_end_us": costs.read_at_end, "read_anywhere_us": costs.read}


def subjects(target: Target) -> dict[str, tuple[str, tuple[int, ...], Measure]]:
    """By name: the unit of the sizes, the sizes, and what is done with each."""
    return {
        "connections": ("connections", CONNECTIONS, partial(of_connections, target)),
        "partitions": ("partitions", PARTITIONS, of_partitions),
        "fetch": ("MB in an answer", FETCHES, partial(of_fetch, target)),
        "log": ("GB in the log", LOGS, of_log),
    }


def table(options: argparse.Namespace, stack: ExitStack, samples: Samples) -> Iterator[str]:
    broker = stack.enter_context(peers.Hmb(config={"fetch.max.bytes": str(200 * MB), "message.max.bytes": str(2 * MB)}))
    chosen = {name: each for name, each in subjects(Target.of(broker)).items() if name in options.of}
    progress = Progress(options.repeat * sum(len(sizes) for _, sizes, _ in chosen.values()))
    for name, (unit, sizes, measure) in chosen.items():
        for turn in range(options.repeat):
            for size in sizes:
                progress.step(f"{size} {unit}")
                figures = measure(size)
                samples.add(Sample("growth", "HMB", "load", turn, {"of": name, "unit": unit, "size": size}, figures))
    progress.end()
    yield from text(tables(samples.taken))


def tables(samples: Sequence[Sample]) -> list[Table]:
    found = []
    for (name, unit), of_subject in by_parameters(samples, "of", "unit").items():
        figures = list(of_subject[0].figures)
        rows = [[str(unit), *(", ".join(LABELS[figure]) for figure in figures)]]
        for (size,), runs in by_parameters(of_subject, "size").items():
            rows.append([f"{size:,}", *(str(spread(runs, figure)) for figure in figures)])
        found.append(Table(SUBJECTS[str(name)], rows))
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What grows with the work, and what does not.")
    names = ("connections", "partitions", "fetch", "log")
    parser.add_argument("--of", nargs="+", choices=names, default=names, help="only these; default: all four")
    add_suite_options(parser)
    return parser.parse_args()


def main() -> int:
    return run("growth", parse(), table)


if __name__ == "__main__":
    sys.exit(main())
