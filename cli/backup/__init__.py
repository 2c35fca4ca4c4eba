"""Backups: `hmb backup` copies topics and group offsets of a broker to files, and `hmb restore` copies them back.

A backup needs only the requests that every client of Kafka may send. The broker can therefore be HMB or Apache Kafka,
and it need not stop. A backup is a directory, or one .tar file with the same contents:
    backup.json                          topics, settings, offsets of partitions, offsets of groups
    orders-0/00000000000000000000.log    the batches of a partition, as in the broker's own segment
    SHA256SUMS                           the SHA-256 checksum of each other file

`hmb backup` copies whole batches, and changes no byte in them. So the backup contains the same offsets, timestamps,
headers, producer ids and transaction markers as the broker's log. When the backup begins, the command reads the last
stable offset of each partition: all transactions below this offset are complete. The command copies each partition up
to this offset. The backup therefore contains no record of an open transaction.

`hmb restore` sends the batches in Produce requests to new topics. It does not send transaction markers or the
records of aborted transactions.

The broker gives the restored records of a partition the offsets 0, 1, 2 and so on. If offsets change, `hmb restore`
also translates the offsets of consumer groups and share groups. For example, a partition has the records 100 to 149,
and a group has the committed offset 120. The restored partition has the records 0 to 49, and the group gets the
offset 20. Gaps also change offsets: if compaction has left the offsets 0, 1 and 5, the new offsets are 0, 1 and 2.

For a share group, a backup contains only the start offset of each partition. For example, the start offset is
20, and the group has already processed the record at offset 22. The backup does not show that this record is
processed. After a restore, the group therefore receives this record again.

In Kafka, the request WriteShareGroupState marks a share group's records as processed. Only brokers send this
request, so the client `hmb restore` cannot mark records.

`hmb backup` first writes to a path that ends in `.incomplete`. The command writes SHA256SUMS last, and then renames the
path. A backup that was interrupted therefore never looks like a complete backup.

Read in this order:
- `contents`      the file backup.json
- `writing`       a new backup: a directory or a .tar file
- `fetching`      the batches of a partition, from its leader
- `command`       `hmb backup`
- `reading`       an existing backup, and the check of its checksums
- `renumbering`   the batches that `hmb restore` sends, and the new offsets
- `producing`     Produce requests to the leader of a partition
- `restoring`     the steps of a restore
- `restore`       `hmb restore`
"""
