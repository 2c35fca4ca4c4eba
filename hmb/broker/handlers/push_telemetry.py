"""PushTelemetry: write the metrics of a client to the broker's log (KIP-714).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: none; every client may send this request.
Behavior: the broker offers this API only if the setting `client.telemetry.enable` is true. The broker answers
    by these rules:
    - *Log.* The broker writes a line with the client's name to its log, and then one line for each metric. The
      lines have the level INFO.
    - *Time.* A client must wait one interval after each push. If it pushes earlier, it gets
      THROTTLING_QUOTA_EXCEEDED. Two kinds of pushes do not have to wait: the first push after a
      GetTelemetrySubscriptions request, and the client's last push.
    - *Subscription.* Each push contains the subscription id from the response to GetTelemetrySubscriptions. A
      push with an old subscription id gets UNKNOWN_SUBSCRIPTION_ID. The client then sends
      GetTelemetrySubscriptions again.
    - *Content.* A push with an unknown codec gets UNSUPPORTED_COMPRESSION_TYPE, and a push of more than
      `telemetry.max.bytes` bytes gets TELEMETRY_TOO_LARGE. Metrics that the broker cannot decode get
      INVALID_RECORD.
Version notes: none.
Left out: plug-ins that receive the metrics. Another program can read the metrics in the broker's log.
"""

from __future__ import annotations

import logging

from hmb.broker.context import RequestContext
from hmb.broker.handlers.get_telemetry_subscriptions import telemetry_client, telemetry_of
from hmb.broker.telemetry.metrics_data import decode_metrics
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from hmb.records import Codec, decompress

LOGGER = logging.getLogger(__name__)
LARGEST_EXPANSION = 16  # maximum size of the decompressed metrics, divided by the setting `telemetry.max.bytes`


def handle(request: PushTelemetryRequest, context: RequestContext) -> PushTelemetryResponse:
    try:
        _check(request, context)
        _write(request, context)
    except KafkaError as error:
        return PushTelemetryResponse(error_code=error.code)
    return PushTelemetryResponse()


def _check(request: PushTelemetryRequest, context: RequestContext) -> None:
    broker = context.broker
    telemetry_of(context).check_push(
        request.client_instance_id,
        telemetry_client(context),
        request.subscription_id,
        request.terminating,
        broker.clock.now_ms(),
    )
    if request.compression_type not in set(Codec):
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {request.compression_type}")
    if len(request.metrics) > broker.config.telemetry_max_bytes:
        raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, f"{len(request.metrics)} bytes")


def _write(request: PushTelemetryRequest, context: RequestContext) -> None:
    limit = context.broker.config.telemetry_max_bytes * LARGEST_EXPANSION
    try:
        metrics = decode_metrics(decompress(Codec(request.compression_type), request.metrics, limit=limit))
    except KafkaError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.message) from error
    client = telemetry_client(context)
    LOGGER.info(
        "telemetry of client %r, instance %s, software %s %s, host %s: %d values",
        *(client.client_id, request.client_instance_id, client.client_software_name, client.client_software_version),
        *(client.client_source_address, len(metrics)),
    )
    for metric in metrics:
        LOGGER.info("telemetry of instance %s: %s", request.client_instance_id, metric)
