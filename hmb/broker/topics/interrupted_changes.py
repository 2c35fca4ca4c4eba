"""When the broker starts, it completes the changes of topics that a crash has interrupted.

To create or delete a topic, the broker takes several steps: it writes `topics.json`, and creates or renames the
directories of the logs. A crash can happen between two steps. When the broker starts again, it compares the list of
topics in `topics.json` with the directories:
- The directory of a log is marked as deleted: the broker had begun to delete the topic. It now deletes the rest of the
  topic.
- A partition of a listed topic has no directory: the broker had not finished the creation of the topic, or somebody has
  removed the directory. The broker creates an empty directory for the partition.
- A directory belongs to no listed topic: another broker, for example Kafka, has created the directory. The broker adds
  the topic to the list.

Example: the broker has added the new topic `orders` with 3 partitions to `topics.json`, has created the directory
`orders-0`, and is killed. When the broker starts again, it creates `orders-1` and `orders-2` with the topic id of
`orders-0`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from hmb.broker.config.broker import log_config
from hmb.broker.topics.store import ADOPTED, StoredTopic, TopicStore
from hmb.protocol.topics import TopicPartition
from hmb.storage.config import LogConfig
from hmb.storage.log_manager import LogManager, NewLog
from hmb.storage.state import trash

LOGGER = logging.getLogger(__name__)


def finish_interrupted_changes(
    logs: LogManager,
    store: TopicStore,
    stored: dict[str, StoredTopic],
    own: Mapping[str, Mapping[str, str]],
    default: LogConfig,
) -> None:
    """Finish creations and deletions of topics that a crash interrupted. Add missing topics to `stored`.

    - `stored` contains the topics in the file `topics.json`. If the data directory contains logs of another topic,
      the function adds the topic to `stored`. Another broker, for example Kafka, may have created these logs.
    - `store` writes `stored` to the file if the function has changed `stored`.
    - `own` contains the settings of each internal topic.
    - `default` contains the values of all settings that a topic does not set itself.

    Raises OSError if a file cannot be written or deleted.
    """
    before = dict(stored)
    left = _finish_deletions(logs, stored)
    ids = logs.topic_ids()
    for name, topic in list(stored.items()):
        present = {found for found, _ in logs.items() if found.topic == name}
        wanted = {TopicPartition(name, number) for number in range(topic.partitions)}
        if wanted - present:
            LOGGER.warning(
                "topic %s: the directories of %d partitions are missing; the broker creates these partitions empty",
                name,
                len(wanted - present),
            )
            config = log_config(topic.configs, default)
            topic_id = ids.get(name) or uuid.uuid4()
            logs.create_all([NewLog(partition, config, topic_id) for partition in sorted(wanted - present)])
    for name in {found.topic for found, _ in logs.items()} - stored.keys():
        if name not in own:
            LOGGER.warning(
                "another broker, such as Kafka, has created the topic %s; HMB keeps all records of this topic until a "
                "client changes retention.ms or retention.bytes",
                name,
            )
        stored[name] = StoredTopic(0, dict(own.get(name, ADOPTED)))
    if stored != before:
        logs.write_state(partial(store.write, stored))
    trash.remove(left)


def _finish_deletions(logs: LogManager, stored: dict[str, StoredTopic]) -> list[Path]:
    """If a crash interrupted the deletion of topics, complete the deletion. Return the empty directories.

    The function empties the directories of the deleted topics. It then removes these topics from `stored`, the
    topics in `topics.json`. The caller must write `stored` to disk, and then remove the directories.

    Raises OSError, for example if a file cannot be deleted.
    """
    deleted = trash.find(logs.directory)
    deleted_ids, names = {each.topic_id for each in deleted}, {each.name for each in deleted}
    ids = {name: id for name, id in logs.topic_ids().items() if id in deleted_ids}
    rest = {name: ids[name.topic] for name, _ in logs.items() if name.topic in ids}
    renamed, kept = logs.delete(rest)
    if kept:
        raise next(iter(kept.values()))
    left = [each.path for each in deleted] + renamed
    trash.empty(left)
    present = {name.topic for name, _ in logs.items()}
    for name, topic in list(stored.items()):
        partitions = (TopicPartition(name, number) for number in range(topic.partitions))
        if name not in present and any(trash.shortened(each) in names for each in partitions):
            del stored[name]
    return left
