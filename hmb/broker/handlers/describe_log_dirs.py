"""DescribeLogDirs: how much the partitions take on disk, and how much there is.

Versions: 0-5, flexible from 2.
Behaviour: the one data directory, with the partitions asked for, those that there are.  A partition's size is that of
    its segments; its lag is 0, for nobody copies it from elsewhere.
Version notes: 3 brought an error for the whole answer, 4 the size of the disk and what is free of it, 5 whether new
    partitions may come into the directory (they may: it is not cordoned).
Left out: moves between directories; there is one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from hmb.protocol.topics import TopicPartition

Directory = DescribeLogDirsResponse.DescribeLogDirsResult
TopicAnswer = Directory.DescribeLogDirsTopic
PartitionAnswer = TopicAnswer.DescribeLogDirsPartition


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    path = context.broker.topics.directory.resolve()
    directory = Directory(log_dir=str(path))
    with answering(directory):
        disk = shutil.disk_usage(path)
        directory.total_bytes, directory.usable_bytes = disk.total, disk.free
        directory.topics = list(_topics(request, context))
    return DescribeLogDirsResponse(results=[directory])


def _topics(request: DescribeLogDirsRequest, context: RequestContext) -> Iterator[TopicAnswer]:
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions}
    for topic in context.broker.topics.all():
        partitions = [
            PartitionAnswer(partition_index=number, partition_size=log.size)
            for number, log in sorted(topic.partitions.items())
            if wanted is None or TopicPartition(topic.name, number) in wanted
        ]
        if partitions:
            yield TopicAnswer(name=topic.name, partitions=partitions)
