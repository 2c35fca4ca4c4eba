"""The embedded broker: a broker that runs inside a test, a notebook or a program.

A test uses this broker before, during and after a run of the tested program. Before the program runs, the test writes
records into topics. While the program runs, the test can kill the broker, as a crash would do, and start it again.
After the run, the test reads records. Several tests can share one broker, because the start of a new broker takes
longer than a call of `Broker.reset`, which deletes all topics and groups.

The class `Broker` can kill and restart a broker during a test, but a `BrokerServer` can start and stop only once.
Therefore a `Broker` creates a new `BrokerServer` at each restart:
    Broker      port 40001, directory /tmp/hmb-x
      |-- BrokerServer 1     start ... kill       the directory stays as the kill left it
      `-- BrokerServer 2     start ... stop       same port, same directory; the start repairs the logs

The embedded broker has its own defaults for four settings (EMBEDDED_DEFAULTS), so that tests are fast. For
example, `group.initial.rebalance.delay.ms` is 0. With Kafka's default, each new group would wait for 3 s. With
`log.flush.acks.all=false`, a power cut can destroy acknowledged records, but tests do not need this protection.

The methods `produce` and `records` use no client: they write to the logs and read from them directly. They are made for
preparing records and for checking results. To test serializers, partitioners or transactions, use a client.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hmb.broker.config.broker import ALIASES, topic_key
from hmb.broker.config.names import check_known
from hmb.broker.context import BrokerContext
from hmb.broker.dispatch import Handler
from hmb.broker.lifecycle import BrokerServer
from hmb.broker.network.listeners import Listener
from hmb.broker.topics.topic import Topic
from hmb.defaults import DEFAULT_HOST
from hmb.monitoring.collecting import collect
from hmb.monitoring.state import BrokerState
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.topics import NO_TOPIC_ID, OFFSETS_TOPIC, TopicPartition
from hmb.records import Header, Record, RecordBatch, encode_batch
from hmb.records.consumer_record import ConsumerRecord
from hmb.storage.clock import SYSTEM_CLOCK, BrokerClock
from hmb.testing import rounds
from hmb.testing.arguments import as_bytes, check_headers
from hmb.testing.clock import ManualClock
from hmb.testing.disk import DiskFaults
from hmb.testing.errors import BrokerNotRunning
from hmb.testing.faults.handler_layers import HandlerLayers
from hmb.testing.faults.requests import Faults
from hmb.testing.request_record import PATIENCE, RecordedRequest, RequestRecord
from hmb.testing.security import Secured
from hmb.testing.settings import EMBEDDED_DEFAULTS, Setting, setting_text
from hmb.testing.stored_records import records_of
from hmb.testing.versions import kafka_versions

LONGEST_LOADING = 300.0  # seconds; a start fails if the coordinator has not loaded all groups after this time


class Broker:
    """A broker in this process, for tests and experiments.

    `with Broker() as broker:` runs a broker on a free port. Its data is in a temporary directory, which is deleted
    at the end of the block. The arguments change this:

    - `data_dir`: the broker uses this directory, and does not delete it. Do not use the setting `log.dirs`.
    - `host`, `port`: the address of the broker. Do not use the setting `listeners`.
    - `config`: settings of `server.properties`. A value is a text, a number, a bool or a `timedelta`.
    - `as_version="2.8"`: the broker offers only the APIs and the API versions of Kafka 2.8.
    - `clock=ManualClock()`: a test can move the broker's time forward (hmb/testing/clock.py).
    - `users={"alice": "secret"}`: clients must log in. `tls=True`: connections are encrypted. A client then needs
      the settings in the property `security`: `hmb.Producer(servers, security=broker.security)`.

    The defaults suit tests: a new group does not wait for further members, the broker's own topics have one
    partition, and `acks=all` does not wait for the disk. Three attributes are made for tests. `faults` lets requests
    fail (hmb/testing/faults). `disk` simulates faults of the disk (hmb/testing/disk.py). `requests` contains the
    requests of clients (hmb/testing/request_record.py).
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        host: str = DEFAULT_HOST,
        port: int = 0,
        config: Mapping[str, Setting] | None = None,
        as_version: str | None = None,
        clock: ManualClock | None = None,
        users: Mapping[str, str] | None = None,
        tls: bool = False,
    ) -> None:
        """Check the settings. The broker does not run before `start`.

        Raises ConfigError for a wrong value, an unknown setting or an unknown version of Kafka.
        """
        config = config or {}
        check_known(config)
        self._secured = secured = Secured(users or {}, host, port, tls=tls)
        settings = {**EMBEDDED_DEFAULTS, **secured.settings, **config}
        self._config = {name: setting_text(name, value) for name, value in settings.items()}
        self._address = host, port
        self._data_dir = data_dir
        self._names_directory = data_dir is not None or any(ALIASES.get(name, name) == "log.dirs" for name in config)
        self._remove_temporary: weakref.finalize[[str], Self] | None = None
        layers = HandlerLayers()
        self.handlers: dict[ApiKey, Handler] = layers.handlers
        self._faults = Faults(layers)
        self._requests = RequestRecord(layers)
        self._versions = None if as_version is None else kafka_versions(as_version)
        self._clock = clock
        self._disk = DiskFaults()
        self._server = self._new_server()  # This call checks the settings.
        self._is_running = False

    def _new_server(self) -> BrokerServer:
        # Without syncs, records survive a kill of the broker, but not a power cut. After a power cut, nobody uses a
        # temporary directory, so a broker with a temporary directory makes no syncs.
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
        """The addresses to which clients connect first: `host:port`, separated by commas. Start the broker first."""
        return self._server.bootstrap_servers

    @property
    def listeners(self) -> list[Listener]:
        """The broker's listeners, with the ports that the operating system has assigned to them."""
        return self._server.listeners

    @property
    def data_dir(self) -> Path:
        """The directory of the logs. Start the broker before you use this property."""
        return self._server.context.topics.directory

    @property
    def security(self) -> dict[str, str]:
        """The settings with which a client connects as the first user in `users`."""
        return self._secured.client_settings

    @property
    def is_running(self) -> bool:
        return self._is_running

    @property
    def _running(self) -> BrokerServer:
        """The running broker. Raises BrokerNotRunning."""
        if not self._is_running:
            raise BrokerNotRunning
        return self._server

    @property
    def _context(self) -> BrokerContext:
        return self._running.context

    @property
    def faults(self) -> Faults:
        """Simulates faults of requests. `faults.add("Produce", error="NOT_COORDINATOR", times=2)` adds a fault."""
        return self._faults

    @property
    def disk(self) -> DiskFaults:
        """Simulates faults of the disk. For example, the disk is full inside the block `with broker.disk.full():`."""
        return self._disk

    @property
    def clock(self) -> ManualClock | None:
        """The clock that a test moves forward, or None if the broker uses the system clock."""
        return self._clock

    @property
    def requests(self) -> RequestRecord:
        """The recorded requests. Recording starts at the first use of this property, and continues after restarts."""
        self._requests.start()
        return self._requests

    @property
    def connected_clients(self) -> list[str]:
        """The addresses (`host:port`) of the connected clients, one for each open connection."""
        return self._server.connected_clients if self._is_running else []

    @property
    def refuses_writes(self) -> bool:
        """Whether a log refuses writes, for example after a failed sync. A restart of the broker ends this state."""
        return any(log.group_commit.has_failed for _, log in self._running.logs.items())

    @property
    def recorded_requests(self) -> list[RecordedRequest]:
        """The requests that are recorded so far. Unlike `requests`, this property never starts a recording."""
        return list(self._requests)

    def forget_requests(self) -> None:
        """Stop the recording of requests, and delete all recorded requests."""
        self._requests.stop()
        self._requests.clear()

    def wait_for(
        self, api: str | ApiKey, count: int = 1, *, timeout: float = PATIENCE, **selection: Any
    ) -> list[RecordedRequest]:
        """Wait until at least `count` requests of an API are recorded, and return these requests.

        `RequestRecord.wait_for` explains `timeout` and `selection`.
        """
        return self.requests.wait_for(api, count, timeout=timeout, **selection)

    # -- start and stop

    def start(self) -> Self:
        """Start the broker. Each later start uses the port and the directory of the first start.

        Raises RuntimeError if the broker is already running, BindError if the port is not free, DataDirectoryError if
        the directory is unusable, and TimeoutError if groups still load after LONGEST_LOADING seconds.
        """
        if self._is_running:
            raise RuntimeError("the broker is running already; `restart` stops it first")
        if not self._names_directory:
            self._data_dir = tempfile.mkdtemp(prefix="hmb-")
            self._names_directory = True
            self._remove_temporary = weakref.finalize(self, shutil.rmtree, self._data_dir, ignore_errors=True)
        self._server = self._new_server()
        self._server.start()
        if not self._server.context.groups.loaded.wait(LONGEST_LOADING):
            self._server.stop()
            raise TimeoutError(f"the broker has not loaded its groups after {LONGEST_LOADING:g} s; its log shows why")
        self._secured.add_users(self._server.context.security)
        self._is_running = True
        self._config["listeners"] = ",".join(f"{each.name}://{each}" for each in self._server.listeners)
        self.disk.attach(self._server)
        if self.clock is not None:
            self.clock.attach(self._server)
        return self

    def stop(self) -> None:
        """Stop the broker cleanly: finish the current requests, close the connections, and sync and close the logs.

        The directory is not deleted, so the broker can start again with the same records. If the broker is not running,
        do nothing.
        """
        if self._is_running:
            self._end_run()
            self._server.stop()

    def kill(self) -> None:
        """Stop the broker like `kill -9`: close the connections, but sync nothing, as in a crash.

        If the broker is not running, do nothing. No appended record is lost, because the operating system later writes
        it to the disk. Only a power cut could cause a loss. The broker writes no marker of a clean stop.

        A client that sends to a killed broker waits until its own timeout: 5 minutes in librdkafka. To avoid this wait,
        call `restart` soon after `kill`.
        """
        if self._is_running:
            self._end_run()
            self._server.kill()

    def _end_run(self) -> None:
        self._is_running = False
        self.disk.detach()
        if self.clock is not None:
            self.clock.detach(self._server)

    def restart(self) -> Self:
        """Stop the broker if it is running, and start it with the same port and directory.

        This method also starts a broker that has never run.
        """
        if self._is_running:
            self.stop()
        return self.start()

    def close(self) -> None:
        """Stop the broker. If the broker uses a temporary directory, delete this directory."""
        self.stop()
        if self._remove_temporary is not None:
            self._remove_temporary()

    def __enter__(self) -> Self:
        return self if self._is_running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def state(self) -> BrokerState:
        """Return what the broker knows about itself now: its topics with their segments, groups, requests and events.

        hmb/monitoring/state.py describes the fields.
        """
        return collect(self._running)

    # -- topics, records and groups

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, Setting] | None = None) -> None:
        """Create a topic. `config` contains topic settings.

        Raises KafkaError, for example if the topic exists, and ConfigError for an unknown setting.
        """
        config = config or {}
        for key in config:
            topic_key(key)
        texts = {key: setting_text(key, value) for key, value in config.items()}
        self._context.topics.create(name, partitions, texts)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, its records, and the offsets that groups have committed for it. Raises KafkaError."""
        self._delete([self._topic(name)])

    def topics(self) -> list[str]:
        """Return the names of all topics, sorted. Internal topics, such as `__consumer_offsets`, are left out."""
        return [topic.name for topic in self._context.topics.all() if not topic.is_internal]

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic. Raises KafkaError if the topic does not exist."""
        return len(self._topic(topic).partitions)

    def reset(self) -> None:
        """Delete all topics, records, groups and transactions. Connections of clients stay open. Raises KafkaError."""
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
        """Append one record for each value to a partition, and return the offset of the first record.

        If the topic is missing, create it. Each record has the given `key`, `headers` and `timestamp` (ms; None means
        now). Texts are encoded as UTF-8.

        Raises ValueError if `values` is empty, TypeError if an argument has a wrong type, and BrokerNotRunning. Raises
        KafkaError if the topic cannot be created, the partition is missing, or the log refuses the records.
        """
        if not values:
            raise ValueError("pass at least one value; the value None becomes a tombstone")
        if topic not in self._context.topics:
            self.create_topic(topic, self._context.config.num_partitions)
        log = self._context.topics.log_of(TopicPartition(topic, partition))
        time = self._times.now_ms() if timestamp is None else timestamp
        if not isinstance(time, int):
            raise TypeError(f"timestamp={time!r}: the value must be a number of milliseconds since 1970")
        check_headers(headers)
        records = [Record(-1, time, as_bytes("key", key), as_bytes("value", each), headers) for each in values]
        return log.append(RecordBatch.parse(encode_batch(records))).base_offset

    def records(self, topic: str) -> list[ConsumerRecord]:
        """Return all records of a topic: first the records of partition 0, next the records of partition 1, and so on.

        The result contains records of open and aborted transactions, but no control records. Raises KafkaError if the
        topic does not exist.
        """
        return [
            ConsumerRecord(
                topic, number, each.offset, each.timestamp, each.timestamp_type, each.key, each.value, each.headers
            )
            for number, log in sorted(self._topic(topic).partitions.items())
            for each in records_of(log)
        ]

    def _topic(self, name: str) -> Topic:
        return self._context.topics.find(name, NO_TOPIC_ID)

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the offsets that a group has committed. Return {} for an unknown group. Raises KafkaError."""
        if OFFSETS_TOPIC not in self._context.topics:
            return {}
        return {name: each.offset for name, each in self._context.groups.offsets.fetch(group, None).items()}

    # -- time

    def run_retention(self) -> dict[TopicPartition, int]:
        """Delete expired segments now. For each changed partition, return the increase of the log start offset."""
        return rounds.run_retention(self._running)

    def compact(self) -> dict[TopicPartition, int]:
        """Compact all compacted topics now. Return the number of removed bytes for each changed partition.

        The active segments are compacted, too. But segments with records younger than `min.compaction.lag.ms`, and
        all later segments, stay unchanged. Each partition keeps its last record.
        """
        return rounds.compact(self._running)
