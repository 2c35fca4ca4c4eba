"""The second argument of each handler: a context with the request's header, its connection, and the broker's parts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from hmb.broker.config.broker import BrokerConfig
from hmb.broker.config.dynamic import DynamicConfig
from hmb.broker.fetch_sessions import FetchSessions
from hmb.broker.network.listeners import Listener
from hmb.broker.network.request_memory import UNCOUNTED, Account
from hmb.broker.request_counters import RequestCounters
from hmb.broker.security.principals import ANONYMOUS
from hmb.broker.security.quotas.measuring import ClientQuotas
from hmb.broker.security.refused_logins import RefusedLogins
from hmb.broker.security.store import SecurityStore
from hmb.broker.security.tokens.delegation import DelegationTokens, no_tokens
from hmb.broker.share.sessions import ShareSessions
from hmb.broker.topics.registry import Topics
from hmb.coordinator.cluster_topics import MayDescribe, everything
from hmb.coordinator.groups import GroupCoordinator
from hmb.coordinator.producer_ids import ProducerIds
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.enums import NO_PRODUCER_ID
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.headers import RequestHeader
from hmb.storage.clock import SYSTEM_CLOCK, BrokerClock
from hmb.storage.events import EventLog
from hmb.storage.watchers import Watchers

if TYPE_CHECKING:
    from hmb.broker.coordinators import ShareGroups
    from hmb.broker.security.login import Login
    from hmb.broker.telemetry.instances import ClientTelemetry
    from hmb.coordinator.share.requests import ShareGroupRequests
    from hmb.coordinator.share.settings import ShareGroupSettings


@dataclass(slots=True)
class Stop:
    """A signal that asks all threads of the broker to stop.

    `request` sends the signal, and wakes each thread that waits.
    """

    requested: threading.Event = field(default_factory=threading.Event)
    watchers: Watchers = field(default_factory=Watchers)

    def request(self) -> None:
        self.requested.set()
        self.watchers.wake_all()


@dataclass(slots=True)
class BrokerContext:
    """The parts of the broker that handlers use, such as topics and groups."""

    configs: DynamicConfig
    cluster_id: str
    topics: Topics
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    share_groups: ShareGroups
    share_sessions: ShareSessions
    share_settings: Callable[[str], ShareGroupSettings]
    stop: Stop
    clock: BrokerClock = SYSTEM_CLOCK
    versions: Mapping[ApiKey, range] | None = None  # supported versions of each API; None means all
    requests: RequestCounters = field(default_factory=RequestCounters)
    events: EventLog = field(default_factory=EventLog)
    security: SecurityStore = field(default_factory=SecurityStore)
    refused_logins: RefusedLogins = field(default_factory=lambda: RefusedLogins(EventLog()))
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    tokens: DelegationTokens = field(default_factory=no_tokens)
    telemetry: ClientTelemetry | None = None  # None unless `client.telemetry.enable` is true
    has_authorizer: bool = False  # whether ACLs decide what a client may do

    def check_has_authorizer(self) -> None:
        """Raise SECURITY_DISABLED if the broker has no authorizer. Such a broker has no ACLs."""
        if not self.has_authorizer:
            raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")

    def on_topics_deleted(self, ids: Mapping[str, UUID]) -> None:
        """Remove the data about deleted topics from the coordinators of groups, transactions and share groups.

        `ids` maps the name of each deleted topic to the topic's id.
        """
        self.groups.on_topics_deleted(ids)
        self.transactions.on_topics_deleted(ids)
        self.share_groups.on_topics_deleted(ids)

    @property
    def share(self) -> ShareGroupRequests:
        """The object that handles the requests for share groups."""
        return self.share_groups.requests

    @property
    def config(self) -> BrokerConfig:
        """The current settings of the broker."""
        return self.configs.current


@dataclass(slots=True)
class ConnectedClient:
    """The broker's knowledge about the client of one connection. Only the connection's thread changes this object."""

    host: str = ""
    port: int = 0
    # Returns whether the client has disconnected. A waiting handler calls this function periodically, and stops waiting
    # if the result is True.
    is_gone: Callable[[], bool] = lambda: False
    last_header: RequestHeader | None = None  # the header of the client's last request
    requests: int = 0  # number of requests that the broker has received
    principal: str = ANONYMOUS  # the name that the client has proved, for example "User:alice"
    login: Login | None = None  # the login of a connection to a listener with SASL; None for other listeners
    last_attributes: int | None = None  # attributes of the last record batch that the client has produced
    last_producer_id: int = NO_PRODUCER_ID  # producer id of the client's last record batch
    software: str | None = None  # name and version from ApiVersions, for example "apache-kafka-java 4.3.0"
    at_end: dict[object, Callable[[], None]] = field(default_factory=dict)  # functions to call when the connection ends
    throttle_ms: int = 0  # the throttle time of the current request, in ms
    # If the client exceeds a quota, the broker reads its next request only after this time (time.monotonic(), s).
    muted_until: float = 0.0

    def mute(self, milliseconds: int) -> None:
        """Stop reading requests of this client for `milliseconds`, because it exceeded a quota. 0 has no effect."""
        if milliseconds:
            self.throttle_ms = max(self.throttle_ms, milliseconds)
            self.muted_until = max(self.muted_until, time.monotonic() + milliseconds / 1000)


class RequestContext(NamedTuple):
    """One request: its header, its connection, and the broker that handles it."""

    broker: BrokerContext
    listener: Listener
    header: RequestHeader
    client: ConnectedClient
    account: Account = UNCOUNTED  # the memory that this request has reserved
    # `may_describe` returns whether the client may see a topic, and `may_create` whether it may create a topic. The
    # defaults allow all topics. With ACLs, security/acls/group_guards.py replaces them for heartbeats of groups.
    may_describe: MayDescribe = everything
    may_create: Callable[[str], bool] = lambda name: True

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def client_host(self) -> str:
        """The client's address as Java prints it, for example "/127.0.0.1". Groups store this text for each member."""
        return f"/{self.client.host}"
