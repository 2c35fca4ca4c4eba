"""Tables with the data source's options and their meanings. The code and the documentation both use these tables.

In the values of the options, a time is a number of milliseconds since 1970. A duration has a unit, such as `30s` or
`15m`.
"""

COLUMN_NAMES = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
DEFAULT_NAME = "hmb-spark"  # the default name of groups and clients, and the default prefix of transactional ids
HEADERS = "headers"  # the column that a query reads only if an option asks for it

SOURCE_OPTIONS = {
    "subscribe": "names of the topics to read, separated by commas. Exactly one of `subscribe`, `subscribePattern` "
    "and `assign` is required",
    "subscribePattern": "a regular expression that is searched for anywhere in the names of topics. Use `^...$` to "
    "match the whole name",
    "assign": 'the partitions to read: `{"weather": [0, 1]}`',
    "startingOffsets": "where the query starts: `earliest` (default of a batch query), `latest` (default of a "
    'streaming query), or JSON with an offset for each partition: `{"weather": {"0": 23, "1": -2}}`. -2 is earliest '
    "and -1 is latest. A query that has a checkpoint continues there instead",
    "startingTimestamp": "the query starts at the first records at or after this time. This option takes precedence "
    "over the other `starting...` options",
    "startingOffsetsByTimestamp": 'the starting time of each partition: `{"weather": {"0": 1700000000000}}`. This '
    "option takes precedence over `startingOffsets`",
    "startingOffsetsByTimestampStrategy": "if no record of a partition is at or after the starting time: `error` "
    "(default) fails the query, `latest` starts the partition at its end",
    "endingOffsets": "where a batch query ends: `latest` (default), or JSON with the first offset that is not read in "
    "each partition. -1 is latest",
    "endingTimestamp": "a batch query ends before the first records at or after this time. This option takes "
    "precedence over the other `ending...` options",
    "endingOffsetsByTimestamp": 'the ending time of each partition: `{"weather": {"0": 1700000000000}}`. This option '
    "takes precedence over `endingOffsets`",
    "failOnDataLoss": "if records were deleted before the query has read them: `true` (default) fails the query and "
    "names the missing offsets, `false` logs a warning and continues",
    "maxOffsetsPerTrigger": "the maximum number of offsets that one trigger reads. Each partition gets a share in "
    "proportion to its backlog",
    "minOffsetsPerTrigger": "the minimum number of new offsets for a trigger to start a batch",
    "maxTriggerDelay": "the longest time that `minOffsetsPerTrigger` can delay a batch; default `15m`",
    "minPartitions": "the minimum number of tasks: large ranges of offsets are cut into pieces",
    "maxRecordsPerPartition": "the maximum number of offsets in a task: larger ranges of offsets are cut into pieces",
    "includeHeaders": "`true` adds the column `headers`; default `false`",
    "columns": "the columns that the query reads, for example `key,offset,timestamp`. Spark does not tell the data "
    "source which columns a query uses. Without this option, the tasks pass all columns to Spark",
    "pushFilters": "`true` reads only the offsets that can match the filters of a batch query. "
    "Each query then needs its own call of `load()`; default `false`",
    "maxLateness": "the longest time by which a record can be late in its partition, for example `10m`. With this "
    "option and `pushFilters`, a filter such as `timestamp < '2026-01-31'` ends the reading early",
    "commitOffsets": "`true` commits the offsets of each finished batch to a consumer group, so that `hmb groups` "
    "shows the progress of a streaming query; default `false`. A restarted query continues from its checkpoint, not "
    "from these offsets",
    "groupIdPrefix": "the name of the group for `commitOffsets`, if `kafka.group.id` is not set; default "
    f"`{DEFAULT_NAME}`",
    "kafkaConsumer.pollTimeoutMs": "accepted, but without effect",
    "fetchOffset.numRetries": "accepted, but without effect",
    "fetchOffset.retryIntervalMs": "accepted, but without effect",
}
SINK_OPTIONS = {
    "topic": "the topic that all rows are written to. Without this option, the column `topic` of each row names its "
    "topic",
    "includeHeaders": "accepted, but without effect: the sink always writes the column `headers`, if there is one",
    "exactlyOnce": "`true` writes each row exactly once: every task writes in a transaction; default `false`",
    "failOnChangedRows": "if `exactlyOnce` is true, and a batch that runs again has other rows than before: `true` "
    "(default) fails the query, `false` logs a warning and writes the new rows, too. Rows of this batch can then be in "
    "the topic twice",
    "transactionalIdPrefix": "the prefix of the transactional ids and group ids for `exactlyOnce`; default "
    f"`{DEFAULT_NAME}`",
}
