"""The names of the options, and what each is for, in one table for the code and for the documentation.

Times are milliseconds since 1970, durations such as `30s` or `15m`.
"""

SOURCE_OPTIONS = {
    "subscribe": "topics to read, with commas between; one of these three is needed",
    "subscribePattern": "a regular expression, looked for anywhere in the names of topics; `^...$` is the whole name",
    "assign": 'partitions to read: `{"weather": [0, 1]}`',
    "startingOffsets": "where to begin: `earliest` (default of a batch), `latest` (of a stream), or JSON "
    'by partition, where -2 is earliest and -1 latest: `{"weather": {"0": 23, "1": -2}}`. A checkpoint goes before it',
    "startingTimestamp": "the first records at or after a time; counts before the two others",
    "startingOffsetsByTimestamp": 'the same by partition: `{"weather": {"0": 1700000000000}}`; counts before '
    "startingOffsets",
    "startingOffsetsByTimestampStrategy": "where no record is as young: `error` (default) or `latest`",
    "endingOffsets": "where a batch query ends, before that offset: `latest` (default) or JSON, where -1 is latest",
    "endingTimestamp": "the same by time",
    "endingOffsetsByTimestamp": "the same by time and partition",
    "failOnDataLoss": "`true` (default): a query fails where records were deleted before it had read them, and says "
    "which offsets; `false`: it goes on, with a warning",
    "maxOffsetsPerTrigger": "so many offsets a trigger at most, split among partitions by what is left in each",
    "minOffsetsPerTrigger": "no batch for fewer",
    "maxTriggerDelay": "but after this long it comes all the same; `15m`",
    "minPartitions": "so many tasks at least: large ranges are cut",
    "maxRecordsPerPartition": "so many records a task at most: larger ranges are cut",
    "includeHeaders": "a column `headers` more; `false`",
    "commitOffsets": "commit what a batch has read to a group, so that `hmb groups` shows how far a query is; `false`. "
    "The checkpoint is what counts",
    "groupIdPrefix": "the group of commitOffsets, without `kafka.group.id`; `hmb-spark`",
    "kafkaConsumer.pollTimeoutMs": "taken, and without effect",
    "fetchOffset.numRetries": "taken, and without effect",
    "fetchOffset.retryIntervalMs": "taken, and without effect",
}
SINK_OPTIONS = {
    "topic": "where all rows go; without it, each row's column `topic`",
    "includeHeaders": "taken, and without effect: a column `headers` is always written",
    "exactlyOnce": "a transaction a task and batch; `false`",
    "transactionalIdPrefix": "how its transactional ids and groups begin; `hmb-spark`",
}
