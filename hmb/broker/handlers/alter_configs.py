"""AlterConfigs: put new settings in the place of all that a topic, a broker or a group has.

Versions: 0-2, flexible from 2.
Behaviour: what is not named goes back to its default, which is why IncrementalAlterConfigs took its place.  Each
    resource has its own error code, and is changed whole or not at all; it is on disk and in force when it is answered.
    Errors are those of IncrementalAlterConfigs.
Version notes: none but for flexible versions.
Left out: loggers and client metrics (INVALID_REQUEST).
"""

from __future__ import annotations

from functools import partial

from hmb.broker.config import resources as config_resources
from hmb.broker.config.resources import Resource
from hmb.broker.context import RequestContext
from hmb.protocol.enums import ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Wanted = AlterConfigsRequest.AlterConfigsResource
Answer = AlterConfigsResponse.AlterConfigsResourceResponse


def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    def alter(wanted: Wanted) -> None:
        if wanted.resource_type == ResourceType.BROKER_LOGGER:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "loggers are altered one by one, incrementally")
        change = partial(_configs, wanted)
        config_resources.alter(wanted, change, context.broker, validate_only=request.validate_only)

    return AlterConfigsResponse(responses=config_resources.alter_each(request.resources, Answer, alter))


def _configs(wanted: Wanted, resource: Resource) -> dict[str, str]:
    """All settings that the resource is to have, whatever it has."""
    configs = {config.name: config.value for config in wanted.configs if config.value is not None}
    if len(configs) < len(wanted.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a setting is named twice, or has no value")
    return configs
