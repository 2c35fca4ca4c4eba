"""PushTelemetry (72): send metrics of a client to the broker (KIP-714)."""

from uuid import UUID

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response


class PushTelemetryRequest(Request, api_key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+"):
    """The metrics of a client, in OpenTelemetry's format `MetricsData` (protobuf).

    The client takes `client_instance_id` and `subscription_id` from the response to its last GetTelemetrySubscriptions
    request.
    """

    client_instance_id: UUID  = t.uuid()
    subscription_id:    int   = t.int32()
    terminating:        bool  = t.boolean()  # whether the client is closing, so that this is its last push
    compression_type:   int   = t.int8()
    metrics:            bytes = t.bytestring()


class PushTelemetryResponse(Response, api_key=ApiKey.PUSH_TELEMETRY, versions="0", flexible="0+"):
    throttle_time_ms: int = t.int32()
    error_code:       int = t.int16()
