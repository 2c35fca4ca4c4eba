"""The start and the stop of a broker and of all its parts.

When a broker starts, it creates its parts in this order, because each part uses parts that were created earlier:
1. *Settings.* The constructor reads and checks them. A wrong setting causes an error before the broker binds a port.
2. *Listeners.* The server binds its ports. If another program uses a port, the start fails before the broker
   touches the data directory. Clients can connect from now on, but wait until step 8.
3. *Data directory.* `LogManager` locks it, so that no second broker can write there. If no data directory is set,
   the broker makes a temporary one.
4. *Stored settings.* The broker reads the settings that clients have changed from the data directory. Each topic's
   log needs them.
5. *Logs.* `Topics` opens and recovers the logs. The broker then creates the object that assigns producer ids,
   because a new id must be higher than all ids in the logs.
6. *Coordinators.* The coordinator of groups is the first, because the coordinators of transactions and share groups
   use it. Each coordinator loads its records in the background. Until it has loaded them, requests to it get the
   error COORDINATOR_LOAD_IN_PROGRESS.
7. *Housekeeping.* Two threads run the periodic tasks, such as retention and compaction.
8. *Connections.* The server accepts connections and answers requests.

When a broker stops, it first wakes the threads that wait. It closes the logs last, because requests and
periodic tasks write to them:
1. *The signal `Stop`.* Fetch requests that wait for records get their responses at once. Recovery and
   compaction end early.
2. *Coordinators.* A JoinGroup request can wait for other members for minutes. The coordinator answers it with
   NOT_COORDINATOR. Otherwise, the server would have to wait for this request in step 3.
3. *Connections.* The server accepts no more connections. Each connection ends after its current request.
4. *Housekeeping.* The broker waits until the running periodic tasks have ended.
5. *Logs.* The broker syncs and closes the logs. It then creates a file that marks the proper stop, and releases
   the lock of the data directory.

When a broker stops, it waits at most STOP_TIMEOUT seconds for its coordinators, connections and periodic tasks.
It then closes the logs, even if a connection or a task is still active. If a start fails, the broker stops
the parts that it has started.

For example, a broker stops while a consumer waits up to 30 s for new records. The signal `Stop` wakes the thread that
handles the consumer's Fetch, and the thread sends an empty response. The connection then ends, and the broker does not
wait for the rest of the 30 s.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from hmb.broker.config.broker import BrokerConfig
from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.config.groups.overrides import share_group_settings
from hmb.broker.config.start_settings import data_dir_of, window_sizes
from hmb.broker.config.store import ConfigStore
from hmb.broker.context import BrokerContext, ConnectedClient, Stop
from hmb.broker.coordinators import ShareGroups, group_coordinator, transaction_coordinator
from hmb.broker.counting import counted
from hmb.broker.dispatch import Handler
from hmb.broker.fetch_sessions import FetchSessions
from hmb.broker.handlers import HANDLERS
from hmb.broker.handlers.api_versions import offered_versions
from hmb.broker.housekeeping import Housekeeper
from hmb.broker.network import descriptors
from hmb.broker.network.connection_limits import connection_limits
from hmb.broker.network.listeners import Listener, parse_listeners, real_settings
from hmb.broker.network.request_memory import RequestMemory
from hmb.broker.network.server import Server
from hmb.broker.request_counters import RequestCounters
from hmb.broker.security.addresses import security_of
from hmb.broker.security.quotas.measuring import ClientQuotas
from hmb.broker.security.quotas.throttling import throttled
from hmb.broker.security.refused_logins import RefusedLogins
from hmb.broker.security.settings import authorizer_of, unopened_listeners
from hmb.broker.security.store import SecurityStore
from hmb.broker.security.tokens.delegation import DelegationTokens, TokenSettings
from hmb.broker.share.sessions import ShareSessions
from hmb.broker.topics.registry import Topics
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.defaults import DEFAULT_HOST
from hmb.protocol.api_keys import ApiKey
from hmb.storage.clock import SYSTEM_CLOCK, BrokerClock
from hmb.storage.compaction.cleaner import Cleaner
from hmb.storage.files.virtual import OPEN_FILES
from hmb.storage.log_manager import LogManager
from hmb.storage.state.manifest import Manifest
from hmb.units import MINUTE_MS

if TYPE_CHECKING:
    from hmb.broker.telemetry.instances import ClientTelemetry

LOGGER = logging.getLogger(__name__)
Part = TypeVar("Part")
DISK_CHECK_INTERVAL = 1.0  # seconds between two checks whether a full disk has free space again
SHARE_STATE_PRUNE_INTERVAL = 300.0  # seconds between two deletions of old records of __share_group_state
STOP_TIMEOUT = 4.0  # A stopping broker waits at most this time (s) for its connections and periodic tasks.


class BrokerServer:
    """A broker that runs in this process. It can be started once and stopped once.

    The command `hmb broker` starts one BrokerServer. `Broker` (hmb/testing/embedded.py) can be started again: each
    time it creates a new BrokerServer.

    - `config` contains settings, with the same names as in `server.properties`.
    - `host` and `port` determine the setting `listeners`, unless `config` contains it.
    - `data_dir` is the data directory (`log.dirs`). If no data directory is set, the broker creates a temporary
      one, and removes it when it stops.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        host: str = DEFAULT_HOST,
        port: int = 0,
        config: Mapping[str, str] | None = None,
        handlers: Mapping[ApiKey, Handler] = HANDLERS,
        versions: Mapping[ApiKey, range] | None = None,
        *,
        syncs: bool = True,
        clock: BrokerClock = SYSTEM_CLOCK,
    ) -> None:
        """Read the settings. Raises ConfigError if a setting is wrong.

        - `handlers` contains the function that handles the requests of each API.
        - `versions` contains the versions of each API that the broker supports. None means all versions.
        - If `syncs` is false, the broker does not sync the list of topics and the settings, so a power cut can destroy
          them. This is enough for a temporary directory, which nobody uses after a power cut.
        - `clock` returns the time. It determines when records, transactions, offsets and group members expire
          (hmb/storage/clock.py).
        """
        self._clock, self._syncs = clock, syncs
        self._requests = RequestCounters()
        properties = {"listeners": f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}", **(config or {})}
        self.properties = properties
        self.authorizer = authorizer_of(properties)
        self._config = BrokerConfig.from_properties(properties)
        self._quotas = ClientQuotas(*window_sizes(self._config), clock.monotonic_ms)
        counting = counted(self._guarded(handlers), self._requests)
        self._handlers, self._load_quotas = throttled(counting, self._quotas)
        self._versions = offered_versions(versions, telemetry=self._config.client_telemetry)
        self._listeners = parse_listeners(self._config, unopened_listeners(properties))
        self._limits = connection_limits(self._listeners, properties, self._quotas.size)
        self.security = security_of(self._listeners, properties, serves_everybody=self._config.allow_unauthenticated)
        self._data_dir = data_dir_of(data_dir, properties, self._config)
        self._temporary: Path | None = None
        self._stop = Stop()
        self._is_stopped = False
        self._logs: LogManager | None = None
        self._context: BrokerContext | None = None
        self._groups: GroupCoordinator | None = None
        self._transactions: TransactionCoordinator | None = None
        self._share: ShareGroups | None = None
        self._server: Server | None = None
        self._cleaner: Cleaner | None = None
        self.housekeepers: list[Housekeeper] = []
        self.started_ms = clock.now_ms()

    def _guarded(self, handlers: Mapping[ApiKey, Handler]) -> Mapping[ApiKey, Handler]:
        """Return handlers that first check the ACLs. If the broker has no authorizer, return `handlers` unchanged."""
        if self.authorizer is None:
            return handlers
        from hmb.broker.security.acls.guards import guarded  # takes 8 ms; only a broker with ACLs needs it

        return guarded(handlers, self.authorizer)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses that clients connect to first, as one text: `host:port,host:port`. Available after `start`."""
        return ",".join(listener.advertised for listener in self.listeners)

    @property
    def listeners(self) -> list[Listener]:
        """The listeners of the broker, with the ports that they really use. Available after `start`.

        If the setting `listeners` contains port 0, the operating system chooses a free port.
        """
        return _started(self._server).listeners

    @property
    def context(self) -> BrokerContext:
        """The parts of the broker that handlers use, such as its topics. Available after `start`."""
        return _started(self._context)

    @property
    def logs(self) -> LogManager:
        """The manager of the broker's logs. Available after `start`."""
        return _started(self._logs)

    @property
    def data_dir(self) -> Path:
        return self.logs.directory

    @property
    def cleaner(self) -> Cleaner:
        return _started(self._cleaner)

    @contextmanager
    def housekeeping_paused(self) -> Iterator[None]:
        """Pause the periodic tasks of the broker during a `with` block.

        If a periodic task is running, first wait until this task has ended.
        """
        with ExitStack() as stack:
            for housekeeper in self.housekeepers:
                stack.enter_context(housekeeper.lock)
            yield

    def start(self) -> Self:
        """Bind the ports of the listeners, open the logs, and then accept connections.

        Raises BindError and DataDirectoryError. Raises Stopped (storage/recovery) if another thread calls
        `cancel_start`.
        """
        if self._server is not None or self._is_stopped:
            raise RuntimeError("this BrokerServer cannot start again; create a new one with the same data directory")
        limit = descriptors.raise_limit()
        OPEN_FILES.limit = descriptors.for_files(limit)
        memory = RequestMemory(self._config.queued_max_bytes)
        most = descriptors.for_connections(limit)
        self._server = Server(self._listeners, memory, most, self._handlers, self.security, self._limits)
        try:
            self._open(self._server)
        except BaseException:
            self.stop()
            raise
        LOGGER.info("listening on %s, data in %s", self.bootstrap_servers, self.data_dir)
        return self

    def _open_data_dir(self) -> LogManager:
        """Lock the data directory, or make a temporary one."""
        directory = self._data_dir
        if directory is None:
            import tempfile  # The import takes 5 ms. A broker with a data directory does not need it.

            directory = self._temporary = Path(tempfile.mkdtemp(prefix="hmb-"))
        return LogManager(
            directory,
            node_id=self._config.broker_id,
            stop=self._stop.requested,
            syncs=self._syncs,
            clock=self._clock.now_ms,
        )

    def _open_security(self, directory: Path, manifest: Manifest) -> SecurityStore:
        store = SecurityStore(directory, manifest)
        if self.authorizer is not None:
            store.listen(self.authorizer.load)
        store.listen(self._load_quotas)
        self._quotas.resolve_hosts()
        return store

    def _client_telemetry(self, configs: DynamicConfig) -> ClientTelemetry | None:
        """Return the client instances that send metrics, or None if the broker does not offer client telemetry."""
        if not self._config.client_telemetry:
            return None
        from hmb.broker.telemetry.instances import ClientTelemetry  # Only a broker with client telemetry needs it.

        return ClientTelemetry(lambda: configs.client_metrics)

    def _open(self, server: Server) -> None:
        self._logs = self._open_data_dir()
        directory, manifest = self._logs.directory, self._logs.manifest
        properties = real_settings(self.properties, server.listeners, directory)
        configs = DynamicConfig(properties, ConfigStore(directory, manifest))
        topics = Topics(self._logs, configs.current)
        configs.listen(lambda config: topics.set_default(config.log))
        producer_ids = ProducerIds(directory / "producer-ids", manifest, self._logs.highest_producer_id())
        self._groups = groups = group_coordinator(topics, configs, self._clock)
        self._transactions = transactions = transaction_coordinator(topics, configs, producer_ids, groups, self._clock)
        self._share = share = ShareGroups(topics, configs, groups, self._clock)
        security = self._open_security(directory, manifest)
        self._context = context = BrokerContext(
            configs=configs,
            cluster_id=self._logs.cluster_id,
            topics=topics,
            producer_ids=producer_ids,
            fetch_sessions=FetchSessions(self._config.fetch_session_slots, self._config.fetch_session_eviction),
            groups=groups,
            transactions=transactions,
            share_groups=share,
            share_sessions=ShareSessions(self._config.share.max_sessions),
            share_settings=partial(share_group_settings, configs),
            stop=self._stop,
            clock=self._clock,
            versions=self._versions,
            requests=self._requests,
            events=self._logs.events,
            security=security,
            tokens=DelegationTokens(security, TokenSettings.from_properties(self.properties), self._clock.now_ms),
            refused_logins=RefusedLogins(self._logs.events),
            quotas=self._quotas,
            telemetry=self._client_telemetry(configs),
            has_authorizer=self.authorizer is not None,
        )
        for coordinator in (groups, transactions, share):
            coordinator.start()
        self._start_housekeeping(self._logs, groups, transactions, configs)
        server.start(context)

    def _start_housekeeping(
        self, logs: LogManager, groups: GroupCoordinator, transactions: TransactionCoordinator, configs: DynamicConfig
    ) -> None:
        config = self._config
        self._cleaner = cleaner = Cleaner(
            logs,
            max_memory=config.cleaner_memory,
            rate=config.cleaner_rate,
            stop=self._stop.requested,
            clock=self._clock.now_ms,
        )
        configs.listen(lambda config: cleaner.reconfigure(max_memory=config.cleaner_memory, rate=config.cleaner_rate))
        short_tasks = [
            (lambda: DISK_CHECK_INTERVAL, logs.watch_disk),
            (lambda: config.retention_check_interval / 1000, logs.expire),
            (lambda: config.flush_check_interval / 1000, logs.flush_if_due),
            (
                lambda: config.offsets_check_interval / 1000,
                lambda: groups.offsets.expire(config.offsets_retention * MINUTE_MS),
            ),
            (lambda: config.transactions_check_interval / 1000, transactions.abort_timed_out),
            (
                lambda: config.transactional_ids_check_interval / 1000,
                lambda: transactions.expire(config.transactional_id_expiration),
            ),
            (lambda: self.context.tokens.check_interval, lambda: self.context.tokens.remove_expired()),
            (lambda: SHARE_STATE_PRUNE_INTERVAL, lambda: self.context.share_groups.prune()),
        ]
        # Compaction takes long, and would delay the other periodic tasks. So a second `Housekeeper` thread runs only
        # the compaction.
        compaction = [(lambda: configs.current.cleaner_backoff / 1000, cleaner.run)]
        self.housekeepers = [Housekeeper(self._stop, short_tasks), Housekeeper(self._stop, compaction)]
        for housekeeper in self.housekeepers:
            housekeeper.start()

    def cancel_start(self) -> None:
        """Interrupt `start`, which can take long when it recovers logs. Call this method in a second thread.

        When a broker starts with this data directory again, it begins the recovery of the logs again.
        """
        self._stop.request()

    def clients(self) -> list[tuple[str, ConnectedClient]]:
        """Return, for each open connection, the address (`host:port`) of the client and its `ConnectedClient`."""
        return self._server.clients() if self._server is not None else []

    @property
    def connected_clients(self) -> list[str]:
        """The address of each connected client."""
        return [address for address, _ in self.clients()]

    def kill(self) -> None:
        """Simulate `kill -9`: close the connections at once, sync no log, and do not record a clean shutdown."""
        if self._server is not None:
            self._server.stop(time.monotonic())
        self.stop(crash=True)

    def stop(self, *, crash: bool = False) -> None:
        """Stop the broker: answer the requests in progress, close the connections, then sync and close the logs.

        This method takes at most STOP_TIMEOUT seconds, plus the time for the syncs. If `crash` is true, the broker
        syncs no log.
        """
        self._is_stopped = True
        self._stop.request()
        deadline = time.monotonic() + STOP_TIMEOUT
        if self._groups is not None:
            self._groups.stop(deadline)
        if self._transactions is not None:
            self._transactions.stop(deadline)
        if self._share is not None:
            self._share.stop(deadline)
        if self._server is not None:
            self._server.stop(deadline)
        for housekeeper in self.housekeepers:
            housekeeper.join(deadline)
        if self._logs is not None:
            self._logs.close(crash=crash)
            self._logs = None
        if self._temporary is not None:
            import shutil

            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def _started(part: Part | None) -> Part:
    """Return `part`, for example the broker's server. Raises RuntimeError if it is None: the broker is not started."""
    if part is None:
        raise RuntimeError("the broker is not started")
    return part
