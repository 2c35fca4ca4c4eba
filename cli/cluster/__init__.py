"""Commands that describe and change a cluster: its topics, groups, offsets and settings.

All commands of this folder work in the same way. A command sends requests to the cluster with `hmb.Admin`. The command
then makes one dict for each result. It prints the dicts as a table, or with `--json` as one JSON object per line
(`shared/output.py`).

For each result, a command of this folder makes one dict. The keys have the same meaning in all dicts. `topic`
is the name of a topic, and `broker` is the id of a broker. `log_start_offset` is the offset of the first record
of a partition. `log_end_offset` is the offset that the next record of the partition will have.

A command can have several topics as arguments. If it fails for one topic, it continues with the next topic. At
the end, it reports all failures in one line.

For example, `hmb topics describe weather` sends these three kinds of requests:
    Metadata          returns the partitions, their leaders and their replicas
    ListOffsets       asks the leader of each partition for the log start offset and the log end offset
    DescribeConfigs   returns the settings that were set for this topic

Read in this order:
- `topics`             create, list, alter, delete; `topic_description` shows a topic, `topic_trim` deletes old records
- `groups`             list, delete and change; `group_description` shows the lag, `group_reset` sets committed offsets
- `configs`            settings of topics, brokers, loggers, groups and client metrics
- `offsets`            log start and log end offsets of partitions, or the first offset at or after a time
- `meta`               brokers, leaders and API versions
"""
