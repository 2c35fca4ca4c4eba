"""State: the small files of a data directory besides the logs.

Kafka's files are text without checksums: checkpoints with an offset for each partition, the identity of the directory,
the id of each topic. The broker replaces such a file in one step, so that a crash leaves the old or the new content. A
start compares each file with its checksum, and so notices a change by somebody else. HMB keeps the checksums in a file
of its own, the manifest.

Read in this order:

- `checkpoints`      Kafka's files, and functions that read and write them
- `manifest`         sizes and checksums of the files that the broker wrote
- `directory_lock`   one broker in one data directory
- `identity`         taking a data directory; the cluster id
- `topic_ids`        the id of each topic, and how a lost one is found again
- `leader_epochs`    which leader wrote which part of a log
- `trash`            deleted logs whose files still exist
- `properties`       Java's properties files
"""
