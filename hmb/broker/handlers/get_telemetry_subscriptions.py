"""GetTelemetrySubscriptions: tell a client which metrics it should send, and how often (KIP-714).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: none; every client may send this request.
Behavior: the broker offers this API only if the setting `client.telemetry.enable` is true. It answers by these
    rules:
    - *Metrics.* A telemetry subscription names metrics, and has conditions for the clients that should send
      them (broker/telemetry). Several subscriptions can apply to one client. The response then contains the
      metrics of all these subscriptions, and the shortest of their intervals, but at most five minutes. If no
      subscription applies, the list of metrics is empty, and the client sends nothing.
    - *Id.* If the client instance id in the request is zero, the broker creates an id and returns it.
    - *Time.* A client must wait for one interval between two requests of this API, and for one interval after
      it has sent metrics. Otherwise, the error is THROTTLING_QUOTA_EXCEEDED. If the subscriptions have changed,
      the client does not have to wait.
Version notes: none.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.telemetry.instances import ClientTelemetry
from hmb.broker.telemetry.subscriptions import TelemetryClient
from hmb.protocol.errors import KafkaError
from hmb.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from hmb.records import Codec

ACCEPTED = [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]  # A client uses the first codec that it supports.


def handle(request: GetTelemetrySubscriptionsRequest, context: RequestContext) -> GetTelemetrySubscriptionsResponse:
    broker = context.broker
    try:
        instance_id, requested = telemetry_of(context).subscribe(
            request.client_instance_id, telemetry_client(context), broker.clock.now_ms()
        )
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=requested.subscription_id,
        accepted_compression_types=[int(codec) for codec in ACCEPTED],
        push_interval_ms=requested.interval_ms,
        telemetry_max_bytes=broker.config.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=list(requested.metrics),
    )


def telemetry_of(context: RequestContext) -> ClientTelemetry:
    """Return the object with all clients that send their metrics to the broker."""
    telemetry = context.broker.telemetry
    assert telemetry is not None, "the broker offers this API only if client.telemetry.enable is true"
    return telemetry


def telemetry_client(context: RequestContext) -> TelemetryClient:
    """Return the properties of the client that sent a request, such as its client id and its address.

    A telemetry subscription has conditions for these properties, and applies only to clients that meet the
    conditions. The property `client_instance_id` is empty in the result. The caller passes the result to
    `ClientTelemetry`, which knows this id.
    """
    software, _, version = (context.client.software or "").partition(" ")
    host, port = context.client.host, str(context.client.port)
    return TelemetryClient("", context.client_id, software, version, host, port)
