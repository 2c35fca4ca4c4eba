"""AlterConfigs: replace all settings that a topic, a broker or a group has of its own.

Versions: 0-2, flexible from 2.
Behavior: a setting that the request does not contain returns to its default. Kafka therefore introduced
    IncrementalAlterConfigs. Each resource has its own error code, and is changed completely or not at all. The change
    is on disk and effective when the response is sent. The errors are those of IncrementalAlterConfigs.
Version notes: only the encoding differs.
Left out: settings of loggers and client metrics (INVALID_REQUEST).
"""

from __future__ import annotations

from hmb.broker.config.resources import Resource, alter_each
from hmb.broker.context import RequestContext
from hmb.protocol.enums import ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Wanted = AlterConfigsRequest.AlterConfigsResource
Answer = AlterConfigsResponse.AlterConfigsResourceResponse


def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    answers = alter_each(request.resources, Answer, _changed, context.broker, validate_only=request.validate_only)
    return AlterConfigsResponse(responses=answers)


def _changed(wanted: Wanted, resource: Resource) -> dict[str, str]:
    """Return all settings that the resource will have, whatever settings it has now."""
    if wanted.resource_type == ResourceType.BROKER_LOGGER:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "loggers are altered one by one, incrementally")
    configs = {config.name: config.value for config in wanted.configs if config.value is not None}
    if len(configs) < len(wanted.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a setting is named twice, or has no value")
    return configs
