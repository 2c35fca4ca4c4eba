"""AlterConfigs: replace all settings of a topic, a broker, a group or client metrics.

Versions: 0-2; version 2 uses the flexible encoding (KIP-482).
Permissions: ALTER_CONFIGS on the topic or group; for other resources, on the cluster.
Behavior: the request replaces all settings of a resource. A setting that the request does not contain returns
    to its default. (To change a single setting, clients use IncrementalAlterConfigs.) The broker changes either
    all settings of a resource or none. When the broker responds, the new settings are on disk and in use. Each
    resource has its own error code, with the same codes as in IncrementalAlterConfigs.
Version notes: none. The versions differ only in their encoding.
Left out: the levels of loggers. A logger in the request gets INVALID_REQUEST. A client changes the level of a
    logger with IncrementalAlterConfigs.
"""

from __future__ import annotations

from hmb.broker.config.resources import Resource, alter_each
from hmb.broker.context import RequestContext
from hmb.protocol.enums import ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse

Wanted = AlterConfigsRequest.AlterConfigsResource
ResourceResponse = AlterConfigsResponse.AlterConfigsResourceResponse


def handle(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    responses = alter_each(
        request.resources, ResourceResponse, _changed, context.broker, validate_only=request.validate_only
    )
    return AlterConfigsResponse(responses=responses)


def _changed(wanted: Wanted, resource: Resource) -> dict[str, str]:
    """Return the new settings of the resource: exactly the settings in the request."""
    if wanted.resource_type == ResourceType.BROKER_LOGGER:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "AlterConfigs cannot alter the levels of loggers; use IncrementalAlterConfigs"
        )
    configs = {config.name: config.value for config in wanted.configs if config.value is not None}
    if len(configs) < len(wanted.configs):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "the request contains a setting twice, or a setting without a value"
        )
    return configs
