"""State: the small files of a data directory that are not part of a log.

Kafka's state files are text files without checksums. The state files contain offsets of each partition (checkpoints),
the identity of the directory, and the id of each topic. The broker replaces a state file in one step. So after a crash
the file has either its old or its new content.

HMB writes a checksum of each state file into an extra file, the manifest. When the broker starts, it compares each
state file with its checksum. So the broker notices if another process has changed the file.

For example, `recovery-point-offset-checkpoint` contains the line `events 0 1234`. This line means: in partition 0 of
the topic `events`, all records at offsets below 1,234 are on disk.

Read in this order:
- `checkpoints`      Kafka's files, and functions that read and write them
- `offset_checkpoints`  the recovery points and the log start offsets of all logs
- `manifest`         sizes and checksums of the files that the broker wrote
- `directory_lock`   one broker in one data directory
- `identity`         creating and locking a data directory; the cluster id
- `topic_ids`        the id of each topic, and how the broker restores a lost id
- `leader_epochs`    which leader wrote which part of a log
- `partition_directory`  the name of a log's directory, for example `orders-0`
- `trash`            deleted logs whose files still exist
- `properties`       Java's properties files
"""
