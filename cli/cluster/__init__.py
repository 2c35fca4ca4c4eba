"""Commands that describe and change a cluster: its topics, groups, offsets and settings.

Each command has the same form. It asks the cluster with `hmb.Admin`, makes one dict for each result, and prints the
dicts with `shared/output.py`: as a table, or with `--json` one object a line. The same thing has the same keys in all
commands. A topic is `topic`, a broker is `broker` (its id), a partition's first and next offsets are `log_start_offset`
and `log_end_offset`. A command for several things does what it can. It then reports all failures in one line.

For example, `hmb topics describe weather` asks three questions:

    Metadata          partitions, leaders, replicas         -> topic_description.topic_fields, partition_fields
    ListOffsets       first and next offset of each partition, asked from the leaders
    DescribeConfigs   the settings of the topic itself

Read in this order:

- `topics`             create, list, describe, alter and delete; `topic_description` and `topic_trim` hold two of them
- `groups`             list, delete and change; `group_description` shows lag, `group_reset` sets committed offsets
- `configs`            settings of topics, brokers, loggers and groups
- `offsets`            first and last offsets of partitions, and the offsets of a time
- `meta`               brokers, leaders and API versions
"""
