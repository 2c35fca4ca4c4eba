"""The embedded broker: a broker inside a test, a notebook or a program.

A test needs more of a broker than a server does. It arranges records before its program runs and looks at the records
afterwards. It stops the broker in the middle, as a crash does, and starts it again. It empties the broker for the next
test, because a new broker for each test would cost more.

`Broker` is this broker. A `BrokerServer` starts and stops once, so each restart of a `Broker` makes a new one::

    Broker      port 40001, directory /tmp/hmb-x
      |-- BrokerServer 1     start ... kill       the directory stays as the crash left it
      `-- BrokerServer 2     start ... stop       same port, same directory; the start repairs the logs

The defaults of four settings differ from those of a server, because a test wants speed rather than safety after a
power cut (EMBEDDED_DEFAULTS). With Kafka's value of `group.initial.rebalance.delay.ms`, each new group waits for 3 s.

A limit: `produce` and `records` use the logs directly. They are for the arrange and assert steps of a test. A test of
serializers, partitioners or transactions uses a client.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hmb.broker.broker import BrokerServer
from hmb.broker.config.broker_config import ALIASES, BROKER_CONFIGS, TOPIC_KEYS
from hmb.broker.config.keys import ConfigError, nearest
from hmb.broker.context import BrokerContext
from hmb.broker.dispatch import Handler
from hmb.broker.network.listeners import Listener
from hmb.broker.topics.topic import Topic
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.topics import NO_TOPIC_ID, OFFSETS_TOPIC, TopicPartition
from hmb.records import Header, Record, encode_batch, iter_batches
from hmb.records.consumer_record import ConsumerRecord
from hmb.storage.clock import SYSTEM_CLOCK, BrokerClock
from hmb.storage.log import Log
from hmb.testing import rounds
from hmb.testing.clock import ManualClock
from hmb.testing.disk import DiskFaults
from hmb.testing.faults import Faults
from hmb.testing.handler_layers import HandlerLayers
from hmb.testing.request_record import RecordedRequest, RequestRecord
from hmb.testing.versions import kafka_versions
from hmb.units import in_unit_of, is_time, plain_value

Setting = str | int | float | bool | timedelta
EMBEDDED_DEFAULTS: Mapping[str, Setting] = {
    "group.initial.rebalance.delay.ms": 0,
    "log.flush.acks.all": False,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
READ_BYTES = 1 << 20


def setting_text(name: str, value: Setting) -> str:
    """Return the text of a setting's value, as in `server.properties`.

    A text may have a unit, as in `1h` or `1MiB`. A `timedelta` becomes a number in the unit that the setting's name
    ends with. Raises ConfigError if the name ends with no unit, or if the time is not a whole number of units.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        if not isinstance(value, timedelta):
            return plain_value(name, str(value))
        if not is_time(name):
            raise ValueError("the setting is not a time; give a number or a text")
        milliseconds, rest = divmod(value, timedelta(milliseconds=1))
        if rest:
            raise ValueError("must be a whole number of milliseconds")
        return in_unit_of(name, milliseconds)
    except ValueError as error:
        raise ConfigError(str(error), name, str(value)) from None


class Broker:
    """A broker in this process, for tests and experiments.

    `with Broker() as broker:` runs a broker on a free port with a temporary directory, which is removed at the end.
    With `data_dir` the records stay. `config` contains names and values of `server.properties`. A value is a text, a
    number, a bool or a `timedelta`. `host` and `port` are short for `listeners`, and `data_dir` for `log.dirs`.

    The defaults suit tests: a new group does not wait for further members, the broker's own topics have one partition,
    and `acks=all` does not wait for the disk. `faults` makes the broker fail (hmb/testing/faults.py), `disk` makes its
    disk fail (hmb/testing/disk.py), and `requests` shows what clients have sent (hmb/testing/request_record.py).

    With `clock` a test moves the time of the broker forward (hmb/testing/clock.py).

    With `as_version="2.8"` the broker offers only the APIs and the versions that this version of Kafka has.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        config: Mapping[str, Setting] | None = None,
        as_version: str | None = None,
        clock: ManualClock | None = None,
    ) -> None:
        """Raises ConfigError, also for an unknown setting or an unknown version of Kafka."""
        config = config or {}
        for name in config:
            if name not in BROKER_CONFIGS:
                raise ConfigError(f"unknown setting {name!r}{nearest(name, BROKER_CONFIGS)}")
        self._config = {name: setting_text(name, value) for name, value in {**EMBEDDED_DEFAULTS, **config}.items()}
        self._address = host, port
        self._data_dir = data_dir
        self._names_directory = data_dir is not None or any(ALIASES.get(name, name) == "log.dirs" for name in config)
        self._remove_temporary: weakref.finalize[[str], Self] | None = None
        layers = HandlerLayers()
        self.handlers: dict[ApiKey, Handler] = layers.handlers
        self.faults = Faults(layers)
        self._requests = RequestRecord(layers)
        self._versions = None if as_version is None else kafka_versions(as_version)
        self.clock = clock
        self.disk = DiskFaults()
        self._server = self._new_server()  # This checks the settings.
        self._is_running = False

    def _new_server(self) -> BrokerServer:
        # A killed broker loses no records that are in the system's cache, so a temporary directory needs no syncs:
        # nobody uses it after a power cut.
        syncs = self._names_directory and self._remove_temporary is None
        return BrokerServer(
            *(self._data_dir, *self._address, self._config, self.handlers, self._versions),
            syncs=syncs,
            clock=self._times,
        )

    @property
    def _times(self) -> BrokerClock:
        return SYSTEM_CLOCK if self.clock is None else self.clock.functions

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that clients connect to first: `host:port`, comma-separated. A started broker knows them."""
        return self._server.bootstrap_servers

    @property
    def listeners(self) -> list[Listener]:
        """The listeners, with the ports that the system has assigned."""
        return self._server.listeners

    @property
    def data_dir(self) -> Path:
        """The directory of the logs. A started broker knows it."""
        return self._context.topics.directory

    @property
    def is_running(self) -> bool:
        return self._is_running

    @property
    def _context(self) -> BrokerContext:
        return self._server.context

    @property
    def requests(self) -> RequestRecord:
        """The requests of clients since the first use of this property, across restarts."""
        self._requests.start()
        return self._requests

    @property
    def open_connections(self) -> int:
        """The number of connections that clients keep open. A stopped broker has none."""
        return self._server.open_connections if self._is_running else 0

    @property
    def recorded_requests(self) -> list[RecordedRequest]:
        """The requests that were recorded until now. Reading this property does not begin the record."""
        return list(self._requests)

    def wait_for(
        self, api: str | ApiKey, count: int = 1, *, timeout: float = 10.0, **selection: Any
    ) -> list[RecordedRequest]:
        """Wait until clients have sent `count` requests of an API, and return them (`RequestRecord.wait_for`)."""
        return self.requests.wait_for(api, count, timeout=timeout, **selection)

    # -- start and stop

    def start(self) -> Self:
        """Start the broker. After a stop or a kill it has the same port and the same directory as before.

        Raises RuntimeError if the broker runs, BindError, DataDirectoryError.
        """
        if self._is_running:
            raise RuntimeError("the broker is running already; `restart` stops it first")
        if not self._names_directory:
            self._data_dir = tempfile.mkdtemp(prefix="hmb-")
            self._names_directory = True
            self._remove_temporary = weakref.finalize(self, shutil.rmtree, self._data_dir, ignore_errors=True)
        self._server = self._new_server()
        self._server.start()
        self._is_running = True
        self._config["listeners"] = ",".join(f"{each.name}://{each}" for each in self._server.listeners)
        self._server.context.groups.loaded.wait()  # The wait ends: the loader only reads files, and survives bad ones.
        self.disk.attach(self._server)
        if self.clock is not None:
            self.clock.attach(self._server)
        return self

    def stop(self) -> None:
        """Answer the requests that have begun, close the connections, sync and close the logs. The data stays."""
        self._end_run()
        self._server.stop()

    def kill(self) -> None:
        """Stop as `kill -9` does: cut the connections, sync nothing, and leave no marker of a clean stop.

        The operating system still writes appended records to the files. Only a power cut loses these records.
        """
        self._end_run()
        self._server.kill()

    def _end_run(self) -> None:
        self._is_running = False
        self.disk.detach()
        if self.clock is not None:
            self.clock.detach(self._server)

    def restart(self) -> Self:
        """Start the broker again on the same port and directory. A running broker is stopped first."""
        if self._is_running:
            self.stop()
        return self.start()

    def close(self) -> None:
        """Stop the broker, and remove its temporary directory."""
        self.stop()
        if self._remove_temporary is not None:
            self._remove_temporary()

    def __enter__(self) -> Self:
        return self if self._is_running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- topics, records and groups

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, Setting] | None = None) -> None:
        """Create a topic. Raises KafkaError, and ConfigError for an unknown setting."""
        config = config or {}
        for key in config:
            if key not in TOPIC_KEYS:
                raise ConfigError(f"unknown topic config {key!r}{nearest(key, TOPIC_KEYS)}")
        texts = {key: setting_text(key, value) for key, value in config.items()}
        self._context.topics.create(name, partitions, texts)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, its records, and the offsets that groups have committed in it. Raises KafkaError."""
        topic = self._context.topics.find(name, NO_TOPIC_ID)
        self._delete([topic])

    def topics(self) -> list[str]:
        """Return the names of the topics, without the broker's own, in order."""
        return [topic.name for topic in self._context.topics.all() if not topic.is_internal]

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic. Raises UNKNOWN_TOPIC_OR_PARTITION."""
        return len(self._topic(topic).partitions)

    def reset(self) -> None:
        """Delete all topics, records, groups and transactions. The connections stay. Raises KafkaError."""
        self._delete(self._context.topics.all())

    def _delete(self, topics: Sequence[Topic]) -> None:
        for outcome in self._context.topics.delete(topics, self._context.on_topics_deleted):
            if outcome is not None:
                raise outcome

    def produce(
        self,
        topic: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        partition: int = 0,
        headers: tuple[Header, ...] = (),
        timestamp: int | None = None,
    ) -> int:
        """Append a record for each value to a partition, and return the offset of the first one.

        A topic that does not exist is created. Each record gets `key`, `headers` and `timestamp` (ms; None: now). Texts
        are encoded as UTF-8. Raises KafkaError, and ValueError without values.
        """
        if not values:
            raise ValueError("name at least one value; None is a tombstone")
        if topic not in self._context.topics:
            self.create_topic(topic, self._context.config.num_partitions)
        log = self._context.topics.log_of(TopicPartition(topic, partition))
        time = self._times.now_ms() if timestamp is None else timestamp
        records = [Record(-1, time, _bytes(key), _bytes(value), headers) for value in values]
        return log.append(memoryview(encode_batch(records))).base_offset

    def records(self, topic: str) -> list[ConsumerRecord]:
        """Return the records of a topic, partition after partition, without control records.

        Records of open and aborted transactions are among them (`read_uncommitted`). Raises UNKNOWN_TOPIC_OR_PARTITION.
        """
        return [
            ConsumerRecord(
                topic, number, each.offset, each.timestamp, each.timestamp_type, each.key, each.value, each.headers
            )
            for number, log in sorted(self._topic(topic).partitions.items())
            for each in _records_of(log)
        ]

    def _topic(self, name: str) -> Topic:
        found = self._context.topics.get(name)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return found

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the offsets that a group has committed. A group that does not exist has none. Raises KafkaError."""
        if OFFSETS_TOPIC not in self._context.topics:
            return {}
        return {name: each.offset for name, each in self._context.groups.fetch_offsets(group, None).items()}

    # -- time

    def run_retention(self) -> dict[TopicPartition, int]:
        """Delete expired records now. Return the number of deleted offsets of each partition that lost records."""
        return rounds.run_retention(self._server)

    def compact(self) -> dict[TopicPartition, int]:
        """Compact the compacted topics now. Return the number of removed bytes of each partition that lost records.

        The round also compacts the active segments, but it keeps the last record of each partition.
        """
        return rounds.compact(self._server)


def _bytes(text: bytes | str | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _records_of(log: Log) -> Iterator[Record]:
    """Yield the records of a log from its start offset on."""
    offset = start = log.log_start_offset
    while (region := log.read(offset, READ_BYTES).records) is not None:
        previous = offset
        for batch in iter_batches(region.read()):
            if not batch.is_control:
                batch.check()
                yield from (record for record in batch.records() if record.offset >= start)
            offset = batch.last_offset + 1
        if offset == previous:
            return
