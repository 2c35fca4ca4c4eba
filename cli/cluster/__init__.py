"""Commands that describe and change a cluster: its topics, groups, offsets and settings.

Each command has the same form. It asks the cluster with `hmb.Admin`, makes one dict for each result, and prints the
dicts with `shared/output.py`: as a table, or with `--json` one object a line. The keys are the same in all commands. A
topic is `topic`, a broker is `broker` (its id), a partition's first and next offsets are `log_start_offset` and
`log_end_offset`. A command for several topics or groups continues after a failure. At the end it reports all failures
in one line.

For example, `hmb topics describe weather` sends three kinds of requests:

    Metadata          partitions, leaders, replicas         -> topic_description.topic_fields, partition_fields
    ListOffsets       first and next offset of each partition, asked from the leaders
    DescribeConfigs   the settings of the topic itself

Read in this order:

- `topics`             create, list, alter, delete; `topic_description` describes, `topic_trim` deletes old records
- `groups`             list, delete and change; `group_description` shows lag, `group_reset` sets committed offsets
- `configs`            settings of topics, brokers, loggers and groups
- `offsets`            first and last offsets of partitions, and the offsets of a time
- `meta`               brokers, leaders and API versions
"""
