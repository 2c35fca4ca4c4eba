"""Client instances. A client instance is one run of a client that sends metrics.

A client instance may push its metrics once in each interval. Two pushes may come earlier. One is the first push
after a GetTelemetrySubscriptions request, because a client multiplies its first interval by a random factor. The
other is the last push of the client instance, which has the flag `terminating`.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from hmb.broker.telemetry.subscriptions import (
    NO_INSTANCE_ID,
    RESERVED_IDS,
    MetricsSubscription,
    RequestedMetrics,
    TelemetryClient,
    requested_from,
    subscription_of,
)
from hmb.protocol.errors import ErrorCode, KafkaError

MAX_INSTANCES = 16_384
NEVER = -(2**62)  # the time (ms) of a request that the client has not sent yet; every real time is later

Settings = Mapping[str, Mapping[str, str]]  # the settings of each subscription, by its name


@dataclass(slots=True)
class ClientInstance:
    """A client instance, with the metrics that it must send and the times (ms) of its last requests."""

    requested: RequestedMetrics
    subscriptions: tuple[MetricsSubscription, ...]  # the subscriptions of the broker when `requested` was computed
    last_get: int = NEVER  # the time (ms) of the last GetTelemetrySubscriptions request that was not too early
    last_push: int = NEVER  # the time (ms) of the last push of metrics that was not too early
    is_terminating: bool = False

    def check_get(self, now: int) -> None:
        """Check that a GetTelemetrySubscriptions request is allowed now, and store the time of the request.

        A client must wait for one push interval (`requested.interval_ms`) after its previous GetTelemetrySubscriptions
        request, and after its previous push of metrics. Requests and pushes that came too early do not count.

        For example, the push interval is 10 s, and the client pushes metrics at 0 s. A GetTelemetrySubscriptions
        request at 8 s raises THROTTLING_QUOTA_EXCEEDED, and its time is not stored. A request at 10 s is allowed.
        """
        if now - max(self.last_get, self.last_push) < self.requested.interval_ms:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the push interval has not passed yet")
        self.last_get = now

    def check_push(self, subscription_id: int, terminating: bool, now: int) -> None:
        """Raise KafkaError if the client must not push now, or if the subscription id is out of date."""
        was_terminating, self.is_terminating = self.is_terminating, terminating
        if was_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the client has already sent its last push")
        is_due = self.last_get > self.last_push or now - self.last_push >= self.requested.interval_ms
        if is_due:
            self.last_push = now
        elif not terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the push interval has not passed yet")
        if subscription_id != self.requested.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "the subscriptions have changed")


class ClientTelemetry:
    """The clients that send metrics to a broker, and the times of their last requests. Thread-safe."""

    def __init__(self, settings: Callable[[], Settings]) -> None:
        """The function `settings` returns the current settings of all subscriptions."""
        self._read_settings = settings
        self._lock = threading.Lock()  # guards the fields below; a thread that holds this lock takes no other lock
        self._settings: Settings = {}  # the settings from which `_subscriptions` was made
        self._subscriptions: tuple[MetricsSubscription, ...] = ()
        self._instances: OrderedDict[UUID, ClientInstance] = OrderedDict()  # the last used instance is at the end

    def subscribe(self, instance_id: UUID, client: TelemetryClient, now: int) -> tuple[UUID, RequestedMetrics]:
        """Return a client's instance id, the metrics that the client must send, and the push interval.

        If `instance_id` is zero, the client is new, and the method chooses an id. Raises THROTTLING_QUOTA_EXCEEDED if
        the client asks too early.
        """
        if instance_id == NO_INSTANCE_ID:
            instance_id = uuid.uuid4()
        settings = self._read_settings()
        with self._lock:
            instance = self._instance(instance_id, client, settings)
            instance.check_get(now)
            return instance_id, instance.requested

    def check_push(
        self, instance_id: UUID, client: TelemetryClient, subscription_id: int, terminating: bool, now: int
    ) -> None:
        """Raise KafkaError if the client instance must not send its metrics now."""
        if instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{instance_id} is not the id of a client instance")
        settings = self._read_settings()
        with self._lock:
            self._instance(instance_id, client, settings).check_push(subscription_id, terminating, now)

    def _instance(self, instance_id: UUID, client: TelemetryClient, settings: Settings) -> ClientInstance:
        """Return a `ClientInstance`. Create a new one if the id is unknown or any subscription has changed."""
        if settings != self._settings:
            self._settings = settings
            self._subscriptions = tuple(map(subscription_of, settings.values()))
        instance = self._instances.get(instance_id)
        if instance is None or instance.subscriptions is not self._subscriptions:
            named = client._replace(client_instance_id=str(instance_id))
            instance = ClientInstance(requested_from(named, self._subscriptions), self._subscriptions)
            self._instances[instance_id] = instance
        self._instances.move_to_end(instance_id)
        if len(self._instances) > MAX_INSTANCES:
            self._instances.popitem(last=False)
        return instance
