"""Commands that describe and change a cluster: its topics, groups, offsets and settings.

All commands work in the same way. A command sends requests to the cluster with `hmb.Admin`. It makes one dict for each
result, and prints the dicts as a table, or with `--json` as one JSON object a line (`shared/output.py`).

The keys of the dicts are the same in all commands. `topic` is the name of a topic, and `broker` is the id of a broker.
`log_start_offset` is the first offset of a partition, and `log_end_offset` is the offset of its next record. If a
command for several topics fails for one of them, it continues with the others. At the end, it reports all failures in
one line.

For example, `hmb topics describe weather` sends these three kinds of requests:
    Metadata          partitions, leaders, replicas         -> topic_description.topic_fields, partition_fields
    ListOffsets       first and next offset of each partition, from the leader of the partition
    DescribeConfigs   the settings that were set for this topic

Read in this order:
- `topics`             create, list, alter, delete; `topic_description` shows a topic, `topic_trim` deletes old records
- `groups`             list, delete and change; `group_description` shows the lag, `group_reset` sets committed offsets
- `configs`            settings of topics, brokers, loggers and groups
- `offsets`            first and next offsets of partitions, or the first offset at or after a time
- `meta`               brokers, leaders and API versions
"""
