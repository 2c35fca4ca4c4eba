"""State: the small files of a data directory that are not part of a log.

Kafka's state files are text files without checksums. They contain offsets of each partition (checkpoints), the identity
of the data directory, and the id of each topic. To change a state file, the broker replaces the whole file atomically.
So if the broker crashes during the change, the file has either its old or its new content.

HMB writes checksums of each state file into an extra file, the manifest. Before the broker replaces a state
file, it writes the checksums of the old and of the new content into the manifest. After a crash, the state file
has one of these two contents.

Before the broker uses a state file that the manifest lists, it computes the checksum of the file. If the
checksum is not in the manifest, another process has changed the file, or the file is damaged. (In
`partition.metadata`, the broker compares only the topic id.)

The broker does not use a damaged state file. The consequence depends on the file, for example:
- Recovery points: the broker logs an error, and starts without them.
- Leader epochs of a log: the broker logs an error, and reads the newest epoch from the batches.
- `topics.json` or `meta.properties`: the broker does not start. The error says what the user can do.

For example, `recovery-point-offset-checkpoint` contains the line `events 0 1234`. This line means: in partition 0 of
the topic `events`, all records at offsets below 1,234 are on disk.

Read in this order:
- `checkpoints`      reads and writes Kafka's state files
- `offset_checkpoints`  stores the recovery points and the log start offsets of all logs
- `manifest`         stores sizes and checksums of the files that the broker wrote
- `directory_lock`   prevents a second broker from using the same data directory
- `identity`         creates and locks a data directory, and reads the cluster id
- `topic_ids`        stores the id of each topic, and restores a lost id
- `leader_epochs`    stores which leader wrote which part of a log
- `partition_directory`  makes the name of a log's directory, for example `orders-0`
- `trash`            handles deleted logs whose files still exist
- `properties`       reads Java's properties files
"""
