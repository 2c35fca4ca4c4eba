"""Tests of `configure`, which checks a topology's topics and chooses the partition counts of its internal topics."""

from __future__ import annotations

import pytest

from hmb.coordinator.streams.topics import ConfiguredTopology, configure
from hmb.coordinator.streams.topology import topology_of
from hmb.protocol.enums import StreamsStatus
from hmb.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.consumer.consumer_driver import Topics
from tests.coordinator.streams.driver import CHANGELOG, REPARTITION, Subtopology, TopicInfo, Topology, word_count

Group = Subtopology.CopartitionGroup


def configured(*subtopologies: Subtopology, **topics: int) -> ConfiguredTopology:
    return configure(topology_of(Topology(subtopologies=list(subtopologies))), Topics(**topics))


def problem(found: ConfiguredTopology) -> tuple[StreamsStatus, str]:
    assert found.problem is not None
    return found.problem.status, found.problem.detail


def subtopology(name: str, *sources: str, **fields: list[object]) -> Subtopology:
    return Subtopology(subtopology_id=name, source_topics=list(sources), **fields)


def joined(first: int, second: int, repartition: int = 0) -> ConfiguredTopology:
    """Return the result of `configure` for a topology that joins the topics "a", "b" and "r".

    The topic "a" has `first` partitions, and the topic "b" has `second` partitions. The number `repartition` is the
    partition count of the topic "r", or 0 if `configure` must choose this count.
    """
    writer = subtopology("0", "source", repartition_sink_topics=["r"])
    topic = TopicInfo(name="r", partitions=repartition)
    together = Group(source_topics=[0, 1], repartition_source_topics=[0])
    reader = subtopology("1", "a", "b", repartition_source_topics=[topic], copartition_groups=[together])
    return configured(writer, reader, source=5, a=first, b=second)


def test_internal_topics_have_as_many_partitions_as_the_topics_before_them() -> None:
    found = configure(topology_of(word_count()), Topics(lines=4))
    assert found.tasks == {"0": 4, "1": 4}
    assert {topic.name: topic.partitions for topic in found.missing} == {REPARTITION: 4, CHANGELOG: 4}


def test_a_repartition_topic_adopts_the_partitions_of_the_topics_it_is_joined_with() -> None:
    found = joined(3, 3)
    assert (found.tasks, found.internal["r"].partitions) == ({"0": 5, "1": 3}, 3)


def test_joined_topics_have_the_same_number_of_partitions() -> None:
    status, detail = problem(joined(3, 4))
    assert status is StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS
    assert detail == "Following topics do not have the same number of partitions: [{a=3, b=4}]"
    assert problem(joined(3, 3, repartition=2))[0] is StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS
    assert joined(3, 3, repartition=3).internal["r"].partitions == 3


def test_an_existing_internal_topic_must_have_the_right_number_of_partitions() -> None:
    found = configure(topology_of(word_count()), Topics(**{"lines": 4, REPARTITION: 4, CHANGELOG: 3}))
    expected = f"Existing topic {CHANGELOG} has different number of partitions: expected 4, found 3"
    assert problem(found) == (StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, expected)


def test_a_message_names_three_topics() -> None:
    found = configured(subtopology("0", "e", "d", "c", "b", "a"))
    assert problem(found)[1] == "Source topics a, b, c and 2 additional topics are missing."


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([subtopology("0")], "No source topics found"),
        ([subtopology("0", repartition_source_topics=[TopicInfo(name="r")])], "never used as a sink topic"),
        (
            [subtopology("0", repartition_source_topics=[TopicInfo(name="r")], repartition_sink_topics=["r"])],
            "There may be loops",
        ),
        ([subtopology("0", repartition_source_topics=[TopicInfo(name="r", partitions=2**31 - 1)])], "the limit is"),
    ],
)
def test_a_topology_that_can_never_run_is_refused(parts: list[Subtopology], reason: str) -> None:
    with pytest.raises(KafkaError, match=reason) as error:
        configured(*parts)
    assert error.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY
