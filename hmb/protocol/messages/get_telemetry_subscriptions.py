"""GetTelemetrySubscriptions (71): ask the broker which metrics the client should send to it (KIP-714)."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class GetTelemetrySubscriptionsRequest(
    Request, api_key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+"
):
    """The client's instance id. A client without an id sends a UUID of zeros, and the broker assigns an id to it."""

    client_instance_id: UUID = t.uuid()


class GetTelemetrySubscriptionsResponse(
    Response, api_key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+"
):
    """The metrics that the client should send, and how often.

    A client sends each metric whose name begins with one of the texts in `requested_metrics`. The text "*" stands for
    all metrics. If the list is empty, the client sends no metrics.
    """

    throttle_time_ms:           int       = t.int32()
    error_code:                 int       = t.int16()
    client_instance_id:         UUID      = t.uuid()
    subscription_id:            int       = t.int32()  # changes when the metrics or the interval change
    accepted_compression_types: list[int] = t.array(t.int8)
    push_interval_ms:           int       = t.int32()
    telemetry_max_bytes:        int       = t.int32()  # limit for the metrics in one PushTelemetry request
    delta_temporality:          bool      = t.boolean()  # whether a counter is sent as its change since the last push
    requested_metrics:          list[str] = t.array(t.string)
