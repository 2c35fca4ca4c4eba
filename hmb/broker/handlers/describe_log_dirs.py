"""DescribeLogDirs: return the sizes of partitions on disk, and the size of the disk.

Versions: 0-5; versions 2 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on the cluster.
Behavior: a broker has one data directory. The response contains this directory and all requested partitions that exist.
    The size of a partition is the total size of its segments. `offset_lag` is 0, because no replica has to catch up.
Version notes: version 5 adds a field for directories that accept no new partitions. HMB has no such directories.
Left out: a client cannot move a partition to another data directory, because the broker has only one. So it cannot
    move a partition to another disk when the disk is full.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from hmb.protocol.topics import TopicPartition

Directory = DescribeLogDirsResponse.DescribeLogDirsResult
TopicResponse = Directory.DescribeLogDirsTopic
PartitionResponse = TopicResponse.DescribeLogDirsPartition


def handle(request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:
    path = context.broker.topics.directory.resolve()
    directory = Directory(log_dir=str(path))
    with error_code_in(directory):
        disk = shutil.disk_usage(path)
        directory.total_bytes, directory.usable_bytes = disk.total, disk.free
        directory.topics = list(_topics(request, context))
    return DescribeLogDirsResponse(results=[directory])


def _topics(request: DescribeLogDirsRequest, context: RequestContext) -> Iterator[TopicResponse]:
    wanted: set[TopicPartition] | None = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions}
    for topic in context.broker.topics.all():
        partitions = [
            PartitionResponse(partition_index=number, partition_size=log.size)
            for number, log in sorted(topic.partitions.items())
            if wanted is None or TopicPartition(topic.name, number) in wanted
        ]
        if partitions:
            yield TopicResponse(name=topic.name, partitions=partitions)
