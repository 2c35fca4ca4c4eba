"""Writes heartbeats and checkpoints to two topics, in the same format as Kafka's MirrorMaker 2.

Programs that move a consumer to another cluster often use Kafka's class RemoteClusterUtils. This class reads
two topics that MirrorMaker 2 writes. HMB's mirror writes the same topics if it names copies as MirrorMaker 2
does: `east.orders` is the copy of `orders` from the cluster `east`. A mirror from `east` to the cluster `west`
writes:
    cluster  topic                         a record contains
    west     east.checkpoints.internal     a group, a partition at `west`, the group's offset in each cluster
    east     heartbeats                    the names of both clusters, and the time

A mirror from `east` to `west` copies the topic `heartbeats` of `east` to the topic `east.heartbeats` at `west`. From
the name of this topic, a program at `west` can see that a mirror copies topics of `east`. The time in the topic's last
record shows whether the mirror still works.

The records of MirrorMaker 2 have these formats. All numbers are big endian. A text is its length (int16) and its UTF-8
bytes:
    checkpoint  key    group text, topic text, partition int32
                value  version int16 (0), source offset int64, target offset int64, metadata text
    heartbeat   key    source cluster text, target cluster text
                value  version int16 (0), time in ms int64

Source: KIP-382; org.apache.kafka.connect.mirror.Checkpoint and Heartbeat of Kafka 4.3.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from struct import Struct

from hmb.client.admin import Admin, NewTopic
from hmb.client.errors import response_error
from hmb.client.producing.idempotence import NEWEST_PRODUCE
from hmb.mirror.errors import explained
from hmb.mirror.groups import TranslatedOffset
from hmb.mirror.names import HEARTBEATS, Aliases
from hmb.mirror.topics import wait_for_leaders
from hmb.protocol.enums import Acks
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.topics import TopicPartition
from hmb.records import Record, encode_batch

COMPACTED = {"cleanup.policy": "compact"}
TIMEOUT_MS = 30_000
_INT16, _INT32 = Struct(">h"), Struct(">i")
_CHECKPOINT, _HEARTBEAT = Struct(">hqq"), Struct(">hq")


class MirrorMakerTopics:
    """Writes two topics of MirrorMaker 2: heartbeats into the source cluster, and checkpoints into the target cluster.

    A checkpoint belongs to a consumer group and a partition. It contains the group's committed offset at the
    source, and the matching offset at the target. If both offsets are the same as in the last checkpoint, the class
    writes no new checkpoint.
    """

    def __init__(self, source: Admin, target: Admin, aliases: Aliases) -> None:
        """Create the topics for heartbeats and checkpoints, if they do not exist yet."""
        self._source, self._target, self._aliases = source, target, aliases
        # (group, target partition) -> (source offset, target offset) in the last checkpoint
        self._written: dict[tuple[str, TopicPartition], tuple[int, int]] = {}
        for side, admin, topic in (("source", source, HEARTBEATS), ("target", target, aliases.checkpoints)):
            created = admin.create_topics([NewTopic(topic, 1, configs=COMPACTED)])[topic]
            if isinstance(created, KafkaError) and created.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise explained(side, created)
            wait_for_leaders(admin, {topic: 1})

    def write_checkpoints(self, offsets: Iterable[TranslatedOffset]) -> None:
        """Write a checkpoint for each offset that has changed since its last checkpoint."""
        changed = [it for it in offsets if self._written.get((it.group, it.target)) != (it.offset, it.target_offset)]
        if changed:
            now = int(time.time() * 1000)
            _append(self._target, self._aliases.checkpoints, [checkpoint(it, now) for it in changed])
            self._written |= {(it.group, it.target): (it.offset, it.target_offset) for it in changed}

    def write_heartbeat(self) -> None:
        """Write a record into the topic `heartbeats` of the source. The mirror copies this record to the target."""
        _append(self._source, HEARTBEATS, [heartbeat(self._aliases, int(time.time() * 1000))])


def checkpoint(offset: TranslatedOffset, now: int) -> Record:
    key = _text(offset.group) + _text(offset.target.topic) + _INT32.pack(offset.target.partition)
    value = _CHECKPOINT.pack(0, offset.offset, offset.target_offset) + _text(offset.metadata)
    return Record(key=key, value=value, timestamp=now)


def heartbeat(aliases: Aliases, now: int) -> Record:
    """Return the heartbeat record that a mirror writes into its source cluster. `now` is the time in ms.

    The key contains the name of the mirror's target cluster, and then the name of its source cluster. For example,
    a mirror that copies from `east` to `west` writes the key (`west`, `east`).

    MirrorMaker 2 writes the same key, but it calls `west` the "source cluster" and `east` the "target cluster".
    """
    return Record(key=_text(aliases.target) + _text(aliases.source), value=_HEARTBEAT.pack(0, now), timestamp=now)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


def _append(admin: Admin, topic: str, records: list[Record]) -> None:
    """Write records to partition 0 of a topic. Raises KafkaError or ConnectionFailed."""
    data = ProduceRequest.TopicProduceData(name=topic)
    data.partition_data = [data.PartitionProduceData(index=0, records=memoryview(encode_batch(records)))]
    request = ProduceRequest(acks=Acks.ALL, timeout_ms=TIMEOUT_MS, topic_data=[data])
    partition = TopicPartition(topic, 0)
    with admin.cluster.connect(admin.cluster.leader(partition)) as connection:
        version = connection.version_of(ProduceRequest, NEWEST_PRODUCE)
        response: ProduceResponse = connection.send(request, version)
    answer = response.responses[0].partition_responses[0]
    if answer.error_code:
        raise response_error(partition, answer.error_code, answer.error_message)
