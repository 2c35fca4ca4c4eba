"""Checks the topics of a topology, and decides which internal topics the broker must create.

A topology names its topics, but often not the partition counts of its internal topics. `configure` determines
these partition counts by four rules:
1. Each source topic must already exist, so its partition count is known.
2. The application can choose the partition count of a repartition topic. Otherwise, the count depends on the
   subtopology that writes the topic. For example, if this subtopology reads two topics with 4 and 6 partitions,
   the repartition topic gets the larger count, 6.
3. The application joins the topics of one *copartition group* by key. One task must read all records with the
   same key. All topics of the group must therefore have the same partition count. If the group contains a
   source topic, the source topic's partition count applies.
4. A changelog topic has one partition for each task of its subtopology.

For example, topic "lines" has 4 partitions. Subtopology "0" reads "lines" and writes "count-repartition", so
"count-repartition" also has 4 partitions. Subtopology "1" reads "count-repartition", so this subtopology has 4 tasks,
and its changelog topic has 4 partitions.

`configure` first looks for missing source topics, then for wrong numbers of partitions, and then for missing internal
topics. It reports only the first kind of problem that it finds. For a topology that can never run, `configure` raises
STREAMS_INVALID_TOPOLOGY. HMB raises this error also for a topology with more than `MAX_TASKS` tasks. Without this
limit, a small request could create so many tasks that the broker's memory is full.

Source: KIP-1071; Kafka's `InternalTopicManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hmb.coordinator.cluster_topics import ClusterTopics
from hmb.coordinator.streams.records import Subtopology
from hmb.coordinator.streams.tasks import TaskId
from hmb.coordinator.streams.topology import Topology, all_topics, internal_topics_of, invalid_topology, sources_of
from hmb.protocol.enums import StreamsStatus
from hmb.protocol.errors import ErrorCode, KafkaError

MAX_TASKS = 100_000
MAX_NAMED_TOPICS = 3  # the number of topics that a message names


class InternalTopic(NamedTuple):
    """An internal topic that a topology needs."""

    name: str
    partitions: int
    replication_factor: int  # 0 means the default
    configs: Mapping[str, str]


class TopicProblem(Exception):
    """The reason why a topology cannot run yet: a status for the client, and a message for the user."""

    def __init__(self, status: StreamsStatus, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """The result of a check of a topology's topics.

    - `tasks` contains the number of tasks of each subtopology.
    - `internal` contains the internal topics by name.
    - `missing` contains the internal topics that do not exist yet.
    - `problem` is the reason why the topology cannot run yet. If it can run, `problem` is None.

    If a source topic is missing, or a topic has a wrong number of partitions, only `problem` is set.
    """

    tasks: Mapping[str, int] = field(default_factory=dict)
    internal: Mapping[str, InternalTopic] = field(default_factory=dict)
    missing: tuple[InternalTopic, ...] = ()
    problem: TopicProblem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    def check_tasks(self, tasks: Iterable[TaskId]) -> None:
        """Check that the topology contains all `tasks`. Raises INVALID_REQUEST."""
        for subtopology, number in sorted(tasks):
            if subtopology not in self.tasks:
                why = f"Subtopology {subtopology} does not exist in the topology."
                raise KafkaError(ErrorCode.INVALID_REQUEST, why)
            if not 0 <= number < self.tasks[subtopology]:
                why = f"Task {number} for subtopology {subtopology} is invalid. Number of tasks for this subtopology: "
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"{why}{self.tasks[subtopology]}")


def configure(topology: Topology, topics: ClusterTopics) -> ConfiguredTopology:
    """Check the topics of a topology, and decide the partition counts of internal topics.

    Raises STREAMS_INVALID_TOPOLOGY.
    """
    counts = _Counts(topology, topics)
    try:
        counts.check_sources()
        counts.decide_repartition_topics()
        counts.enforce_copartitioning()
        tasks = counts.tasks()
        internal = counts.internal_topics(tasks)
        missing = counts.missing_of(internal)
    except TopicProblem as error:
        return ConfiguredTopology(problem=error)
    text = f"Internal topics are missing: {_summary(topic.name for topic in missing)}"
    problem = TopicProblem(StreamsStatus.MISSING_INTERNAL_TOPICS, text) if missing else None
    return ConfiguredTopology(tasks, internal, missing, problem)


class _Counts:
    """Computes the number of partitions of each topic that a topology needs.

    A *repartition topic* is an internal topic: one part of the application writes it, and another part reads it.
    The dictionary `decided` contains those repartition topics whose number of partitions is already known.
    """

    def __init__(self, topology: Topology, topics: ClusterTopics) -> None:
        self._subtopologies: list[Subtopology] = sorted(topology.subtopologies, key=lambda each: each.subtopology_id)
        found = {name: topics.by_name(name) for name in all_topics(self._subtopologies)}
        self._existing = {name: topic.partitions for name, topic in found.items() if topic is not None}
        repartition = [topic for each in self._subtopologies for topic in each.repartition_source_topics]
        self._repartition = {topic.name: topic.partitions for topic in repartition}
        self.decided = {name: count for name, count in self._repartition.items() if count}

    def _count(self, name: str) -> int:
        """Return the partition count of a topic.

        If the topic does not exist yet, return the count that it will have.
        """
        return self._existing[name] if name in self._existing else self.decided[name]

    def check_sources(self) -> None:
        missing = {name for each in self._subtopologies for name in each.source_topics} - self._existing.keys()
        if missing:
            text = f"Source topics {_summary(missing)} are missing."
            raise TopicProblem(StreamsStatus.MISSING_SOURCE_TOPICS, text)
        for each in self._subtopologies:
            if not sources_of(each):
                raise invalid_topology(f"No source topics found for subtopology {each.subtopology_id}")

    def decide_repartition_topics(self) -> None:
        """Determine the partition counts of all repartition topics.

        Suppose that subtopology A writes a repartition topic, and the application has not chosen the topic's partition
        count. The method then uses the largest count of the topics that A reads. For example, A reads topics with 3 and
        8 partitions, so the repartition topic gets 8.

        A may itself read repartition topics without a count. The method therefore works in rounds, and each round uses
        only known counts.

        Raises STREAMS_INVALID_TOPOLOGY if a count cannot be computed.
        """
        while open_topics := {
            name: each
            for each in self._subtopologies
            for name in each.repartition_sink_topics
            if name not in self.decided
        }:
            before = len(self.decided)
            for name, writer in open_topics.items():
                known = [self._existing[source] for source in writer.source_topics]
                known += [self.decided[it.name] for it in writer.repartition_source_topics if it.name in self.decided]
                if known:
                    self.decided[name] = max(known)
            if len(self.decided) == before:
                raise invalid_topology(
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                    "topology that cannot be resolved."
                )
        if self._repartition.keys() - self.decided.keys():
            raise invalid_topology(
                "Failed to compute number of partitions for all repartition topics, because a repartition source "
                "topic is never used as a sink topic."
            )

    def enforce_copartitioning(self) -> None:
        for subtopology in self._subtopologies:
            for group in subtopology.copartition_groups:
                sources = [subtopology.source_topics[number] for number in group.source_topics]
                own = [subtopology.repartition_source_topics[number].name for number in group.repartition_source_topics]
                self._enforce(sources, own)

    def _enforce(self, sources: list[str], repartition: list[str]) -> None:
        """Give all repartition topics of a copartition group the same partition count.

        A copartition group contains topics that the application joins by key. `sources` contains the names of its
        source topics, and `repartition` the names of its repartition topics. Three rules apply:

        1. If the group has source topics, the count is their partition count.
        2. Otherwise, it is the count of the repartition topics for which the application has chosen a count.
        3. If the application has chosen none, it is the largest count of the repartition topics.

        Raises TopicProblem if the source topics have different counts, or if a count that the application has chosen
        differs from the count of the group.
        """
        fixed = [name for name in repartition if self._repartition[name]]
        count = self._common(sources) or self._common(fixed) or max(map(self._count, repartition), default=0)
        for name in repartition:
            if name in fixed and self._count(name) != count:
                text = (
                    f"Number of partitions [{self._count(name)}] of repartition topic [{name}] doesn't match number "
                    f"of partitions [{count}] of the source topic."
                )
                raise TopicProblem(StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, text)
            self.decided[name] = count

    def _common(self, names: list[str]) -> int | None:
        counts = {name: self._count(name) for name in sorted(names)}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name}={count}" for name, count in counts.items())
            text = f"Following topics do not have the same number of partitions: [{{{listed}}}]"
            raise TopicProblem(StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, text)
        return next(iter(counts.values()), None)

    def tasks(self) -> dict[str, int]:
        """Return the number of tasks of each subtopology."""
        tasks = {each.subtopology_id: max(map(self._count, sources_of(each))) for each in self._subtopologies}
        if sum(tasks.values()) > MAX_TASKS:
            raise invalid_topology(f"The topology has {sum(tasks.values())} tasks; the limit is {MAX_TASKS}.")
        return tasks

    def internal_topics(self, tasks: Mapping[str, int]) -> dict[str, InternalTopic]:
        return {
            topic.name: InternalTopic(
                topic.name,
                self.decided.get(topic.name, tasks[each.subtopology_id]),
                topic.replication_factor,
                {config.key: config.value for config in topic.topic_configs},
            )
            for each in self._subtopologies
            for topic in internal_topics_of(each)
        }

    def missing_of(self, internal: Mapping[str, InternalTopic]) -> tuple[InternalTopic, ...]:
        """Return the internal topics that do not exist.

        Raises TopicProblem if an internal topic exists, but has a wrong partition count.
        """
        for name in sorted(internal.keys() & self._existing.keys()):
            wanted, found = internal[name].partitions, self._existing[name]
            if wanted != found:
                text = (
                    f"Existing topic {name} has different number of partitions: expected {wanted}, found {found}"
                )
                raise TopicProblem(StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS, text)
        return tuple(internal[name] for name in sorted(internal.keys() - self._existing.keys()))


def _summary(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - MAX_NAMED_TOPICS
    return ", ".join(ordered[:MAX_NAMED_TOPICS]) + (f" and {more} additional topics" if more > 0 else "")
