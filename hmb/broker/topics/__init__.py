"""Topics: names, ids, partitions and settings.

A topic is a name, a unique id, one log for each partition, and the settings in which it differs from the broker's. The
logs are found by the names of their directories: `orders-0` holds partition 0 of `orders`. The settings are in the file
`topics.json`.

Read in this order:

1. `topic.py`            one topic
2. `registry.py`         all topics: look-up, creation, changes, deletion
3. `store.py`            the file `topics.json`

A first reading can skip the rest:

- `internal.py`          the topics that belong to the broker, such as `__consumer_offsets`
- `journal.py`           the internal topics in which the coordinators keep their state
- `group_topics.py`      the topics as consumer groups of KIP-848 see them
- `replicas.py`          replicas that a client assigns: the only choice is the one broker
"""
