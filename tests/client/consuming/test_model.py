"""Compares the consumer with a model. After random steps, the consumer returns each partition's records in order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hmb.client import Consumer, Producer, TopicPartition

RECORDS = 120  # the number of records in each of the three partitions
PARTITIONS = [TopicPartition("model", number) for number in range(3)]
partition = st.sampled_from(PARTITIONS)
steps = st.one_of(
    st.tuples(st.sampled_from(["poll", "iterate"]), st.integers(1, 70)),
    st.tuples(st.just("arrow"), st.none()),
    st.tuples(st.just("seek"), st.tuples(partition, st.integers(0, RECORDS))),
    st.tuples(st.sampled_from(["pause", "resume"]), partition),
    st.tuples(st.just("assign"), st.sets(partition, min_size=1)),
)


@pytest.fixture(scope="module")
def written(servers: str) -> str:
    with Producer(servers, batch_size=300) as producer:
        for name, number in PARTITIONS:
            for offset in range(RECORDS):
                producer.send(name, b"%d of %d" % (offset, number), partition=number)
    return servers


def taken(consumer: Consumer, step: str, count: object) -> Iterator[tuple[int, int, bytes]]:
    """Yield the partition, the offset and the value of each record that the consumer returns in one step."""
    if step == "arrow":
        batch = consumer.poll_arrow(0.02)
        for row in batch.to_pylist() if batch is not None else []:
            yield row["partition"], row["offset"], row["value"]
        return
    assert isinstance(count, int)
    records = consumer.poll(0.02, count) if step == "poll" else islice(consumer, count)
    for record in records:
        yield record.partition, record.offset, record.value


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(steps, max_size=25))
def test_records_are_returned_in_order_from_the_position(written: str, actions: list[tuple[str, object]]) -> None:
    options = {"max_wait_ms": 5, "max_partition_bytes": 700}
    with Consumer(written, until="end", **options) as consumer:  # type: ignore[arg-type]
        consumer.assign(PARTITIONS)
        model = dict.fromkeys(PARTITIONS, 0)

        def check(records: Iterator[tuple[int, int, bytes]]) -> None:
            paused = consumer.paused
            for number, offset, value in records:
                it = TopicPartition("model", number)
                assert it not in paused
                assert (offset, value) == (model[it], b"%d of %d" % (offset, number))
                model[it] = offset + 1
            assert {it: consumer.position(it) for it in model} == model
            assert all(it.consumed <= it.fetch_offset for it in consumer._reader.positions.values())

        for step, what in actions:
            match step, what:
                case "seek", (TopicPartition() as it, int(offset)):
                    if it in model:
                        consumer.seek(it, offset)
                        model[it] = offset
                case "pause" | "resume", TopicPartition() as it:
                    if it in model:
                        getattr(consumer, step)(it)
                case "assign", set() as partitions:
                    consumer.assign(partitions)
                    model = dict.fromkeys(partitions, 0)
                case _:
                    if not consumer.at_end and consumer.paused != set(model):
                        check(taken(consumer, step if not (step == "iterate" and consumer.paused) else "poll", what))
            if step == "iterate" and consumer.at_end:
                break  # The iteration has closed the consumer.
        else:
            consumer.resume(*model)
            while not consumer.at_end:
                check(taken(consumer, "poll", 70))
        assert model == dict.fromkeys(model, RECORDS)
