"""The topics of the broker: their names, ids, partitions and settings.

A topic has a name, a unique id, and one log for each partition. A topic can also have its own settings, which
override the broker's settings. The file `topics.json` contains the name, the number of partitions and the
settings of each topic. The id of a topic is in a file `partition.metadata` in the directory of each of its
logs.

Each log is a directory. The broker finds the logs by the names of these directories: `orders-0` contains the log of
partition 0 of the topic `orders`. If `topics.json` lists a partition that has no directory, the broker creates the
directory when it starts. If a directory belongs to no listed topic, the broker adds the topic to the list.

Read in this order:
1. `topic.py`            one topic
2. `table.py`            the table of all topics: look-up by name and by id
3. `registry.py`         all topics: creation, changes, deletion
4. `store.py`            the file `topics.json`
5. `interrupted_changes.py`  completes unfinished changes when the broker starts after a crash

You can skip these modules in a first reading:
- `internal.py`          the topics that the broker uses for itself, such as `__consumer_offsets`
- `journal.py`           the internal topics in which the coordinators store groups and transactions
- `group_topics.py`      the topics in the form that the group coordinator needs (KIP-848)
- `replicas.py`          checks that replica assignments contain only this broker
"""
